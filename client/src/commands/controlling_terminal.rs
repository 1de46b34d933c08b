//! The last session that this terminal used in a folder, so that `--continue` in two terminals goes on with two
//! conversations.
//!
//! Each terminal has a file of ids. agentd looks an id up among the sessions of the folder, as if the user had typed
//! it, and ignores one that is not there.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use agentd_files::replace::Replacement;
use agentd_safe_open::{LinkPolicy, OpenRules};

use crate::shared_daemon::Endpoint;

/// How many folders are remembered for a terminal.
const FOLDERS: usize = 64;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The terminal that this process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControllingTerminal {
    file: PathBuf,
}

impl ControllingTerminal {
    /// The controlling terminal, independent of the standard streams; `None` without one, and where the system does not
    /// report it.
    pub(crate) fn current() -> Option<Self> {
        let name = ProcessStat::of("self")?.terminal()?;
        let agent_dir = &Endpoint::find().ok()?.agent_dir;
        Some(Self { file: agent_dir.join("run/terminals").join(name) })
    }

    /// The id of the last session in a folder.
    pub(crate) fn last(&self, folder: &Path) -> Option<String> {
        self.read().remove(&folder.display().to_string())
    }

    /// Stores the session that is used in a folder. On failure, `--continue` takes the most recent session of the
    /// folder.
    pub(crate) fn remember(&self, folder: &Path, session: &str) {
        let mut sessions = self.read();
        let folder = folder.display().to_string();
        if sessions.get(&folder).is_some_and(|before| before == session) {
            return;
        }
        while sessions.len() >= FOLDERS && !sessions.contains_key(&folder) {
            sessions.pop_first();
        }
        sessions.insert(folder, session.to_owned());
        let _ = self.write(&sessions);
    }

    fn read(&self) -> BTreeMap<String, String> {
        let read = || -> io::Result<BTreeMap<String, String>> {
            let text = OpenRules::new(LinkPolicy::Refused)
                .max_bytes(MAX_BYTES)
                .read(&self.file)?
                .unwrap_or_default();
            Ok(serde_json::from_slice(&text)?)
        };
        read().unwrap_or_default()
    }

    fn write(&self, sessions: &BTreeMap<String, String>) -> io::Result<()> {
        let Some(dir) = self.file.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        forget_gone(dir);
        let prefix = format!("{}.", self.file.file_name().unwrap_or_default().to_string_lossy());
        let mut new = Replacement::create(dir, &prefix, ".new", 0o600)?;
        new.file_mut().write_all(&serde_json::to_vec(sessions)?)?;
        new.commit(&self.file).map(drop)
    }
}

/// Removes the files of terminals that are gone.
fn forget_gone(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_there = || {
            let leader = name.split('-').nth(1)?;
            let leader = ProcessStat::of(leader)?;
            name.starts_with(&leader.terminal()?).then_some(())
        };
        if is_there().is_none() {
            // Another process may have removed it first.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The fields of `/proc/PID/stat`.
struct ProcessStat(Vec<String>);

impl ProcessStat {
    /// Reads the fields after the program's name, which may contain anything.
    fn of(process: &str) -> Option<Self> {
        if process != "self" && !process.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, fields) = text.rsplit_once(')')?;
        Some(Self(fields.split_whitespace().map(str::to_owned).collect()))
    }

    fn field(&self, at: usize) -> Option<&str> {
        self.0.get(at).map(String::as_str)
    }

    /// A name for the terminal: its device, and the process that leads its session, with the start time of that
    /// process. Devices and process ids are reused.
    fn terminal(&self) -> Option<String> {
        const SESSION: usize = 3;
        const TERMINAL: usize = 4;
        const STARTED: usize = 19;
        let device = self.field(TERMINAL).filter(|device| *device != "0")?;
        let leader = self.field(SESSION)?;
        let leading = Self::of(leader)?;
        Some(format!("{device}-{leader}-{}", leading.field(STARTED)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(dir: &Path, name: &str) -> ControllingTerminal {
        ControllingTerminal { file: dir.join("run/terminals").join(name) }
    }

    #[test]
    fn folders_are_told_apart_and_few_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let one = terminal(dir.path(), "1-1-1");
        assert_eq!(one.last(Path::new("/a")), None);
        one.remember(Path::new("/a"), "x");
        one.remember(Path::new("/b"), "y");
        assert_eq!(
            (one.last(Path::new("/a")), one.last(Path::new("/b"))),
            (Some("x".into()), Some("y".into()))
        );
        for number in 0..FOLDERS {
            one.remember(Path::new(&format!("/z{number}")), "z");
        }
        assert_eq!((one.read().len(), one.last(Path::new("/a"))), (FOLDERS, None));
    }

    #[test]
    fn files_of_terminals_that_are_gone_are_removed_and_nonsense_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // Process 1 has no terminal; the other two do not exist.
        for name in ["34816-1-5", "34816-999999999-5", "x"] {
            terminal(dir.path(), name).remember(Path::new("/a"), "x");
        }
        let mine = terminal(dir.path(), "mine");
        fs::write(&mine.file, "[1]").unwrap();
        assert_eq!(mine.last(Path::new("/a")), None);
        mine.remember(Path::new("/a"), "x");
        let names: Vec<_> = fs::read_dir(mine.file.parent().unwrap()).unwrap().flatten().collect();
        assert_eq!((names.len(), mine.last(Path::new("/a"))), (1, Some("x".into())));
    }

    #[test]
    fn programs_may_be_called_anything() {
        let stat = ProcessStat::of("self").unwrap();
        assert!(stat.field(3).is_some_and(|session| session.parse::<u32>().is_ok()));
        assert!(ProcessStat::of("../1").is_none());
    }
}
