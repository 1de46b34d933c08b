//! Reads the bytes of a file until the search stops.

use std::io::{self, Read};

use super::file::Stop;

/// The bytes that decide whether a file is text: 64 KiB.
const HEAD_BYTES: u64 = 64 * 1024;

/// The input of a search. It ends early when the search stops, so that a file without a match does not delay the end,
/// and before a NUL byte, so that matches do not depend on buffer sizes.
pub(super) struct Input<'a, R> {
    head: &'a [u8],
    file: R,
    is_text: bool,
    is_over: bool,
    stop: &'a Stop<'a>,
}

impl<'a, R: Read> Input<'a, R> {
    /// Starts with a file, using `head` as the buffer for its beginning; `None` for a file that is no text and was not
    /// named.
    pub(super) fn begin(
        mut file: R,
        is_named: bool,
        head: &'a mut Vec<u8>,
        stop: &'a Stop<'a>,
    ) -> io::Result<Option<Self>> {
        head.clear();
        file.by_ref().take(HEAD_BYTES).read_to_end(head)?;
        // UTF-16 contains NUL bytes; the engine recognises it by its byte order mark.
        let is_wide = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let is_text = !is_named && !is_wide;
        if is_text && memchr::memchr(0, head).is_some() {
            return Ok(None);
        }
        Ok(Some(Self { head, file, is_text, is_over: false, stop }))
    }
}

impl<R: Read> Read for Input<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("stopped"));
        }
        if !self.head.is_empty() {
            return self.head.read(buffer);
        }
        if self.is_over {
            return Ok(0);
        }
        let count = self.file.read(buffer)?;
        if self.is_text
            && let Some(end) = memchr::memchr(0, &buffer[..count])
        {
            self.is_over = true;
            return Ok(end);
        }
        Ok(count)
    }
}
