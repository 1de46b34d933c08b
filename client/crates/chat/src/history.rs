//! The prompts of this and earlier sessions, for Up, Down and Ctrl-R. The daemon keeps prompts; shell commands have a file here.

use std::{
    collections::VecDeque,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// How many prompts are kept.
const MOST: usize = 1_000;

/// The longest prompt that is kept, in bytes.
const MOST_BYTES: usize = 32 << 10;

/// The longest file that is read. With every prompt as long as it may be, the file is a little shorter.
const MOST_FILE_BYTES: u64 = 64 << 20;

/// The prompts, oldest first, and where Up and Down are among them.
#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    prompts: VecDeque<String>,
    at: Option<usize>,
    /// What was typed before the first Up.
    draft: String,
}

impl PromptHistory {
    /// Puts earlier prompts in front.
    pub(crate) fn extend_front(&mut self, earlier: Vec<String>) {
        for prompt in earlier.into_iter().rev() {
            if !self.prompts.contains(&prompt) {
                self.prompts.push_front(prompt);
            }
        }
        while self.prompts.len() > MOST {
            self.prompts.pop_front();
        }
    }

    /// Adds a prompt as the newest. The same prompt before it goes.
    pub(crate) fn add(&mut self, prompt: &str) {
        self.at = None;
        if prompt.trim().is_empty() || prompt.len() > MOST_BYTES {
            return;
        }
        self.prompts.retain(|known| known != prompt);
        self.prompts.push_back(prompt.to_owned());
        if self.prompts.len() > MOST {
            self.prompts.pop_front();
        }
    }

    /// The prompt before; `typed` is kept to come back to.
    pub(crate) fn older(&mut self, typed: &str) -> Option<&str> {
        let at = match self.at {
            Some(at) => at.checked_sub(1)?,
            None => {
                typed.clone_into(&mut self.draft);
                self.prompts.len().checked_sub(1)?
            }
        };
        self.at = Some(at);
        self.prompts.get(at).map(String::as_str)
    }

    /// The prompt after, and at last what was typed.
    pub(crate) fn newer(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        if at < self.prompts.len() {
            self.at = Some(at);
            return self.prompts.get(at).map(String::as_str);
        }
        self.at = None;
        Some(&self.draft)
    }

    /// What is typed is no prompt of the history any more.
    pub(crate) fn leave(&mut self) {
        self.at = None;
    }

    /// The prompts, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &str> {
        self.prompts.iter().rev().map(String::as_str)
    }
}

/// Reads the shell commands of the file, oldest first. A file that is not there has none.
///
/// # Errors
/// When the file cannot be read, or is no file of this user.
pub(crate) fn read(file: &Path) -> io::Result<Vec<String>> {
    let rules =
        agentd_safe_open::OpenRules::new(agentd_safe_open::LinkPolicy::Refused).max_bytes(MOST_FILE_BYTES);
    let Some(bytes) = rules.read(file).map_err(|error| io::Error::other(error.to_string()))? else {
        return Ok(Vec::new());
    };
    let text = String::from_utf8_lossy(&bytes);
    // A line that was cut off, by a full disk say, is left out.
    let mut prompts: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    prompts.drain(..prompts.len().saturating_sub(MOST));
    Ok(prompts)
}

/// Appends a shell command to the file, which nobody else can read. A file with twice as many as are kept is written anew.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn append(file: &Path, prompt: &str) -> io::Result<()> {
    if prompt.len() > MOST_BYTES {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let line = serde_json::to_string(prompt)? + "\n";
    let mut open = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(file)?;
    open.write_all(line.as_bytes())?;
    let text = fs::read(file)?;
    if text.iter().filter(|byte| **byte == b'\n').count() > 2 * MOST {
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut shorter = agentd_files::replace::Replacement::create(folder, ".prompts-", ".tmp", 0o600)?;
        shorter.file_mut().write_all(&lines[lines.len() - MOST..].concat())?;
        shorter.commit(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn up_and_down_come_back_to_what_was_typed() {
        let mut history = PromptHistory::default();
        history.add("one");
        history.add("two");
        history.add("one");
        history.extend_front(vec!["zero".into(), "two".into()]);
        assert_eq!(history.older("draft"), Some("one"));
        assert_eq!(history.older("one"), Some("two"));
        assert_eq!(history.older("two"), Some("zero"));
        assert_eq!(history.older("zero"), None);
        assert_eq!(history.newer(), Some("two"));
        assert_eq!(history.newer(), Some("one"));
        assert_eq!(history.newer(), Some("draft"));
        assert_eq!(history.newer(), None);
        assert_eq!(history.newest_first().collect::<Vec<_>>(), ["one", "two", "zero"]);
    }

    #[test]
    fn the_file_is_private_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history/prompts.jsonl");
        assert_eq!(read(&file).unwrap(), Vec::<String>::new());
        for number in 0..2_100 {
            append(&file, &format!("prompt\n{number}")).unwrap();
        }
        append(&file, &"x".repeat(MOST_BYTES + 1)).unwrap();
        let prompts = read(&file).unwrap();
        assert_eq!((prompts.len(), prompts.last().unwrap().as_str()), (MOST, "prompt\n2099"));
        assert!(fs::read_to_string(&file).unwrap().lines().count() < 1_200);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
