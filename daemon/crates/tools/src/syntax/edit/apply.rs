//! Makes the changes of a preview, in all files or in none.

use std::path::{Path, PathBuf};

use agentd_agent::ToolError;
use agentd_protocol::{syntax::AST_EDIT_TOOL, text_bounds, tool::ToolResult};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::plan::{EditPlan, FileEdit, counted};
use crate::{
    blocking,
    edit::{TextFile, normalized_text, with_line_endings},
    file_changes::{ChangeApproval, ChangePlace, FileChange, ProposedChange},
    undo::explain_gap,
};

/// The longest diff for clients, in bytes: 1 MiB.
const MAX_DIFF: usize = 1 << 20;

/// What a call works with that makes its changes.
pub(super) struct Application<'a> {
    pub(super) plan: &'a EditPlan,
    pub(super) place: &'a ChangePlace,
    pub(super) approval: &'a dyn ChangeApproval,
    pub(super) call_id: &'a str,
    pub(super) cwd: &'a Path,
    pub(super) cancel: &'a CancellationToken,
}

/// A file as it was read, and as it is to become.
struct Prepared {
    path: PathBuf,
    file: TextFile,
    new: String,
}

impl Application<'_> {
    /// Reads the files, asks about each, and changes them.
    ///
    /// # Errors
    /// For the model; nothing is changed then, unless the text says otherwise.
    pub(super) async fn run(self) -> Result<ToolResult, ToolError> {
        let prepared = self.prepared().await?;
        for file in &prepared {
            let change =
                ProposedChange { call_id: self.call_id, path: &file.path, cwd: self.cwd, content: &file.new };
            match self.cancel.run_until_cancelled(self.approval.approve(change, self.cancel)).await {
                Some(Ok(())) => {}
                Some(Err(why)) => return Err(ToolError(format!("{why} Nothing was changed."))),
                None => return Err(blocking::aborted()),
            }
        }
        let write = |file: Prepared| FileChange::Write {
            path: file.path,
            content: file.new.into_bytes(),
            before: Some(file.file.into_read()),
        };
        let changes = prepared.into_iter().map(write).collect();
        let gap = self.place.apply(changes, (self.call_id, AST_EDIT_TOOL), self.cancel).await?;
        explain_gap(Ok(self.result()), gap)
    }

    /// The files as they are now, with the changes.
    async fn prepared(&self) -> Result<Vec<Prepared>, ToolError> {
        let mut prepared = Vec::with_capacity(self.plan.files.len());
        for edit in &self.plan.files {
            let FileEdit { path, shown, old, changes } = edit;
            let (files, path, shown) = (self.place.host.files(self.cancel), path.clone(), shown.clone());
            let (old, changes) = (old.clone(), changes.clone());
            let one = blocking::run(move || {
                let nothing = |error: ToolError| ToolError(format!("{} Nothing was changed.", error.0));
                files.may_write(&path).map_err(|error| nothing(ToolError(error.to_string())))?;
                let file = TextFile::read(&*files, &path, &shown).map_err(nothing)?;
                if normalized_text(file.text()) != old {
                    return Err(changed(&shown));
                }
                let new = file.with_text(with_line_endings(file.text(), &changes));
                Ok(Prepared { path, file, new })
            });
            prepared.push(one.await?);
        }
        Ok(prepared)
    }

    /// The result of a call that changes everything.
    fn result(&self) -> ToolResult {
        let files = &self.plan.files;
        let mut text =
            format!("Made {} in {}.", counted(self.plan.changes(), "change"), counted(files.len(), "file"));
        let mut diff = String::new();
        for file in files {
            if text.len() < MAX_LISTED {
                text.push_str(&format!("\n{}: {}", file.shown, counted(file.changes.len(), "change")));
            }
            if diff.len() < MAX_DIFF {
                diff.push_str(&format!("{}\n{}\n", file.shown, file.diff()));
            }
        }
        if text.len() >= MAX_LISTED {
            text.push_str("\n… and other files");
        }
        let mut details = Map::new();
        details.insert("diff".to_owned(), text_bounds::head(diff.trim_end_matches('\n'), MAX_DIFF).into());
        details.insert("files".to_owned(), self.plan.patches());
        ToolResult { details: Some(Value::Object(details)), ..ToolResult::text(text) }
    }
}

/// The bytes after which no more files are listed: 8 KiB.
const MAX_LISTED: usize = 8 << 10;

fn changed(shown: &str) -> ToolError {
    ToolError(format!(
        "{shown} differs from what was searched: it changed just now, or has unsaved changes in an editor. Nothing was changed; make a \
         new preview."
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use agentd_syntax::{Match, by_name};

    use super::*;
    use crate::{
        file_changes::ApprovalFuture,
        file_queue::FileQueue,
        operations::{FileHost as _, MemoryHost},
        syntax::{read::CodeFile, search::FileMatches},
    };

    /// Refuses files whose names hold a text, and notes what was asked.
    struct Refusing(&'static str, Mutex<Vec<String>>);

    impl ChangeApproval for Refusing {
        fn approve<'a>(&'a self, change: ProposedChange<'a>, _: &'a CancellationToken) -> ApprovalFuture<'a> {
            Box::pin(async move {
                let path = change.path.display().to_string();
                self.1.lock().unwrap().push(path.clone());
                if !self.0.is_empty() && path.contains(self.0) { Err("Refused.".to_owned()) } else { Ok(()) }
            })
        }
    }

    fn plan(files: &[(&str, &str)]) -> EditPlan {
        let mut plan = EditPlan::default();
        for (path, text) in files {
            let start = text.find("f(").unwrap();
            let replacement = Some("g(".to_owned());
            plan.add(FileMatches {
                file: CodeFile {
                    path: (*path).into(),
                    shown: path.trim_start_matches('/').to_owned(),
                    language: by_name("rust").unwrap(),
                },
                text: (*text).to_owned(),
                matches: vec![Match { start, end: start + 2, replacement }],
            })
            .unwrap();
        }
        plan
    }

    async fn applied(
        host: &MemoryHost,
        plan: &EditPlan,
        approval: &dyn ChangeApproval,
    ) -> Result<ToolResult, ToolError> {
        let host = Arc::new(host.clone());
        let place = ChangePlace { queue: FileQueue::new(), host, undo: None, journals: None };
        let (cwd, cancel) = (Path::new("/"), CancellationToken::new());
        Application { plan, place: &place, approval, call_id: "c", cwd, cancel: &cancel }.run().await
    }

    fn text(host: &MemoryHost, path: &str) -> String {
        let mut text = String::new();
        let files = host.files(&CancellationToken::new());
        std::io::Read::read_to_string(&mut files.open(Path::new(path)).unwrap().content, &mut text).unwrap();
        text
    }

    fn host(files: &[(&str, &str)]) -> MemoryHost {
        let host = MemoryHost::new();
        for (path, text) in files {
            host.files(&CancellationToken::new()).replace(Path::new(path), text.as_bytes(), None).unwrap();
        }
        host
    }

    #[tokio::test]
    async fn all_files_are_changed_and_keep_their_form() {
        let host = host(&[("/a.rs", "\u{feff}f(1)\r\nx\r\n"), ("/b.rs", "y\nf(2)\n")]);
        let plan = plan(&[("/b.rs", "y\nf(2)\n"), ("/a.rs", "f(1)\nx\n")]);
        let asked = Refusing("", Mutex::default());
        let result = applied(&host, &plan, &asked).await.unwrap();
        assert_eq!(
            result.content[0].as_text(),
            Some("Made 2 changes in 2 files.\nb.rs: 1 change\na.rs: 1 change")
        );
        assert_eq!(
            (text(&host, "/a.rs").as_str(), text(&host, "/b.rs").as_str()),
            ("\u{feff}g(1)\r\nx\r\n", "y\ng(2)\n")
        );
        assert_eq!(*asked.1.lock().unwrap(), ["/b.rs", "/a.rs"]);
        let details = result.details.unwrap();
        assert!(
            details["diff"].as_str().unwrap().contains("g(1)") && details["files"][0]["patch"].is_string()
        );
    }

    #[tokio::test]
    async fn nothing_is_changed_where_one_file_is_refused_or_differs() {
        let files = [("/a.rs", "f(1)"), ("/b.rs", "f(2)")];
        let plan = plan(&files);
        let refused = host(&files);
        let error = applied(&refused, &plan, &Refusing("b.rs", Mutex::default())).await.unwrap_err();
        assert_eq!(
            (error.0.as_str(), text(&refused, "/a.rs").as_str()),
            ("Refused. Nothing was changed.", "f(1)")
        );
        let changed = host(&[("/a.rs", "f(1)"), ("/b.rs", "f(3)")]);
        let error = applied(&changed, &plan, &()).await.unwrap_err().0;
        assert!(error.starts_with("b.rs differs"), "{error}");
        assert_eq!(text(&changed, "/a.rs"), "f(1)");
        let missing = host(&[("/a.rs", "f(1)")]);
        assert!(applied(&missing, &plan, &()).await.unwrap_err().0.ends_with("Nothing was changed."));
        assert_eq!(text(&missing, "/a.rs"), "f(1)");
    }
}
