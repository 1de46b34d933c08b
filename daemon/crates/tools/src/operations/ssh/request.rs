//! Scripts, and their input.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

/// A script for the shell of the other machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    shell: &'static str,
    text: &'static str,
}

macro_rules! script {
    ($shell:literal, $name:literal) => {
        Script { shell: $shell, text: concat!(include_str!("scripts/take.sh"), include_str!($name)) }
    };
}

/// Enters the working directory; returns its path and the home directory.
pub(super) const START: Script = script!("sh", "scripts/start.sh");
/// Returns the facts about a path, and its content.
pub(super) const OPEN: Script = script!("sh", "scripts/open.sh");
/// Resolves a path.
pub(super) const REAL: Script = script!("sh", "scripts/real.sh");
/// Creates folders.
pub(super) const FOLDERS: Script = script!("sh", "scripts/folders.sh");
/// Replaces a file.
pub(super) const REPLACE: Script = script!("sh", "scripts/replace.sh");
/// Lists folders.
pub(super) const LIST: Script = script!("sh", "scripts/list.sh");
/// Returns the content of several files.
pub(super) const READ: Script = script!("sh", "scripts/read.sh");
/// Runs a command, until its input ends.
pub(super) const RUN: Script = script!("bash", "scripts/run.sh");

/// Precedes a script's output; the user's start-up files may print before it.
pub(super) const MARK: &[u8] = b"\x01agentd\x01\n";

impl Script {
    /// The command line for `ssh`, which the user's login shell there reads, whatever shell that is. It reads the
    /// script from the input byte by byte, so that the rest of the input stays for the script.
    pub(super) fn command_line(self) -> String {
        let Self { shell, text } = self;
        format!("exec {shell} -c 'eval \"$(dd bs=1 count={} 2>/dev/null)\"'", text.len())
    }
}

/// A script's input: the script itself, then its data.
pub(super) struct Request(Vec<u8>);

impl Request {
    pub(super) fn new(script: Script) -> Self {
        Self(script.text.as_bytes().to_vec())
    }

    /// Appends a text of any bytes: as a line if it is one, else with its length.
    pub(super) fn text(mut self, text: impl AsRef<OsStr>) -> Self {
        let bytes = text.as_ref().as_bytes();
        if memchr::memchr(b'\n', bytes).is_some() {
            self.0.extend_from_slice(format!("{}\n", bytes.len()).as_bytes());
            self.0.extend_from_slice(bytes);
        } else {
            self.0.push(b'=');
            self.0.extend_from_slice(bytes);
            self.0.push(b'\n');
        }
        self
    }

    /// Appends a word of agentd's own as a line.
    pub(super) fn line(mut self, word: impl ToString) -> Self {
        self.0.extend_from_slice(word.to_string().as_bytes());
        self.0.push(b'\n');
        self
    }

    /// Appends the last data, up to the end of the input.
    pub(super) fn rest(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_constant_and_every_shell_reads_them() {
        for script in [START, OPEN, REAL, FOLDERS, REPLACE, LIST, READ, RUN] {
            let line = script.command_line();
            assert!(!line.contains(['\n', '!', '\\']), "{line}");
            assert_eq!(line.matches('\'').count(), 2, "{line}");
        }
    }

    #[test]
    fn texts_are_lines_or_counted() {
        let request = Request::new(START).text("a b\\").text("a\nb").text("").line(3).rest(b"\0x");
        let bytes = request.into_bytes();
        assert_eq!(&bytes[START.text.len()..], b"=a b\\\n3\na\nb=\n3\n\0x");
    }
}
