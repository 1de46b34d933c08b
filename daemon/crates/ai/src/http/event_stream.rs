//! An incremental parser of AWS's binary event streams (`application/vnd.amazon.eventstream`): frames of a prelude with two
//! lengths, headers, a payload, and a checksum after the prelude and at the end.
//!
//! Every byte is looked at once and copied at most once, however the stream is cut into chunks. The format is described in
//! the Smithy documentation, "Amazon Event Stream Specification".

/// The two lengths and their checksum, in bytes.
const PRELUDE_BYTES: usize = 12;

/// A checksum, in bytes.
const CRC_BYTES: usize = 4;

/// The largest headers, in bytes: the limit of the specification.
const MAX_HEADERS_BYTES: usize = 128 * 1024;

/// The largest frame, in bytes: the specification allows payloads of 24 MiB.
pub(crate) const MAX_FRAME_BYTES: usize = 24 * 1024 * 1024 + MAX_HEADERS_BYTES + PRELUDE_BYTES + CRC_BYTES;

/// The kind of a frame (its header `:message-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An event of the stream.
    Event,
    /// A failure that the API's description knows (`exception`), or one that it does not know (`error`).
    Exception,
}

/// One frame. It borrows from the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The kind.
    pub(crate) kind: FrameKind,
    /// The name of the event, of the exception, or the code of the error; may be empty.
    pub(crate) name: &'a str,
    /// The message of an error: the header `:error-message`.
    pub(crate) error_message: Option<&'a str>,
    /// The payload.
    pub(crate) payload: &'a [u8],
}

/// The reason why a stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The lengths in the prelude cannot be right.
    #[error("a frame of impossible size ({total} bytes, {headers} of headers)")]
    Size { total: u32, headers: u32 },
    /// The prelude was changed on its way.
    #[error("the checksum of a frame's prelude is wrong")]
    PreludeChecksum,
    /// The frame was changed on its way.
    #[error("the checksum of a frame is wrong")]
    Checksum,
    /// A header that is cut, of an unknown type, or not text where text must be.
    #[error("the headers of a frame cannot be read")]
    Headers,
}

/// The parser.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct EventStreamParser {
    /// The beginning of a frame that is not complete yet.
    partial: Vec<u8>,
    /// The size of that frame, once its prelude is there.
    total: Option<usize>,
    /// Whether a whole frame has come.
    has_frames: bool,
}

impl EventStreamParser {
    /// The size of the kept part of an incomplete frame, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Whether a whole frame has come. Before that, unreadable bytes may not be an event stream at all.
    pub(crate) fn has_frames(&self) -> bool {
        self.has_frames
    }

    /// Takes the next bytes and calls `on_frame` for each frame that they complete.
    ///
    /// # Errors
    /// [`FrameError`]; the parser is of no use then.
    pub(crate) fn feed(
        &mut self,
        mut chunk: &[u8],
        on_frame: &mut impl FnMut(Frame<'_>),
    ) -> Result<(), FrameError> {
        while !chunk.is_empty() {
            if self.partial.is_empty() && chunk.len() >= PRELUDE_BYTES {
                let total = frame_size(chunk)?;
                if let Some((frame, rest)) = chunk.split_at_checked(total) {
                    on_frame(read(frame)?);
                    self.has_frames = true;
                    chunk = rest;
                    continue;
                }
            }
            let wanted = self.total.unwrap_or(PRELUDE_BYTES);
            let missing = wanted.saturating_sub(self.partial.len());
            let (bytes, rest) = chunk.split_at(missing.min(chunk.len()));
            self.partial.extend_from_slice(bytes);
            chunk = rest;
            if self.partial.len() < wanted {
                continue;
            }
            match self.total {
                None => self.total = Some(frame_size(&self.partial)?),
                Some(_) => {
                    on_frame(read(&self.partial)?);
                    self.has_frames = true;
                    self.total = None;
                    // One huge frame must not hold its memory for the rest of the stream.
                    self.partial.shrink_to(64 * 1024);
                    self.partial.clear();
                }
            }
        }
        Ok(())
    }
}

/// The size of the frame that begins with this whole prelude.
fn frame_size(bytes: &[u8]) -> Result<usize, FrameError> {
    let (total, headers) = (number(bytes, 0), number(bytes, 4));
    let impossible = FrameError::Size { total, headers };
    let (size, header_size) = (total as usize, headers as usize);
    if size > MAX_FRAME_BYTES
        || header_size > MAX_HEADERS_BYTES
        || size < PRELUDE_BYTES + header_size + CRC_BYTES
    {
        return Err(impossible);
    }
    if crc32fast::hash(bytes.get(..8).ok_or(impossible)?) != number(bytes, 8) {
        return Err(FrameError::PreludeChecksum);
    }
    Ok(size)
}

/// Reads a whole frame, whose prelude was checked.
fn read(frame: &[u8]) -> Result<Frame<'_>, FrameError> {
    let (content, checksum) = frame.split_at(frame.len() - CRC_BYTES);
    if crc32fast::hash(content) != number(checksum, 0) {
        return Err(FrameError::Checksum);
    }
    let headers_end = PRELUDE_BYTES + number(frame, 4) as usize;
    let (headers, payload) = content.split_at(headers_end);
    let headers = Headers::read(&headers[PRELUDE_BYTES..])?;
    let (kind, name) = match headers.message_type {
        Some("exception") => (FrameKind::Exception, headers.exception_type),
        Some("error") => (FrameKind::Exception, headers.error_code),
        _ => (FrameKind::Event, headers.event_type),
    };
    Ok(Frame { kind, name: name.unwrap_or_default(), error_message: headers.error_message, payload })
}

/// The number that begins at `at`; 0 where there are not four bytes.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The headers that say what a frame is.
#[derive(Default)]
struct Headers<'a> {
    message_type: Option<&'a str>,
    event_type: Option<&'a str>,
    exception_type: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
}

impl<'a> Headers<'a> {
    fn read(mut bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut headers = Self::default();
        while !bytes.is_empty() {
            let name_size = usize::from(take(&mut bytes, 1)?[0]);
            let name = take(&mut bytes, name_size)?;
            let value_size = match take(&mut bytes, 1)?[0] {
                // True and false are types of their own.
                0 | 1 => 0,
                2 => 1,
                3 => 2,
                4 => 4,
                // A number of 64 bits, a time.
                5 | 8 => 8,
                // Bytes, text.
                kind @ (6 | 7) => {
                    let size = take(&mut bytes, 2)?;
                    let value = take(&mut bytes, usize::from(u16::from_be_bytes([size[0], size[1]])))?;
                    if kind == 7 {
                        headers.set(name, value)?;
                    }
                    continue;
                }
                9 => 16,
                _ => return Err(FrameError::Headers),
            };
            take(&mut bytes, value_size)?;
        }
        Ok(headers)
    }

    fn set(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), FrameError> {
        let place = match name {
            b":message-type" => &mut self.message_type,
            b":event-type" => &mut self.event_type,
            b":exception-type" => &mut self.exception_type,
            b":error-code" => &mut self.error_code,
            b":error-message" => &mut self.error_message,
            _ => return Ok(()),
        };
        *place = Some(std::str::from_utf8(value).map_err(|_| FrameError::Headers)?);
        Ok(())
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], FrameError> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(FrameError::Headers)?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
pub(crate) mod tests;
