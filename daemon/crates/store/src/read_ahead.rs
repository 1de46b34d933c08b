//! Reading a long file ahead: one thread reads and cuts it into lines, some read the lines, and the caller takes them in order.
//!
//! What a line says does not depend on the lines before it; only its place in the tree does.

use std::{
    io::{self, Read},
    ops::Range,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, Scope, ScopedJoinHandle},
};

use crate::lines::{Content, Ending, Line, LinePosition, each_line};

/// The text that is handed over at once.
const BATCH_BYTES: usize = 256 << 10;

/// The most threads that read lines: the one that cuts them is busy with four.
const MAX_READERS: usize = 4;

/// The batches beside those that are read: one is filled, one is taken, and one waits.
const MORE_BATCHES: usize = 3;

/// What was made of a line before it is taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ahead<T> {
    /// Nothing was tried.
    Unread,
    /// This.
    Read(T),
}

impl<T> Ahead<T> {
    /// What was read, or else what `read` makes now.
    pub(crate) fn unwrap_or_else(self, read: impl FnOnce() -> T) -> T {
        match self {
            Self::Unread => read(),
            Self::Read(read) => read,
        }
    }
}

/// Some lines, and what was made of them.
struct Batch<T> {
    /// The lines that are text, one behind the other.
    text: String,
    /// Those that are not.
    bytes: Vec<u8>,
    lines: Vec<(LinePosition, Place, Ahead<T>)>,
}

/// Where the content of a line is in its batch.
enum Place {
    Text(Range<usize>),
    Bytes(Range<usize>),
    TooLong,
    Zeros,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { text: String::new(), bytes: Vec::new(), lines: Vec::new() }
    }
}

impl<T> Batch<T> {
    fn add(&mut self, line: Line<'_>) {
        let as_text = match line.content {
            Content::Bytes(bytes) => simdutf8::basic::from_utf8(bytes).ok(),
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
        self.lines.push((line.place, place, Ahead::Unread));
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

    fn read(&mut self, read: &(dyn Fn(Line<'_>) -> T + Sync)) {
        for (position, place, ahead) in &mut self.lines {
            let content = place.content(&self.text, &self.bytes);
            *ahead = Ahead::Read(read(Line { place: *position, content }));
        }
    }

    fn take(&mut self, sink: &mut dyn FnMut(Line<'_>, Ahead<T>)) {
        for (position, place, ahead) in self.lines.drain(..) {
            let content = place.content(&self.text, &self.bytes);
            sink(Line { place: position, content }, ahead);
        }
    }
}

impl Place {
    fn content<'a>(&self, text: &'a str, bytes: &'a [u8]) -> Content<'a> {
        match self {
            Self::Text(range) => Content::Text(text.get(range.clone()).unwrap_or_default()),
            Self::Bytes(range) => Content::Bytes(bytes.get(range.clone()).unwrap_or_default()),
            Self::TooLong => Content::TooLong,
            Self::Zeros => Content::Zeros,
        }
    }
}

/// A batch to be read, and where it goes then.
type Task<T> = (Batch<T>, SyncSender<Batch<T>>);

/// The ends of the channels on the side that fills batches.
struct Filling<T> {
    /// To the threads that read lines.
    tasks: SyncSender<Task<T>>,
    /// To the caller, in the order of the file: where each batch will come from.
    in_order: SyncSender<Receiver<Batch<T>>>,
    empty: Receiver<Batch<T>>,
}

/// [`each_line`] with threads that cut, look whether lines are text, and make of each what `read` says. `sink` gets them in order, those that no
/// thread could be had for unread.
///
/// # Errors
/// What `reader` reports. The lines before were handed out then.
pub(crate) fn each_line_ahead<T: Send>(
    reader: &mut (dyn Read + Send),
    max_bytes: usize,
    read: &(dyn Fn(Line<'_>) -> T + Sync),
    sink: &mut dyn FnMut(Line<'_>, Ahead<T>),
) -> io::Result<Ending> {
    let readers = thread::available_parallelism().map_or(1, usize::from).min(MAX_READERS);
    let batches = readers + MORE_BATCHES;
    let (tasks, tasks_taken) = sync_channel(batches);
    let (in_order, in_turn) = sync_channel(batches);
    let (done, empty) = sync_channel(batches);
    for _ in 0..batches {
        // There is room for all of them, and the other end is here.
        let _ = done.send(Batch::default());
    }
    let ahead = &mut *reader;
    let tasks_taken = Mutex::new(tasks_taken);
    let ended = thread::scope(|scope| {
        // Dropped with the end of the loop: nobody waits for an empty batch then.
        let done = done;
        let filling = Filling { tasks, in_order, empty };
        let cutting = spawn(scope, move || fill(ahead, max_bytes, &filling))?;
        // With fewer than were wanted it takes longer.
        let reading: Vec<_> =
            (0..readers).map_while(|_| spawn(scope, || read_batches(&tasks_taken, read))).collect();
        for ready in in_turn {
            if reading.is_empty()
                && let Some((batch, to)) = next_task(&tasks_taken)
            {
                // There is room for it.
                let _ = to.send(batch);
            }
            // A thread that has panicked leaves none: that is told below.
            let Ok(mut batch) = ready.recv() else { break };
            batch.take(sink);
            batch.clear();
            // Who fills them has ended when nobody takes it.
            let _ = done.send(batch);
        }
        drop(done);
        // All of them, or the scope would panic by itself.
        let read: Vec<_> = reading.into_iter().map(ScopedJoinHandle::join).collect();
        let cut = cutting.join();
        Some(read.into_iter().find_map(Result::err).map_or(cut, Err))
    });
    match ended {
        Some(Ok(ending)) => ending,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        // Nothing was read.
        None => each_line(reader, max_bytes, &mut |line| sink(line, Ahead::Unread)),
    }
}

/// Starts a thread; `None` where there can be no more.
fn spawn<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, R>> {
    thread::Builder::new().name("session file".into()).spawn_scoped(scope, work).ok()
}

/// Reads to the end, and hands over batches of lines.
fn fill<T>(reader: &mut (dyn Read + Send), max_bytes: usize, filling: &Filling<T>) -> io::Result<Ending> {
    let hand_over = |batch: Batch<T>| {
        let (ready, slot) = sync_channel(1);
        // The caller has panicked when nobody takes them any more; then it does not matter what becomes of this one.
        if filling.in_order.send(slot).is_ok() {
            let _ = filling.tasks.send((batch, ready));
        }
    };
    let mut batch = Batch::default();
    let ending = each_line(reader, max_bytes, &mut |line| {
        batch.add(line);
        if batch.text.len() + batch.bytes.len() >= BATCH_BYTES {
            let next = filling.empty.recv().unwrap_or_default();
            hand_over(std::mem::replace(&mut batch, next));
        }
    });
    hand_over(batch);
    ending
}

/// Reads the lines of batches until there are no more.
fn read_batches<T>(tasks: &Mutex<Receiver<Task<T>>>, read: &(dyn Fn(Line<'_>) -> T + Sync)) {
    while let Some((mut batch, ready)) = next_task(tasks) {
        batch.read(read);
        // Nobody takes it any more after a panic.
        let _ = ready.send(batch);
    }
}

/// Takes the next task, which no other thread gets; `None` after the last.
fn next_task<T>(tasks: &Mutex<Receiver<Task<T>>>) -> Option<Task<T>> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

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
            let ahead = kept(|sink| {
                each_line_ahead(&mut &text[..], max, &|line| line.place, &mut |line, ahead| {
                    assert_eq!(ahead, Ahead::Read(line.place));
                    sink(line);
                })
            });
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
        let read = each_line_ahead(&mut Broken(3), 10, &|_| (), &mut |_, _| lines += 1);
        assert_eq!((read.unwrap_err().to_string().as_str(), lines), ("broken", 3));
    }

    /// Of a file that is longer than all batches together.
    #[test]
    fn a_panic_is_told_and_nobody_waits_for_ever() {
        let text = b"0123456789abcde\n".repeat(4 * BATCH_BYTES);
        let read_with = |read: &(dyn Fn(Line<'_>) + Sync), sink: &mut dyn FnMut(Line<'_>, Ahead<()>)| {
            let reading = AssertUnwindSafe(|| each_line_ahead(&mut &text[..], 100, read, sink).map(|_| ()));
            catch_unwind(reading).map_err(|panic| panic.downcast_ref::<&str>().map(ToString::to_string))
        };
        let lost = |_: Line<'_>| panic!("a reader");
        assert_eq!(read_with(&lost, &mut |_, _| {}).unwrap_err().as_deref(), Some("a reader"));
        let sink = &mut |line: Line<'_>, _| assert!(line.place.line < 9, "a sink");
        assert!(read_with(&|_| (), sink).is_err());
    }
}
