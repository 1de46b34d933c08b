//! Makes changes of several files where it is their turn.

use std::{collections::BTreeSet, io, path::Path, sync::Arc};

use agentd_agent::ToolError;
use agentd_checkpoints::{Gap, SessionCheckpoints};
use tokio_util::sync::CancellationToken;

use super::{
    change::FileChange,
    journal::ChangeJournals,
    steps::{apply, check_all},
};
use crate::{
    blocking, errno,
    file_queue::{FileQueue, FileTurn},
    operations::FileHost,
};

/// Where changes of several files are made.
#[derive(Clone)]
pub struct ChangePlace {
    /// The queue of the session.
    pub queue: FileQueue,
    /// The files.
    pub host: Arc<dyn FileHost>,
    /// Keeps the changes; `None` while undo is off.
    pub undo: Option<Arc<SessionCheckpoints>>,
    /// Notes a change before its first step, so that one that a killed daemon left half made is taken back; `None` where nobody would do
    /// that: the session has no file, or works on another host.
    pub journals: Option<ChangeJournals>,
}

impl ChangePlace {
    /// Makes the changes in their order, once it is the turn of all files. Where a step fails, those before it are taken back.
    ///
    /// # Errors
    /// The step that failed; the files are as they were then, unless the text says otherwise.
    pub async fn apply(
        &self,
        changes: Vec<FileChange>,
        (call_id, tool): (&str, &'static str),
        cancel: &CancellationToken,
    ) -> Result<Option<Gap>, ToolError> {
        let turns = self.turns(&changes, cancel).await?;
        // Once the first file is written, an abort does not keep the others from following, or from being taken back.
        let files = self.host.files(&CancellationToken::new());
        let (undo, call_id, cancel) = (self.undo.clone(), call_id.to_owned(), cancel.clone());
        // A change of one file is one step anyway.
        let journals = self.journals.clone().filter(|_| changes.len() > 1);
        blocking::run(move || {
            check_all(&*files, &changes)?;
            if cancel.is_cancelled() {
                return Err(blocking::aborted());
            }
            let journal = journals.map(|journals| journals.begin(&changes, (&call_id, tool))).transpose();
            let journal = journal.map_err(|error| {
                ToolError(format!(
                    "The change cannot be noted before it is made: {error}. Nothing was changed."
                ))
            })?;
            let apply = || apply(&*files, &changes);
            let (done, gap) = match &undo {
                Some(undo) => {
                    let paths: Vec<&Path> = turns.iter().map(FileTurn::real_path).collect();
                    undo.change_files(Some(&call_id), tool, &paths, apply)
                }
                None => (apply(), None),
            };
            if let Some(journal) = journal {
                journal.end();
            }
            drop(turns);
            done.map(|()| gap)
        })
        .await
    }

    /// The turns of all files, in the order of their paths, so that two changes never wait for each other.
    async fn turns(
        &self,
        changes: &[FileChange],
        cancel: &CancellationToken,
    ) -> Result<Vec<FileTurn>, ToolError> {
        let paths: BTreeSet<&Path> = changes.iter().flat_map(FileChange::paths).collect();
        let mut turns = Vec::with_capacity(paths.len());
        for path in paths {
            let failed = |error: &io::Error| ToolError(errno::describe(error, "open", path));
            let ticket = self.queue.ticket();
            turns.push(blocking::enter(ticket, &*self.host, path, cancel, failed).await?);
        }
        Ok(turns)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::path::PathBuf;

    use super::*;
    use crate::{
        file_changes::change::ReadFile,
        operations::{LocalFiles, LocalHost},
    };

    struct Folder {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            Self { _folder: folder, root }
        }

        fn write(&self, name: &str, content: &str) -> ReadFile {
            fs::write(self.root.join(name), content).unwrap();
            self.read(name)
        }

        fn read(&self, name: &str) -> ReadFile {
            ReadFile::read(&LocalFiles, &self.root.join(name), name, 1000).unwrap()
        }

        fn apply(&self, changes: Vec<FileChange>) -> Result<(), String> {
            let place = ChangePlace {
                queue: FileQueue::new(),
                host: Arc::new(LocalHost),
                undo: None,
                journals: None,
            };
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
            let cancel = CancellationToken::new();
            let done = runtime.block_on(place.apply(changes, ("c", "lsp"), &cancel));
            done.map(|_| ()).map_err(|ToolError(text)| text)
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.root.join(name)).ok()
        }
    }

    fn write(folder: &Folder, name: &str, content: &str, before: Option<ReadFile>) -> FileChange {
        FileChange::Write { path: folder.root.join(name), content: content.into(), before }
    }

    #[test]
    fn all_steps_are_made() {
        let folder = Folder::new();
        let (a, b) = (folder.write("a", "1"), folder.write("b", "2"));
        folder.write("c", "3");
        let changes = vec![
            write(&folder, "a", "11", Some(a)),
            write(&folder, "new/d", "4", None),
            FileChange::Move { from: folder.root.join("c"), to: folder.root.join("moved/c") },
            FileChange::Remove { path: folder.root.join("b"), before: b },
        ];
        folder.apply(changes).unwrap();
        let texts = ["a", "b", "c", "new/d", "moved/c"].map(|name| folder.text(name));
        assert_eq!(texts, [Some("11".into()), None, None, Some("4".into()), Some("3".into())]);
    }

    #[test]
    fn a_step_that_fails_takes_the_others_back() {
        let folder = Folder::new();
        let (a, _) = (folder.write("a", "1"), folder.write("b", "2"));
        folder.write("c", "3");
        folder.write("f", "5");
        let changes = vec![
            write(&folder, "a", "11", Some(a)),
            write(&folder, "d", "4", None),
            FileChange::Move { from: folder.root.join("c"), to: folder.root.join("e") },
            FileChange::Move { from: folder.root.join("f"), to: folder.root.join("b") },
        ];
        let error = folder.apply(changes).unwrap_err();
        assert!(error.contains("EEXIST") && error.ends_with("Nothing was changed."), "{error}");
        let texts = ["a", "b", "c", "d", "e", "f"].map(|name| folder.text(name));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(texts, [some("1"), some("2"), some("3"), None, None, some("5")]);
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_stops_all_before_the_first_step() {
        for meanwhile in ["changed meanwhile", "x"] {
            let folder = Folder::new();
            let (a, b) = (folder.write("a", "1"), folder.write("b", "2"));
            folder.write("b", meanwhile);
            let changes = vec![write(&folder, "a", "11", Some(a)), write(&folder, "b", "22", Some(b))];
            let error = folder.apply(changes).unwrap_err();
            assert!(
                error.contains("/b was changed by something else meanwhile. Nothing was changed."),
                "{error}"
            );
            assert_eq!(
                (folder.text("a").as_deref(), folder.text("b").as_deref()),
                (Some("1"), Some(meanwhile))
            );
        }
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = Folder::new();
        folder.write("a", "1");
        folder.write("b", "2");
        let error = folder.apply(vec![write(&folder, "a", "x", None)]).unwrap_err();
        assert!(error.contains("changed by something else"), "{error}");
        let moved = FileChange::Move { from: folder.root.join("a"), to: folder.root.join("b") };
        assert!(folder.apply(vec![moved]).unwrap_err().contains("EEXIST"));
        assert_eq!((folder.text("a"), folder.text("b")), (Some("1".into()), Some("2".into())));
    }
}
