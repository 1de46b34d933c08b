//! The target of an export: a new file, a file that is replaced in one step, or stdout.

use std::{
    io::{self, BufWriter, ErrorKind, IsTerminal, Write},
    path::Path,
};

use crate::{
    cli::ExportOptions,
    exit::{Exit, Fault, print_stderr},
    output_file::{self, Present},
    render::steers,
};

/// The mode of a new file: a conversation is private until the user shares it.
const PRIVATE: u32 = 0o600;

/// Refuses a file that exists, without `--force`.
///
/// # Errors
/// When it is, and `--force` is not said.
pub(super) fn check(options: &ExportOptions) -> Result<(), Fault> {
    match &options.output {
        Some(path) if !options.force && path.symlink_metadata().is_ok() => Err(there_already(path)),
        _ => Ok(()),
    }
}

fn there_already(path: &Path) -> Fault {
    Fault::usage(format!("Error: {} is there already: --force overwrites it.", path.display()))
}

/// Writes the content. A file is complete or missing; a replaced file stays until then.
///
/// # Errors
/// When reading or writing fails. A closed stdout is an exit, not an error.
pub(super) fn write(
    options: &ExportOptions,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Exit, Fault> {
    match &options.output {
        Some(path) => {
            let cannot = |error: io::Error| {
                Fault::new(Exit::Failed, format!("Error: cannot write {}: {error}", path.display()))
            };
            let present = if options.force { Present::Replace } else { Present::Keep };
            match output_file::write(path, present, PRIVATE, content) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && !options.force => {
                    return Err(there_already(path));
                }
                written => written.map_err(cannot)?,
            }
            print_stderr(&format!("Written to {}.", path.display()));
            Ok(Exit::Answered)
        }
        None => match to_stdout(content) {
            Ok(()) => Ok(Exit::Answered),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
            Err(error) => Err(Fault::new(
                Exit::Failed,
                format!("agentctl: the conversation cannot be written: {error}"),
            )),
        },
    }
}

fn to_stdout(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let mut out = EscapingWriter { out: BufWriter::new(stdout), torn: Vec::new() };
        content(&mut out)?;
        out.flush()
    } else {
        let mut out = BufWriter::new(stdout);
        content(&mut out)?;
        out.flush()
    }
}

/// Writes text to a terminal with control characters as `\u001b`, which JSON reads as the same.
struct EscapingWriter<W> {
    out: W,
    /// The first bytes of a character that is not complete.
    torn: Vec<u8>,
}

impl<W: Write> EscapingWriter<W> {
    fn text(&mut self, text: &str) -> io::Result<()> {
        for part in text.split_inclusive(steers) {
            match part.chars().next_back().filter(|last| steers(*last)) {
                Some(last) => {
                    self.out.write_all(&part.as_bytes()[..part.len() - last.len_utf8()])?;
                    write!(self.out, "\\u{:04x}", u32::from(last))?;
                }
                None => self.out.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.torn);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(good))?;
                    match error.error_len() {
                        Some(length) => {
                            self.out.write_all("\u{fffd}".as_bytes())?;
                            rest = &bad[length..];
                        }
                        None => {
                            self.torn = bad.to_vec();
                            return Ok(bytes.len());
                        }
                    }
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.torn).is_empty() {
            self.out.write_all("\u{fffd}".as_bytes())?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(pieces: &[&[u8]]) -> String {
        let mut out = EscapingWriter { out: Vec::new(), torn: Vec::new() };
        for piece in pieces {
            out.write_all(piece).unwrap();
        }
        out.flush().unwrap();
        String::from_utf8(out.out).unwrap()
    }

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(escaped(&["a\x1b[2J\tb\u{9b}\r\n".as_bytes()]), "a\\u001b[2J\tb\\u009b\\u000d\n");
        assert_eq!(escaped(&[b"a\xffb\xc3"]), "a\u{fffd}b\u{fffd}");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text: String, cut in 0..64usize) {
            let cut = cut.min(text.len());
            let (first, second) = text.as_bytes().split_at(cut);
            prop_assert_eq!(escaped(&[first, second]), escaped(&[text.as_bytes()]));
        }
    }
}
