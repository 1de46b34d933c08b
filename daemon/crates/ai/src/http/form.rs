//! Tells what an answer is by how it begins: servers and proxies are often wrong about it in `Content-Type`.

/// What the body of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An event stream, or text that may be one.
    Events,
    /// One JSON value.
    Json,
    /// A web page.
    Html,
}

/// A byte order mark, which may stand before anything.
const BOM: &[u8] = b"\xef\xbb\xbf";

impl Form {
    /// The form of a body; `None` while only white space (or nothing) has come. No line of an event stream can begin
    /// with a brace or an angle bracket.
    pub(crate) fn of(beginning: &[u8]) -> Option<Self> {
        if BOM.starts_with(beginning) {
            return None;
        }
        let beginning = beginning.strip_prefix(BOM).unwrap_or(beginning);
        match beginning.trim_ascii_start().first()? {
            b'{' | b'[' => Some(Self::Json),
            b'<' => Some(Self::Html),
            _ => Some(Self::Events),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_known_by_its_first_byte() {
        assert_eq!(Form::of(b""), None);
        assert_eq!(Form::of(b" \r\n"), None);
        assert_eq!(Form::of(b"\xef\xbb"), None);
        assert_eq!(Form::of(b"\n{\"id\""), Some(Form::Json));
        assert_eq!(Form::of(b"\xef\xbb\xbf<!doctype html>"), Some(Form::Html));
        assert_eq!(Form::of(b": ping"), Some(Form::Events));
        assert_eq!(Form::of(b"data: {}"), Some(Form::Events));
    }
}
