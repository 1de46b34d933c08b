//! How a session file begins, for verbs that read it themselves.

use std::io::{self, BufRead};

use agentd_protocol::{
    entry::{SESSION_VERSION, SessionHeader},
    parse_json,
};

/// Why a file is no conversation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is another kind of file.
    #[error("it is no session file: its first line is no header of a session")]
    NoSession,
    /// A newer program wrote it.
    #[error("it has format version {0}, newer than {SESSION_VERSION}: upgrade agentctl to read it")]
    TooNew(u32),
}

/// A header, and what it says of the entries that follow.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) header: SessionHeader,
    /// Its entries have neither ids nor parents, and follow each other.
    pub(crate) in_a_row: bool,
}

/// Reads the header; `input` then stands before the first entry.
///
/// # Errors
/// When it cannot be read, is no header, or a newer program's.
pub(crate) fn begin(input: &mut impl BufRead) -> Result<Beginning, ReadError> {
    let mut line = Vec::new();
    // Blank lines come before the header in files of other programs.
    while line.trim_ascii().is_empty() {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Err(ReadError::NoSession);
        }
    }
    let text = String::from_utf8_lossy(&line);
    let header: SessionHeader =
        parse_json(text.trim_start_matches('\u{feff}').trim()).map_err(|_| ReadError::NoSession)?;
    let version = header.version.unwrap_or(1);
    if version > SESSION_VERSION {
        return Err(ReadError::TooNew(version));
    }
    Ok(Beginning { header, in_a_row: version < 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(text: &str) -> Result<(String, bool), String> {
        let mut input = text.as_bytes();
        let begin = begin(&mut input).map_err(|error| error.to_string())?;
        assert_eq!(input, b"next");
        Ok((begin.header.id, begin.in_a_row))
    }

    #[test]
    fn headers_of_every_age_and_what_is_none() {
        let header = |version: &str| {
            format!(
                "\n \n{{\"type\":\"session\"{version},\"id\":\"a\",\"timestamp\":\"t\",\"cwd\":\"/\"}}\nnext"
            )
        };
        assert_eq!(begins(&header("")), Ok(("a".into(), true)));
        assert_eq!(begins(&header(",\"version\":3")), Ok(("a".into(), false)));
        assert!(begins(&header(",\"version\":99")).unwrap_err().contains("format version 99"));
        for none in ["", "\n\n", "no JSON\nnext", "{}\nnext"] {
            assert!(begins(none).unwrap_err().contains("no session file"), "{none}");
        }
    }
}
