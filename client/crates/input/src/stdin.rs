//! What is piped in.

use std::{
    io::{self, IsTerminal, Read},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::InputError;

/// The most that is read: 40 MiB, which still fits a line of the wire when escaped.
const MAX_BYTES: u64 = 40 << 20;

/// How long a silent pipe is waited for before the user is told what we wait for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is done where stdin is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// It is not read: nobody said that something comes.
    Ignored,
    /// It is read until its end (Ctrl-D): the user asked for that.
    Read,
}

/// Reads stdin to its end and trims it, as the reference does; empty when it is a terminal. Blocks; when nothing has come
/// for two seconds, `waiting` may tell the user what is waited for.
///
/// # Errors
/// When it cannot be read or holds too much.
pub fn read_stdin(waiting: impl FnOnce()) -> Result<String, InputError> {
    Ok(read_all(Typing::Ignored, waiting)?.trim().to_owned())
}

/// Reads stdin to its end, without blank lines around it; the first line keeps its indentation where other lines follow. Else as
/// [`read_stdin`].
///
/// # Errors
/// As there.
pub fn read_piped(typing: Typing, waiting: impl FnOnce()) -> Result<String, InputError> {
    read_all(typing, waiting).map(|text| without_blank_lines(&text).to_owned())
}

fn read_all(typing: Typing, waiting: impl FnOnce()) -> Result<String, InputError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        if typing == Typing::Ignored {
            return Ok(String::new());
        }
        waiting();
        return read(stdin.lock()).map_err(InputError::Stdin);
    }
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("stdin".into())
        // The receiver waits for as long as this takes.
        .spawn(move || drop(sender.send(read(stdin.lock()))))
        .map_err(InputError::Stdin)?;
    let read = receiver.recv_timeout(PATIENCE).or_else(|_| {
        waiting();
        receiver.recv()
    });
    read.unwrap_or_else(|_| Err(io::Error::other("the reading thread ended"))).map_err(InputError::Stdin)
}

fn read(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it holds more than {} MiB: put it into a file and ask about the file",
            MAX_BYTES >> 20
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn without_blank_lines(text: &str) -> &str {
    let trimmed = text.trim();
    if !trimmed.contains('\n') {
        return trimmed;
    }
    // Indentation means something only beside other lines.
    let text = text.trim_end();
    let begin = text.len() - text.trim_start().len();
    let line = text[..begin].rfind('\n').map_or(0, |end| end + 1);
    &text[line..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_bounded() {
        assert_eq!(read(&b" \n a \xFFb\n\n"[..]).unwrap(), " \n a \u{FFFD}b\n\n");
        assert!(read(io::repeat(b'x')).unwrap_err().to_string().contains("more than 40 MiB"));
    }

    #[test]
    fn indentation_is_kept_beside_other_lines() {
        for (text, expected) in [
            ("\n piped \n", "piped"),
            ("\n \n  if x:\n    y\n\n", "  if x:\n    y"),
            ("  a\r\nb\r\n", "  a\r\nb"),
            ("a\n", "a"),
            (" \n\n", ""),
            ("", ""),
        ] {
            assert_eq!(without_blank_lines(text), expected, "{text:?}");
        }
    }
}
