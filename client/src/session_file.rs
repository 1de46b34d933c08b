//! The beginning of a session file, for verbs that read it themselves.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
};

use agentd_protocol::{
    entry::{MAX_SESSION_FILE_BYTES, SESSION_VERSION, SessionHeader},
    parse_json,
};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

/// The longest line that is read; the daemon skips longer ones as well.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// The reason why a file is no conversation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionFileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is of another kind.
    #[error("it is no session file: its first line is no header of a session")]
    NoSession,
    /// A newer program wrote the file.
    #[error("it has format version {0}, newer than {SESSION_VERSION}: upgrade agentctl to read it")]
    TooNew(u32),
}

/// A header, and the form of the entries after it.
#[derive(Debug)]
pub(crate) struct SessionFileStart {
    pub(crate) header: SessionHeader,
    /// Whether entries have neither ids nor parents, and follow each other.
    pub(crate) in_a_row: bool,
}

/// Opens a session file that the user named: it may be a symbolic link, and anybody's.
///
/// # Errors
/// Those of the system, and for what is no regular file, or longer than any session.
pub(crate) fn open(path: &Path) -> io::Result<BufReader<File>> {
    let rules =
        OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_SESSION_FILE_BYTES);
    rules.open(path).map(BufReader::new).map_err(|error| error.into_problem().into())
}

/// Reads a line into `line`, which stays empty for a line longer than the limit. Gives its length in bytes; 0 at the
/// end of the file.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let count = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', line)? as u64;
    if count < MAX_LINE_BYTES || line.ends_with(b"\n") {
        return Ok(count);
    }
    *line = Vec::new();
    Ok(count + input.skip_until(b'\n')? as u64)
}

/// Reads the header, up to the first entry.
///
/// # Errors
/// When it cannot be read, is no header, or a newer program's.
pub(crate) fn begin(input: &mut impl BufRead) -> Result<SessionFileStart, SessionFileError> {
    let mut line = Vec::new();
    // Files of other programs may have blank lines before the header.
    while line.trim_ascii().is_empty() {
        if read_line(input, &mut line)? == 0 {
            return Err(SessionFileError::NoSession);
        }
    }
    let text = String::from_utf8_lossy(&line);
    let header: SessionHeader =
        parse_json(text.trim_start_matches('\u{feff}').trim()).map_err(|_| SessionFileError::NoSession)?;
    let version = header.version.unwrap_or(1);
    if version > SESSION_VERSION {
        return Err(SessionFileError::TooNew(version));
    }
    Ok(SessionFileStart { header, in_a_row: version < 2 })
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
