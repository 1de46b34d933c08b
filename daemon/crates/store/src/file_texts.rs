//! The texts of messages that stay in their session file until somebody asks for them.

use std::{
    fs::File,
    io,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agentd_protocol::TextStore;
use memchr::memchr;

/// The bytes that are read at once: messages that follow each other are mostly asked for together.
const BLOCK_BYTES: usize = 64 << 10;

/// What stands for a text that is not there any more.
const GONE: &[u8] = b"null";

/// An open session file, to be read at any place.
///
/// Session files only grow, and what takes the place of one is another file: a text stays where it was. Only a program that ignores the lock
/// and writes over the file changes that; what it took away is reported to the log, and counts as `null`.
pub(crate) struct FileTexts {
    file: File,
    path: PathBuf,
    /// The block that was read last.
    block: Mutex<Block>,
    is_reported: AtomicBool,
}

#[derive(Default)]
struct Block {
    at: u64,
    bytes: Vec<u8>,
}

impl FileTexts {
    /// `file` is that at `path`, for the log.
    pub(crate) fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, block: Mutex::default(), is_reported: AtomicBool::new(false) }
    }

    fn append(&self, at: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let from = out.len();
        if len > BLOCK_BYTES {
            out.resize(from + len, 0);
            return read_exact_at(&self.file, &mut out[from..], at);
        }
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        if block.slice(at, len).is_none() {
            block.fill(&self.file, at)?;
        }
        let text = block.slice(at, len).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.extend_from_slice(text);
        Ok(())
    }

    fn report(&self, error: &io::Error) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let path = self.path.display();
            tracing::error!(
                %error,
                "{path} was changed by another program while the session is open: messages that were in it are gone"
            );
        }
    }
}

impl TextStore for FileTexts {
    fn read(&self, at: u64, len: usize, out: &mut Vec<u8>) {
        tracing::trace!(at, len, "a message is read from the session file");
        let from = out.len();
        let read = self.append(at, len, out).and_then(|()| match is_message(&out[from..]) {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "no message is where one was")),
        });
        if let Err(error) = read {
            self.report(&error);
            out.truncate(from);
            out.extend_from_slice(GONE);
        }
    }
}

/// Whether the bytes can be the text of a message: an object on one line.
fn is_message(bytes: &[u8]) -> bool {
    let is_object = bytes.starts_with(b"{") && bytes.ends_with(b"}");
    is_object && memchr(b'\n', bytes).is_none() && str::from_utf8(bytes).is_ok()
}

impl Block {
    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(from..from.checked_add(len)?)
    }

    /// Reads from `at` on, up to the end of the file.
    fn fill(&mut self, file: &File, at: u64) -> io::Result<()> {
        self.at = at;
        self.bytes.resize(BLOCK_BYTES, 0);
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match read_at(file, &mut self.bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}

fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match read_at(file, buffer, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

/// Moves the place of the file, too, which is its end in appending.
#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    fn texts(content: &[u8]) -> (FileTexts, File) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        (FileTexts::new(file.try_clone().unwrap(), "s.jsonl".into()), file)
    }

    fn read(texts: &FileTexts, at: u64, len: usize) -> String {
        let mut out = b">".to_vec();
        texts.read(at, len, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_are_read_in_any_order_and_length() {
        let long = format!("{{\"x\":\"{}\"}}", "é".repeat(BLOCK_BYTES));
        let content = format!("head{{\"a\":1}}\n{long}\n{{\"b\":2}}");
        let (texts, _file) = texts(content.as_bytes());
        let last = content.len() - 7;
        for _ in 0..2 {
            assert_eq!(read(&texts, last as u64, 7), r#">{"b":2}"#);
            assert_eq!(read(&texts, 4, 7), r#">{"a":1}"#);
            assert_eq!(read(&texts, 12, long.len()), format!(">{long}"));
        }
    }

    #[test]
    fn what_is_gone_is_null() {
        let content = br#"{"a":1}{"bb":2}"#;
        let (texts, file) = texts(content);
        assert_eq!(read(&texts, 7, 8), r#">{"bb":2}"#);
        // No object any more, behind the end, or cut off meanwhile.
        assert_eq!(read(&texts, 6, 8), ">null");
        assert_eq!(read(&texts, 7, 9), ">null");
        file.set_len(3).unwrap();
        assert_eq!(read(&texts, 0, 7), ">null");
        assert_eq!(read(&texts, 0, BLOCK_BYTES + 1), ">null");
    }

    #[test]
    fn a_file_without_its_name_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, r#"{"a":1}"#).unwrap();
        let texts = FileTexts::new(File::open(&path).unwrap(), path.clone());
        fs::write(dir.path().join("new"), "other").unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(read(&texts, 0, 7), r#">{"a":1}"#);
    }
}
