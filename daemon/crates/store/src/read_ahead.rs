//! Reading a long file on a thread of its own, while the lines before are worked on: both take about as long.

use std::{
    io::{self, Read},
    ops::Range,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use crate::lines::{Content, Ending, Line, LinePosition, each_line};

/// The text that is handed over at once.
const BATCH_BYTES: usize = 256 << 10;

/// The batches that there are: one is filled, one is worked on, and one waits.
const BATCHES: usize = 3;

/// Some lines.
#[derive(Default)]
struct Batch {
    /// The lines that are text, one behind the other.
    text: String,
    /// Those that are not.
    bytes: Vec<u8>,
    lines: Vec<(LinePosition, Place)>,
}

/// Where the content of a line is in its batch.
enum Place {
    Text(Range<usize>),
    Bytes(Range<usize>),
    TooLong,
    Zeros,
}

impl Batch {
    fn add(&mut self, line: Line<'_>) {
        let as_text = match line.content {
            Content::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            Content::Text(text) => Some(text),
            Content::TooLong | Content::Zeros => None,
        };
        let place = match (as_text, line.content) {
            (Some(text), _) => {
                let from = self.text.len();
                self.text.push_str(text);
                Place::Text(from..self.text.len())
            }
            (None, Content::Bytes(bytes)) => {
                let from = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Place::Bytes(from..self.bytes.len())
            }
            (None, Content::Zeros) => Place::Zeros,
            (None, Content::TooLong | Content::Text(_)) => Place::TooLong,
        };
        self.lines.push((line.place, place));
    }

    fn clear(&mut self) {
        // One very long line keeps no memory.
        if self.text.capacity() > 2 * BATCH_BYTES {
            self.text = String::new();
        }
        self.text.clear();
        self.bytes.clear();
        self.lines.clear();
    }

    fn each(&self, sink: &mut dyn FnMut(Line<'_>)) {
        for (place, content) in &self.lines {
            let content = match content {
                Place::Text(range) => Content::Text(self.text.get(range.clone()).unwrap_or_default()),
                Place::Bytes(range) => Content::Bytes(self.bytes.get(range.clone()).unwrap_or_default()),
                Place::TooLong => Content::TooLong,
                Place::Zeros => Content::Zeros,
            };
            sink(Line { place: *place, content });
        }
    }
}

/// [`each_line`] with a thread that reads and cuts, and looks whether lines are text. Where there can be no more threads, without it.
///
/// # Errors
/// What `reader` reports. The lines before were handed out then.
pub(crate) fn each_line_ahead(
    reader: &mut (dyn Read + Send),
    max_bytes: usize,
    sink: &mut dyn FnMut(Line<'_>),
) -> io::Result<Ending> {
    let (filled, batches) = sync_channel(BATCHES);
    let (done, empty) = sync_channel(BATCHES);
    for _ in 0..BATCHES {
        // There is room for all of them, and the other end is here.
        let _ = done.send(Batch::default());
    }
    let ahead = &mut *reader;
    let read = thread::scope(|scope| {
        let reading = thread::Builder::new()
            .name("session file".into())
            .spawn_scoped(scope, move || fill(ahead, max_bytes, &filled, &empty))
            .ok()?;
        for mut batch in batches {
            batch.each(sink);
            batch.clear();
            // The reader has ended when nobody takes it.
            let _ = done.send(batch);
        }
        Some(reading.join())
    });
    match read {
        Some(Ok(ending)) => ending,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        // Nothing was read.
        None => each_line(reader, max_bytes, sink),
    }
}

/// Reads to the end, and hands over batches of lines.
fn fill(
    reader: &mut (dyn Read + Send),
    max_bytes: usize,
    filled: &SyncSender<Batch>,
    empty: &Receiver<Batch>,
) -> io::Result<Ending> {
    let mut batch = Batch::default();
    let ending = each_line(reader, max_bytes, &mut |line| {
        batch.add(line);
        if batch.text.len() + batch.bytes.len() >= BATCH_BYTES {
            let next = empty.recv().unwrap_or_default();
            // Who took the batches has panicked when nobody takes them any more; then it does not matter what becomes of this one.
            let _ = filled.send(std::mem::replace(&mut batch, next));
        }
    });
    let _ = filled.send(batch);
    ending
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn kept(
        read: impl FnOnce(&mut dyn FnMut(Line<'_>)) -> io::Result<Ending>,
    ) -> (Vec<(LinePosition, Vec<u8>, u8)>, Ending) {
        let mut lines = Vec::new();
        let ending = read(&mut |line| {
            let (bytes, kind) = match line.content {
                Content::Text(text) => (text.as_bytes().to_vec(), 0),
                Content::Bytes(bytes) => (bytes.to_vec(), 0),
                Content::TooLong => (Vec::new(), 1),
                Content::Zeros => (Vec::new(), 2),
            };
            lines.push((line.place, bytes, kind));
        });
        (lines, ending.unwrap())
    }

    const PIECES: &[&[u8]] = &[b"\n", b"\0\0", b"\xff", b"{\"a\":1}", "é".as_bytes()];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn lines_are_the_same_when_they_are_read_ahead(
            pieces in vec(prop::sample::select(PIECES), 0..40),
            times in prop_oneof![Just(1_usize), Just(30_000)],
            max in prop_oneof![Just(10_usize), Just(1 << 20)],
        ) {
            let text = pieces.concat().repeat(times);
            let here = kept(|sink| each_line(&mut &text[..], max, sink));
            let ahead = kept(|sink| each_line_ahead(&mut &text[..], max, sink));
            prop_assert_eq!(here, ahead);
        }
    }

    #[test]
    fn what_the_reader_reports_is_reported() {
        struct Broken(usize);
        impl Read for Broken {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("broken"))?;
                buffer.fill(b'\n');
                buffer[0] = b'x';
                Ok(buffer.len())
            }
        }
        let mut lines = 0;
        let read = each_line_ahead(&mut Broken(3), 10, &mut |_| lines += 1);
        assert_eq!((read.unwrap_err().to_string().as_str(), lines), ("broken", 3));
    }
}
