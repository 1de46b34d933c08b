//! The history of an agent directory.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_protocol::prompt_history::PromptHistoryEntry;

use crate::{
    locked::{LockedFile, needs_rewriting, passed_a_step},
    rows::{MOST_BYTES, MOST_ROWS, NewPrompt, Row, Rows},
};

/// The file's name in the agent directory.
const NAME: &str = "prompt-history.jsonl";

/// Bytes of prompts that one answer has at most: 4 MiB.
const MOST_ANSWER_BYTES: usize = 4 << 20;

/// The history cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the prompt history {} cannot be used: {source}", path.display())]
pub struct HistoryError {
    /// The file.
    path: PathBuf,
    /// The system's error.
    source: io::Error,
}

/// The prompts to look for.
#[derive(Debug, Clone, Default)]
pub struct HistoryQuery {
    /// Words that all occur in the prompt, in any case.
    pub words: Vec<String>,
    /// The folder of the session.
    pub cwd: Option<String>,
    /// The most prompts.
    pub limit: usize,
}

/// The prompts to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteTarget {
    /// The one with this id.
    Id(String),
    /// All of them.
    All,
}

/// The history of an agent directory. Everything here blocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    /// That of this agent directory. Nothing is opened yet.
    #[must_use]
    pub fn of_agent_dir(agent_dir: &Path) -> Self {
        Self { path: agent_dir.join(NAME) }
    }

    fn failed(&self) -> impl Fn(io::Error) -> HistoryError {
        let path = self.path.clone();
        move |source| HistoryError { path: path.clone(), source }
    }

    /// Appends prompts. Now and then the file is written anew, with each text once and the newest 20,000.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn append(&self, prompts: Vec<NewPrompt>) -> Result<(), HistoryError> {
        let rows: Vec<Row> = prompts.into_iter().map(Row::from).collect();
        self.append_rows(&rows, MOST_ROWS).map_err(self.failed())
    }

    /// Appends a prompt where that takes microseconds on a local disk: false, and nothing is done, while another process is at work on the file,
    /// or when it is to be written anew.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(crate) fn append_at_once(&self, prompt: &NewPrompt) -> Result<bool, HistoryError> {
        let append = || -> io::Result<bool> {
            let Some(mut file) = LockedFile::open_if_free(&self.path)? else { return Ok(false) };
            file.append_within_step(&[Row::from(prompt.clone())])
        };
        append().map_err(self.failed())
    }

    /// The folder that it is in.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.path.parent()
    }

    fn append_rows(&self, rows: &[Row], most_rows: usize) -> io::Result<()> {
        let Some(mut file) = LockedFile::open(&self.path, true)? else { return Ok(()) };
        let before = file.len();
        file.append(rows)?;
        let after = file.len();
        if passed_a_step(before, after) {
            let all = file.read()?;
            if all.is_damaged || needs_rewriting(&all, after, most_rows) {
                return rewrite(file, all, most_rows);
            }
        }
        Ok(())
    }

    /// Looks for prompts, newest first. A damaged file is set aside, and what can be read of it stays.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn search(&self, query: &HistoryQuery) -> Result<Vec<PromptHistoryEntry>, HistoryError> {
        let rows = self.read().map_err(self.failed())?;
        let words: Vec<String> = query.words.iter().map(|word| word.to_lowercase()).collect();
        let fits = |row: &Row| {
            query.cwd.as_ref().is_none_or(|cwd| row.cwd.as_ref() == Some(cwd)) && {
                let text = if words.is_empty() { String::new() } else { row.prompt.to_lowercase() };
                words.iter().all(|word| text.contains(word.as_str()))
            }
        };
        let mut bytes = 0;
        let found = rows.rows.into_iter().rev().filter(fits).take(query.limit).take_while(|row| {
            bytes += row.prompt.len();
            bytes <= MOST_ANSWER_BYTES
        });
        Ok(found.map(Row::into_entry).collect())
    }

    fn read(&self) -> io::Result<Rows> {
        let Some(file) = LockedFile::open(&self.path, false)? else { return Ok(Rows::default()) };
        let rows = file.read()?;
        if !rows.is_damaged {
            return Ok(rows);
        }
        rewrite(file, rows, MOST_ROWS)?;
        let Some(file) = LockedFile::open(&self.path, false)? else { return Ok(Rows::default()) };
        file.read()
    }

    /// Deletes prompts from the file, and the file that was set aside. Returns how many there were.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn delete(&self, target: &DeleteTarget) -> Result<usize, HistoryError> {
        self.delete_rows(target).map_err(self.failed())
    }

    fn delete_rows(&self, target: &DeleteTarget) -> io::Result<usize> {
        let Some(file) = LockedFile::open(&self.path, false)? else { return Ok(0) };
        let mut rows = file.read()?.rows;
        let before = rows.len();
        match target {
            DeleteTarget::All => rows.clear(),
            DeleteTarget::Id(id) => rows.retain(|row| row.id() != *id),
        }
        let deleted = before - rows.len();
        if deleted > 0 || *target == DeleteTarget::All {
            match std::fs::remove_file(self.path.with_extension("damaged.jsonl")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            file.replace(&rows)?;
        }
        Ok(deleted)
    }
}

/// Writes the file anew, within the limits. A damaged one is kept aside.
fn rewrite(file: LockedFile, mut rows: Rows, most_rows: usize) -> io::Result<()> {
    if rows.is_damaged {
        let aside = file.set_aside()?;
        tracing::warn!(file = %aside.display(), "a damaged prompt history was set aside");
    }
    rows.trim(most_rows, MOST_BYTES);
    file.replace(&rows.rows)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        thread,
    };

    use super::*;

    fn new(prompt: &str) -> NewPrompt {
        NewPrompt {
            prompt: prompt.to_owned(),
            created_at: 7,
            cwd: Some("/p".to_owned()),
            session_id: Some("s".to_owned()),
        }
    }

    fn history() -> (tempfile::TempDir, HistoryFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = HistoryFile::of_agent_dir(&folder.path().join("agent"));
        (folder, file)
    }

    fn all(file: &HistoryFile, words: &str) -> Vec<String> {
        let words = words.split_whitespace().map(str::to_owned).collect();
        let query = HistoryQuery { words, cwd: None, limit: 100_000 };
        file.search(&query).unwrap().into_iter().map(|entry| entry.prompt).collect()
    }

    #[test]
    fn prompts_are_found_newest_first_by_all_words_in_any_case() {
        let (_folder, file) = history();
        assert_eq!(all(&file, ""), [] as [&str; 0]);
        assert_eq!(file.delete(&DeleteTarget::All).unwrap(), 0);
        assert!(!file.path.exists());
        for prompt in ["Fix the PARSER", "Ärger im parser", "Write docs", "Fix the PARSER"] {
            file.append(vec![new(prompt)]).unwrap();
        }
        assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(all(&file, ""), ["Fix the PARSER", "Write docs", "Ärger im parser"]);
        assert_eq!(all(&file, "pars"), ["Fix the PARSER", "Ärger im parser"]);
        assert_eq!(all(&file, "ÄRGER arser"), ["Ärger im parser"]);
        assert_eq!(all(&file, "parser docs"), [] as [&str; 0]);
        let query = HistoryQuery { cwd: Some("/other".to_owned()), limit: 9, ..HistoryQuery::default() };
        assert_eq!(file.search(&query).unwrap(), []);
        let query = HistoryQuery { cwd: Some("/p".to_owned()), limit: 1, ..HistoryQuery::default() };
        let found = file.search(&query).unwrap();
        assert_eq!((found.len(), found[0].use_count, found[0].session_id.as_deref()), (1, 2, Some("s")));
        assert_eq!(file.delete(&DeleteTarget::Id(found[0].id.clone())).unwrap(), 1);
        assert_eq!(file.delete(&DeleteTarget::Id(found[0].id.clone())).unwrap(), 0);
        assert_eq!(all(&file, ""), ["Write docs", "Ärger im parser"]);
        assert!(!fs::read_to_string(&file.path).unwrap().contains("PARSER"));
        assert_eq!(file.delete(&DeleteTarget::All).unwrap(), 2);
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "");
    }

    #[test]
    fn a_cut_line_harms_no_other_and_a_damaged_file_is_set_aside() {
        let (_folder, file) = history();
        file.append(vec![new("one")]).unwrap();
        let mut content = fs::read(&file.path).unwrap();
        content.extend_from_slice(b"{\"prompt\":\"cut o");
        fs::write(&file.path, &content).unwrap();
        assert_eq!(all(&file, ""), ["one"]);
        file.append(vec![new("two")]).unwrap();
        // The line that was cut off is a damaged one now.
        assert_eq!(all(&file, ""), ["two", "one"]);
        let aside = file.path.with_extension("damaged.jsonl");
        assert!(fs::read_to_string(&aside).unwrap().contains("cut o"));
        assert_eq!(fs::metadata(&aside).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(&file.path).unwrap().contains("cut o"));
        fs::write(&file.path, [0xff; 1000]).unwrap();
        assert_eq!(all(&file, ""), [] as [&str; 0]);
        fs::write(&file.path, b"\xff\n").unwrap();
        assert_eq!(all(&file, ""), [] as [&str; 0]);
        file.append(vec![new("three")]).unwrap();
        assert_eq!(all(&file, ""), ["three"]);
        assert_eq!(file.delete(&DeleteTarget::All).unwrap(), 1);
        assert!(!aside.exists());
    }

    #[test]
    fn a_prompt_is_appended_at_once_unless_that_takes_long() {
        let (_folder, file) = history();
        assert!(file.append_at_once(&new("one")).unwrap());
        {
            let _locked = LockedFile::open(&file.path, false).unwrap();
            assert!(!file.append_at_once(&new("two")).unwrap());
        }
        assert_eq!(all(&file, ""), ["one"]);
        let long = "x".repeat(32 << 10);
        let appended = (0..100).take_while(|_| file.append_at_once(&new(&long)).unwrap()).count();
        assert_eq!(appended, 31, "the file would pass 1 MiB");
        file.append(vec![new(&long)]).unwrap();
        assert!(file.append_at_once(&new("two")).unwrap());
        assert_eq!(all(&file, ""), ["two", &long, "one"]);
    }

    #[test]
    fn what_is_no_file_of_the_user_is_refused_by_name() {
        let (folder, file) = history();
        fs::create_dir_all(file.path.parent().unwrap()).unwrap();
        symlink(folder.path().join("elsewhere"), &file.path).unwrap();
        let error = file.append(vec![new("one")]).unwrap_err().to_string();
        assert!(error.contains("prompt-history.jsonl"), "{error}");
        assert!(!folder.path().join("elsewhere").exists());
        fs::remove_file(&file.path).unwrap();
        fs::create_dir(&file.path).unwrap();
        assert!(file.search(&HistoryQuery::default()).is_err());
    }

    #[test]
    fn the_file_is_written_anew_when_most_of_it_is_repetitions_or_too_old() {
        let (_folder, file) = history();
        let long = "x".repeat(1000);
        let rows: Vec<Row> =
            (0..1200).map(|number| Row::from(new(&format!("{long} {}", number % 10)))).collect();
        file.append_rows(&rows, 100).unwrap();
        assert!(fs::metadata(&file.path).unwrap().len() < 20_000);
        assert_eq!(all(&file, "").len(), 10);
        let rows: Vec<Row> = (0..1200).map(|number| Row::from(new(&format!("{long} n{number}")))).collect();
        file.append_rows(&rows, 100).unwrap();
        let kept = all(&file, "");
        assert_eq!((kept.len(), kept[0].ends_with("n1199"), kept[99].ends_with("n1100")), (100, true, true));
    }

    #[test]
    fn writers_side_by_side_lose_nothing() {
        let (_folder, file) = history();
        let long = "x".repeat(3000);
        let threads: Vec<_> = (0..4)
            .map(|writer| {
                let (file, long) = (file.clone(), long.clone());
                thread::spawn(move || {
                    for number in 0..150 {
                        // Repetitions have the file written anew meanwhile.
                        file.append(vec![
                            new(&format!("{writer} {number}")),
                            new(&format!("{long} {writer}")),
                        ])
                        .unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let found = file.search(&HistoryQuery { limit: 10_000, ..HistoryQuery::default() }).unwrap();
        assert_eq!(found.len(), 4 * 150 + 4);
        let repeated = found.iter().filter(|entry| entry.prompt.starts_with('x'));
        assert_eq!(repeated.map(|entry| entry.use_count).sum::<u64>(), 4 * 150);
    }
}
