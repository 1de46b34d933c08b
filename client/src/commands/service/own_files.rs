//! Files that this program wrote, told from those of the user and of other programs.
//!
//! A file begins with a line that holds a checksum of the rest. Where it fits, nobody has changed the file since, and it may be
//! replaced or removed.

use std::{fs, io, path::Path};

use super::unit_files::{CommentSyntax, UnitFile};

const BEGIN: &str = "Written by agentctl service install (";
const END: &str = "). A changed file is kept as it is; --force replaces it.";
const XML_DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// What is in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// The file, as it would be written now.
    Current,
    /// A file that was written for another installation, or by another version.
    Outdated,
    /// A file that was written by us and changed since.
    Changed,
    /// The file of another program.
    Foreign,
}

impl Found {
    /// Whether the file may go.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, Self::Nothing | Self::Current | Self::Outdated)
    }

    /// As part of a sentence.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "missing",
            Self::Current => "installed",
            Self::Outdated => "outdated",
            Self::Changed => "changed",
            Self::Foreign => "foreign",
        }
    }
}

impl UnitFile {
    /// The whole file.
    pub(super) fn contents(&self) -> String {
        let sum = format!("{BEGIN}{:016x}{END}", checksum(&self.text));
        match self.syntax {
            CommentSyntax::Hash => format!("# {sum}\n{}", self.text),
            // Two hyphens must not stand in a comment of XML.
            CommentSyntax::Xml => {
                format!("{XML_DECLARATION}<!-- {} -->\n{}", sum.replace("--", "the flag "), self.text)
            }
        }
    }

    /// Looks at the place of the file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn look(&self) -> io::Result<Found> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(&self.path) => {
                return Ok(Found::Nothing);
            }
            // A link to nowhere is somebody's, such as the one by which systemd masks a unit.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Foreign),
            Err(error) => return Err(error),
        };
        if bytes == self.contents().as_bytes() {
            return Ok(Found::Current);
        }
        Ok(match String::from_utf8(bytes).ok().as_deref().and_then(written_sum) {
            None => Found::Foreign,
            Some((sum, rest)) if sum == format!("{:016x}", checksum(rest)) => Found::Outdated,
            Some(_) => Found::Changed,
        })
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

/// The checksum in the first line of a file of ours, and the rest of the file.
fn written_sum(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix(XML_DECLARATION).unwrap_or(text);
    let (first, rest) = text.split_once('\n')?;
    let first = first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- "))?;
    let (sum, _) = first.strip_prefix(BEGIN)?.split_once(')')?;
    Some((sum, rest))
}

/// FNV-1a with 64 bits: enough to notice a change that is not made to be hidden.
fn checksum(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        for syntax in [CommentSyntax::Hash, CommentSyntax::Xml] {
            let path = folder.path().join(format!("{syntax:?}"));
            let file = |text: &str| UnitFile { path: path.clone(), text: text.into(), syntax };
            let (old, new) = (file("one\n"), file("two\n"));
            assert_eq!(new.look().unwrap(), Found::Nothing);
            fs::write(&path, old.contents()).unwrap();
            assert_eq!((old.look().unwrap(), new.look().unwrap()), (Found::Current, Found::Outdated));
            fs::write(&path, old.contents() + "mine\n").unwrap();
            assert_eq!((old.look().unwrap(), new.look().unwrap()), (Found::Changed, Found::Changed));
            fs::write(&path, "[Unit]\n").unwrap();
            assert_eq!(new.look().unwrap(), Found::Foreign);
            fs::write(&path, b"\xff").unwrap();
            assert_eq!(new.look().unwrap(), Found::Foreign);
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
            assert_eq!(new.look().unwrap(), Found::Foreign);
        }
    }

    #[test]
    fn the_checksum_is_fnv() {
        assert_eq!(checksum(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum("foobar"), 0x8594_4171_f739_67e8);
    }
}
