//! The changes that a rewriting makes, and how they are shown. Pure.

use std::path::PathBuf;

use agentd_agent::ToolError;
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    edit::{Change, apply, show},
    search::{List, Notices},
    syntax::search::{FileMatches, SearchFacts},
};

/// The most files that one call changes.
const MAX_FILES: usize = 1000;

/// The most bytes of the texts of these files: 64 MiB.
const MAX_BYTES: usize = 64 << 20;

/// Digits of the id of a preview.
const ID_DIGITS: usize = 10;

/// The longest patch for programs, in bytes: 1 MiB.
const MAX_PATCH: usize = 1 << 20;

/// The changes of one file.
#[derive(Debug)]
pub(super) struct FileEdit {
    pub(super) path: PathBuf,
    /// Its name in results.
    pub(super) shown: String,
    /// The text, with line feeds only and without byte order mark.
    pub(super) old: String,
    /// In the order of the text.
    pub(super) changes: Vec<Change>,
}

/// The changes of a call, in the order of a walk.
#[derive(Debug, Default)]
pub(super) struct EditPlan {
    pub(super) files: Vec<FileEdit>,
    bytes: usize,
}

impl EditPlan {
    /// Adds the matches of a file. Those that are as they should become are left out.
    ///
    /// # Errors
    /// There are too many changes for one call.
    pub(super) fn add(&mut self, found: FileMatches) -> Result<(), ToolError> {
        let FileMatches { file, text, matches } = found;
        let changes: Vec<Change> = matches
            .into_iter()
            .filter_map(|found| Some(Change { range: found.start..found.end, text: found.replacement? }))
            .filter(|change| text.get(change.range.clone()).is_some_and(|old| old != change.text))
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.bytes += text.len() + changes.iter().map(|change| change.text.len()).sum::<usize>();
        if self.files.len() == MAX_FILES || self.bytes > MAX_BYTES {
            return Err(ToolError(format!(
                "Too many changes for one call: it may change {MAX_FILES} files and {} MiB of text. Narrow path, glob or pattern.",
                MAX_BYTES >> 20
            )));
        }
        self.files.push(FileEdit { path: file.path, shown: file.shown, old: text, changes });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// How many places are changed.
    pub(super) fn changes(&self) -> usize {
        self.files.iter().map(|file| file.changes.len()).sum()
    }

    /// The id of these changes of these texts: another one as soon as a file or a change differs.
    pub(super) fn id(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        for file in &self.files {
            add(file.path.as_os_str().as_encoded_bytes());
            add(file.old.as_bytes());
            add(&(file.changes.len() as u64).to_le_bytes());
            for change in &file.changes {
                add(&(change.range.start as u64).to_le_bytes());
                add(&(change.range.end as u64).to_le_bytes());
                add(change.text.as_bytes());
            }
        }
        let digest = hash.finalize();
        let digits: String =
            digest.iter().take(ID_DIGITS.div_ceil(2)).map(|byte| format!("{byte:02x}")).collect();
        digits[..ID_DIGITS].to_owned()
    }

    /// The result of a call that only shows.
    pub(super) fn preview(&self, id: &str, facts: &SearchFacts, last: Vec<String>) -> ToolResult {
        let (list, mut notices) = (self.list(id, facts.files), Notices::default());
        facts.add_to(&mut notices);
        notices.detail("changes", self.changes());
        if !self.is_empty() {
            notices.detail("preview", json!({"id": id, "files": self.patches()}));
        }
        list.into_result_with(notices, last)
    }

    /// The text of a preview, for an error.
    pub(super) fn preview_text(&self, id: &str, last: Vec<String>) -> String {
        let result = self.list(id, 0).into_result_with(Notices::default(), last);
        result.content.iter().filter_map(|block| block.as_text()).collect()
    }

    /// The end comes first: a long diff is cut.
    fn list(&self, id: &str, searched: usize) -> List {
        let mut list = List::default();
        if self.is_empty() {
            list.push(&format!("No code in {searched} files would be changed"));
            return list;
        }
        list.push(&format!(
            "Preview {id}: {} in {}. Nothing is changed yet; call ast_edit with the same arguments and \"apply\": \"{id}\" to make \
             these changes.",
            counted(self.changes(), "change"),
            counted(self.files.len(), "file")
        ));
        for file in &self.files {
            list.push("");
            match file.patch() {
                Some(patch) => patch.lines().for_each(|line| list.push(line)),
                None => list.push(&format!(
                    "{}: {}, too long to show",
                    file.shown,
                    counted(file.changes.len(), "change")
                )),
            }
        }
        list
    }

    /// The patches, for programs: as many as fit.
    pub(super) fn patches(&self) -> Value {
        let mut left = MAX_PATCH;
        let of_file = |file: &FileEdit| {
            let patch = file.patch().filter(|patch| patch.len() <= left);
            left -= patch.as_ref().map_or(0, String::len);
            json!({"path": file.path.display().to_string(), "changes": file.changes.len(), "patch": patch})
        };
        Value::Array(self.files.iter().map(of_file).collect())
    }
}

impl FileEdit {
    /// The text with the changes.
    pub(super) fn new_text(&self) -> String {
        apply(&self.old, &self.changes)
    }

    fn patch(&self) -> Option<String> {
        show(&self.shown, &self.old, &self.new_text(), &self.changes).patch
    }

    /// The change as the result of `edit` shows it.
    pub(super) fn diff(&self) -> String {
        show(&self.shown, &self.old, &self.new_text(), &self.changes).diff
    }
}

/// `1 file`, `2 files`.
pub(super) fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use agentd_syntax::{Match, by_name};

    use super::*;
    use crate::syntax::read::CodeFile;

    fn found(path: &str, text: &str, changes: &[(usize, usize, &str)]) -> FileMatches {
        FileMatches {
            file: CodeFile {
                path: format!("/w/{path}").into(),
                shown: path.into(),
                language: by_name("rust").unwrap(),
            },
            text: text.to_owned(),
            matches: changes
                .iter()
                .map(|(start, end, new)| Match {
                    start: *start,
                    end: *end,
                    replacement: Some((*new).to_owned()),
                })
                .collect(),
        }
    }

    #[test]
    fn a_preview_shows_the_changes_and_names_them() {
        let mut plan = EditPlan::default();
        plan.add(found("a.rs", "f(1);\n", &[(0, 4, "g(1)")])).unwrap();
        plan.add(found("same.rs", "g(1);\n", &[(0, 4, "g(1)")])).unwrap();
        assert_eq!((plan.files.len(), plan.changes()), (1, 1));
        let id = plan.id();
        assert_eq!(id.len(), ID_DIGITS);
        let text = plan.preview_text(&id, vec!["A note".into()]);
        assert!(
            text.starts_with(&format!("Preview {id}: 1 change in 1 file. Nothing is changed yet;")),
            "{text}"
        );
        assert!(text.contains("-f(1);\n+g(1);") && text.ends_with("[A note]"), "{text}");
        assert_eq!(plan.patches()[0]["path"], "/w/a.rs");
        let mut other = EditPlan::default();
        other.add(found("a.rs", "f(1); \n", &[(0, 4, "g(1)")])).unwrap();
        assert_ne!(other.id(), id);
        assert!(EditPlan::default().preview_text("x", Vec::new()).starts_with("No code in 0 files"));
    }

    #[test]
    fn too_many_changes_are_refused() {
        let mut plan = EditPlan::default();
        for number in 0..MAX_FILES {
            plan.add(found(&format!("{number}.rs"), "f", &[(0, 1, "g")])).unwrap();
        }
        assert!(
            plan.add(found("more.rs", "f", &[(0, 1, "g")])).unwrap_err().0.starts_with("Too many changes")
        );
    }
}
