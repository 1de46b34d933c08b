//! Which recordings are of a session.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use serde::Deserialize;

/// A longer file of recordings is not looked through: 1 GiB, as agentd has it.
const MAX_BYTES: u64 = 1 << 30;

/// Exchanges of one session with providers.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    files: Vec<PathBuf>,
    session: String,
}

/// What tells whose an exchange is.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Request {
        #[serde(default)]
        session: String,
    },
    #[serde(other)]
    Other,
}

impl Recordings {
    /// Looks through a folder of recordings, or into one of them.
    ///
    /// # Errors
    /// When it, or a file in it, cannot be read.
    pub(super) fn find(place: &Path, session: &str) -> io::Result<Self> {
        let mut files = Vec::new();
        if fs::metadata(place)?.is_dir() {
            for entry in fs::read_dir(place)? {
                let path = entry?.path();
                if path.extension().is_some_and(|end| end == "jsonl") {
                    files.push(path);
                }
            }
            files.sort();
        } else {
            files.push(place.to_owned());
        }
        let mut found = Self { files: Vec::new(), session: session.to_owned() };
        for path in files {
            if !found.lines(&path)?.is_empty() {
                found.files.push(path);
            }
        }
        Ok(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Each file by its name, with its lines of the session.
    pub(super) fn read(&self) -> impl Iterator<Item = io::Result<(String, Vec<String>)>> {
        self.files.iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, self.lines(path)?))
        })
    }

    /// The lines of exchanges of the session. A last line that is still being written is none.
    fn lines(&self, path: &Path) -> io::Result<Vec<String>> {
        let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
        let bytes = rules.read_present(path).map_err(|error| io::Error::from(error.into_problem()))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut is_ours = false;
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let ours = whole.filter(|line| {
            if let Ok(Line::Request { session }) = serde_json::from_str(line) {
                is_ours = session == self.session;
            }
            is_ours
        });
        Ok(ours.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_session_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let request = |session: &str| format!("{{\"type\":\"request\",\"session\":\"{session}\"}}\n");
        let end = "{\"type\":\"end\"}\n";
        let file = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        file("2.jsonl", format!("{}{end}{}{end}", request("b"), request("a")));
        file("1.jsonl", format!("{}{end}{{\"type\":\"torn", request("a")));
        file("3.jsonl", format!("{}{end}", request("b")));
        file("4.txt", request("a"));
        let found = Recordings::find(folder.path(), "a").unwrap();
        let read: Vec<_> = found.read().map(Result::unwrap).collect();
        let names: Vec<_> = read.iter().map(|(name, lines)| (name.as_str(), lines.len())).collect();
        assert_eq!(names, [("1.jsonl", 2), ("2.jsonl", 2)]);
        assert!(Recordings::find(&folder.path().join("3.jsonl"), "a").unwrap().is_empty());
        assert!(Recordings::find(&folder.path().join("none"), "a").is_err());
    }
}
