//! Edits of several files as servers propose them: read leniently, carried out in memory first, then made as one change.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_tools::{FileChange, ReadFile, operations::FileHost};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{FileText, read_text},
    position::Encoding,
    text_edit::{self, TextEdit},
    uri::path_of,
};

/// Files of one edit.
const MAX_FILES: usize = 500;

/// Bytes of their texts together.
const MAX_BYTES: usize = 64 << 20;

/// The longest file that is moved or removed: 64 MiB, as for the tool `edit`.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A step of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Edit {
        path: PathBuf,
        /// The version of the text that it is of, where the server says so.
        version: Option<i64>,
        edits: Vec<TextEdit>,
    },
    Create {
        path: PathBuf,
        overwrite: bool,
        ignore_if_exists: bool,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
        ignore_if_missing: bool,
    },
}

/// The steps of a `WorkspaceEdit`.
///
/// # Errors
/// What of it cannot be used, for the model.
pub(crate) fn operations(edit: &Value) -> Result<Vec<Operation>, String> {
    let file = |uri: Option<&Value>| {
        let uri = uri.and_then(Value::as_str).ok_or("the server's edit names no file")?;
        path_of(uri).ok_or_else(|| format!("the server's edit is of no file of this machine: {uri}"))
    };
    let edits = |list: Option<&Value>| -> Result<Vec<TextEdit>, String> {
        list.and_then(Value::as_array).into_iter().flatten().map(TextEdit::of).collect()
    };
    let mut operations = Vec::new();
    if let Some(changes) = edit.get("documentChanges").and_then(Value::as_array) {
        for change in changes {
            let option = |name: &str| change.pointer(&format!("/options/{name}")) == Some(&Value::Bool(true));
            operations.push(match change.get("kind").and_then(Value::as_str) {
                None => Operation::Edit {
                    path: file(change.pointer("/textDocument/uri"))?,
                    version: change.pointer("/textDocument/version").and_then(Value::as_i64),
                    edits: edits(change.get("edits"))?,
                },
                Some("create") => Operation::Create {
                    path: file(change.get("uri"))?,
                    overwrite: option("overwrite"),
                    ignore_if_exists: option("ignoreIfExists"),
                },
                Some("rename") => {
                    Operation::Move { from: file(change.get("oldUri"))?, to: file(change.get("newUri"))? }
                }
                Some("delete") => Operation::Remove {
                    path: file(change.get("uri"))?,
                    ignore_if_missing: option("ignoreIfNotExists"),
                },
                Some(other) => {
                    return Err(format!("the server's edit has a step of an unknown kind: {other}"));
                }
            });
        }
        return Ok(operations);
    }
    for (uri, list) in edit.get("changes").and_then(Value::as_object).into_iter().flatten() {
        let path = file(Some(&Value::String(uri.clone())))?;
        operations.push(Operation::Edit { path, version: None, edits: edits(Some(list))? });
    }
    Ok(operations)
}

/// What becomes of one file.
#[derive(Debug, Clone)]
pub(crate) struct PlannedFile {
    /// Where it is afterwards, or where it was.
    pub(crate) path: PathBuf,
    /// Where it was, if that was elsewhere.
    pub(crate) from: Option<PathBuf>,
    /// Its text before; `None` for a new file, or one that is not read.
    pub(crate) old: Option<Arc<str>>,
    /// Its text afterwards; `None` for one that goes, or one that is not read.
    pub(crate) new: Option<String>,
    pub(crate) is_removed: bool,
    /// Replacements in it.
    pub(crate) edits: usize,
}

/// A change of files that is ready to be made.
#[derive(Debug)]
pub(crate) struct EditPlan {
    pub(crate) files: Vec<PlannedFile>,
    pub(crate) changes: Vec<FileChange>,
}

/// A file in memory.
struct DraftFile {
    /// Where it is on disk; `None` for a new one.
    origin: Option<PathBuf>,
    /// As it was read; `None` for one that is not.
    read: Option<FileText>,
    /// Its text so far, where it was read or is new.
    text: Option<String>,
    edits: usize,
}

/// Carries an edit out in memory.
pub(crate) struct Draft<'a> {
    pub(crate) host: &'a Arc<dyn FileHost>,
    pub(crate) encoding: Encoding,
    pub(crate) cancel: &'a CancellationToken,
    /// The versions of the texts that the server has, by their files.
    pub(crate) versions: BTreeMap<PathBuf, i64>,
    files: BTreeMap<PathBuf, Option<DraftFile>>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        host: &'a Arc<dyn FileHost>,
        encoding: Encoding,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { host, encoding, cancel, versions: BTreeMap::new(), files: BTreeMap::new() }
    }

    /// What the steps come to. Nothing is changed yet.
    ///
    /// # Errors
    /// Why they cannot be carried out, for the model.
    pub(crate) async fn plan(mut self, operations: Vec<Operation>) -> Result<EditPlan, String> {
        for operation in operations {
            self.step(operation).await?;
            if self.files.len() > MAX_FILES {
                return Err(format!("the server's edit is of more than {MAX_FILES} files"));
            }
            let texts = self.files.values().flatten().filter_map(|file| file.text.as_ref());
            if texts.map(String::len).sum::<usize>() > MAX_BYTES {
                return Err(format!("the server's edit is of files with more than {} MiB", MAX_BYTES >> 20));
            }
        }
        self.finish().await
    }

    async fn step(&mut self, operation: Operation) -> Result<(), String> {
        match operation {
            Operation::Edit { path, version, edits } => {
                if let (Some(told), Some(has)) = (version, self.versions.get(&path))
                    && told != *has
                {
                    return Err(format!("{} has changed meanwhile: try it again", path.display()));
                }
                let encoding = self.encoding;
                self.load(&path).await?;
                let Some(Some(file)) = self.files.get_mut(&path) else {
                    return Err(format!(
                        "the server's edit changes a file that it removes: {}",
                        path.display()
                    ));
                };
                let text = file.text.as_deref().unwrap_or_default();
                let changed = text_edit::apply(text, &edits, encoding);
                file.text = Some(changed.map_err(|why| format!("{}: {why}", path.display()))?);
                file.edits += edits.len();
            }
            Operation::Create { path, overwrite, ignore_if_exists } => {
                if self.exists(&path).await {
                    if ignore_if_exists {
                        return Ok(());
                    }
                    if !overwrite {
                        return Err(format!("{} exists already", path.display()));
                    }
                    self.load(&path).await?;
                    if let Some(Some(file)) = self.files.get_mut(&path) {
                        file.text = Some(String::new());
                    }
                    return Ok(());
                }
                let new = DraftFile { origin: None, read: None, text: Some(String::new()), edits: 0 };
                self.files.insert(path, Some(new));
            }
            Operation::Move { from, to } => {
                if self.exists(&to).await {
                    return Err(format!("{} exists already", to.display()));
                }
                if !self.is_file(&from).await {
                    return Err(format!("{} is not a file that could be renamed", from.display()));
                }
                let file = match self.files.insert(from.clone(), None) {
                    Some(file) => file,
                    None => Some(DraftFile { origin: Some(from), read: None, text: None, edits: 0 }),
                };
                self.files.insert(to, file);
            }
            Operation::Remove { path, ignore_if_missing } => {
                if !self.exists(&path).await {
                    if ignore_if_missing {
                        return Ok(());
                    }
                    return Err(format!("{} is not there to be removed", path.display()));
                }
                if !self.is_file(&path).await {
                    return Err(format!("{} is a folder, and is not removed", path.display()));
                }
                self.files.insert(path, None);
            }
        }
        Ok(())
    }

    /// Reads a file that is not in memory yet.
    async fn load(&mut self, path: &Path) -> Result<(), String> {
        let origin = match self.files.get(path) {
            Some(Some(DraftFile { origin: Some(origin), text: None, .. })) => origin.clone(),
            Some(_) => return Ok(()),
            None => path.to_owned(),
        };
        let read = read_text(self.host, &origin, self.cancel).await?;
        let text = Some(read.text.to_string());
        self.files.insert(
            path.to_owned(),
            Some(DraftFile { origin: Some(origin), read: Some(read), text, edits: 0 }),
        );
        Ok(())
    }

    async fn exists(&self, path: &Path) -> bool {
        match self.files.get(path) {
            Some(file) => file.is_some(),
            None => self.about(path).await.is_some(),
        }
    }

    async fn is_file(&self, path: &Path) -> bool {
        match self.files.get(path) {
            Some(file) => file.is_some(),
            None => self.about(path).await == Some(agentd_tools::operations::FileKind::File),
        }
    }

    async fn about(&self, path: &Path) -> Option<agentd_tools::operations::FileKind> {
        let (files, path) = (self.host.files(self.cancel), path.to_owned());
        let looking = tokio::task::spawn_blocking(move || files.about(&path).ok().map(|about| about.kind));
        looking.await.ok().flatten()
    }

    async fn finish(self) -> Result<EditPlan, String> {
        let Self { host, cancel, files, .. } = self;
        let moved: Vec<PathBuf> = files.values().flatten().filter_map(|file| file.origin.clone()).collect();
        let (mut planned, mut writes, mut moves, mut removes) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (path, file) in files {
            let Some(DraftFile { origin, read, text, edits }) = file else {
                if moved.contains(&path) {
                    continue;
                }
                let (files, gone) = (host.files(cancel), path.clone());
                let reading = tokio::task::spawn_blocking(move || {
                    ReadFile::read(&*files, &gone, &gone.display().to_string(), MAX_FILE_BYTES)
                });
                // A file that was made and removed by the edit was never there.
                if let Ok(before) = reading.await.map_err(|error| error.to_string())? {
                    let old = std::str::from_utf8(&before.content).ok().map(Arc::from);
                    planned.push(PlannedFile {
                        path: path.clone(),
                        from: None,
                        old,
                        new: None,
                        is_removed: true,
                        edits: 0,
                    });
                    removes.push(FileChange::Remove { path, before });
                }
                continue;
            };
            let old = read.as_ref().map(|read| Arc::clone(&read.text));
            let is_changed = text.as_deref() != old.as_deref();
            let from = origin.clone().filter(|origin| *origin != path);
            if !is_changed && from.is_none() {
                continue;
            }
            if let Some(text) = text.as_ref().filter(|_| is_changed) {
                writes.push(FileChange::Write {
                    // A file that moves is changed where it is.
                    path: origin.unwrap_or_else(|| path.clone()),
                    content: text.clone().into_bytes(),
                    before: read.map(|read| read.file),
                });
            }
            if let Some(from) = &from {
                moves.push(FileChange::Move { from: from.clone(), to: path.clone() });
            }
            planned.push(PlannedFile { path, from, old, new: text, is_removed: false, edits });
        }
        // What is removed cannot be taken back as well as the rest: it comes last.
        let changes = writes.into_iter().chain(moves).chain(removes).collect();
        Ok(EditPlan { files: planned, changes })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_tools::operations::LocalHost;
    use serde_json::json;

    use super::*;
    use crate::uri::file_uri;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            Self(folder)
        }

        fn uri(&self, name: &str) -> String {
            file_uri(&self.0.path().join(name))
        }

        fn plan(&self, edit: &Value) -> Result<EditPlan, String> {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
            let (host, cancel): (Arc<dyn FileHost>, _) = (Arc::new(LocalHost), CancellationToken::new());
            let operations = operations(edit)?;
            runtime.block_on(Draft::new(&host, Encoding::Utf16, &cancel).plan(operations))
        }

        fn told(&self, edit: &Value) -> Vec<String> {
            let plan = self.plan(edit).unwrap();
            let name = |path: &Path| path.strip_prefix(self.0.path()).unwrap().display().to_string();
            let told = |change: &FileChange| match change {
                FileChange::Write { path, content, before } => {
                    let kind = if before.is_some() { "change" } else { "make" };
                    format!("{kind} {} {:?}", name(path), String::from_utf8_lossy(content))
                }
                FileChange::Move { from, to } => format!("move {} {}", name(from), name(to)),
                FileChange::Remove { path, .. } => format!("remove {}", name(path)),
            };
            plan.changes.iter().map(told).collect()
        }
    }

    fn replace(from: u64, to: u64, text: &str) -> Value {
        let position = |column: u64| json!({"line": 0, "character": column});
        json!({"range": {"start": position(from), "end": position(to)}, "newText": text})
    }

    #[test]
    fn both_forms_of_edits_are_read() {
        let folder = Folder::new(&[("a", "one"), ("b", "two")]);
        let changes = json!({"changes": {folder.uri("a"): [replace(0, 1, "O")], folder.uri("b"): []}});
        assert_eq!(folder.told(&changes), ["change a \"One\""]);
        let document = json!({"uri": folder.uri("a"), "version": null});
        let steps = json!({"documentChanges": [
            {"textDocument": document, "edits": [replace(3, 3, "!")]},
            {"kind": "create", "uri": folder.uri("c")},
            {"textDocument": {"uri": folder.uri("c")}, "edits": [replace(0, 0, "new")]},
            {"kind": "rename", "oldUri": folder.uri("a"), "newUri": folder.uri("d")},
            {"textDocument": {"uri": folder.uri("d")}, "edits": [replace(0, 3, "1")]},
            {"kind": "delete", "uri": folder.uri("b")},
        ]});
        assert_eq!(folder.told(&steps), ["make c \"new\"", "change a \"1!\"", "move a d", "remove b"]);
    }

    #[test]
    fn what_is_only_moved_is_not_read() {
        let folder = Folder::new(&[]);
        fs::write(folder.0.path().join("a"), [0xff, 0]).unwrap();
        let step = json!({"documentChanges": [
            {"kind": "rename", "oldUri": folder.uri("a"), "newUri": folder.uri("b")},
        ]});
        assert_eq!(folder.told(&step), ["move a b"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let folder = Folder::new(&[("a", "one"), ("b", "two")]);
        let refused = |step: Value| folder.plan(&json!({"documentChanges": [step]})).unwrap_err();
        let (a, b, c) = (folder.uri("a"), folder.uri("b"), folder.uri("c"));
        assert!(refused(json!({"kind": "create", "uri": a})).contains("exists already"));
        assert!(refused(json!({"kind": "rename", "oldUri": a, "newUri": b})).contains("exists already"));
        assert!(
            refused(json!({"kind": "rename", "oldUri": c, "newUri": folder.uri("d")}))
                .contains("is not a file")
        );
        assert!(refused(json!({"kind": "delete", "uri": c})).contains("is not there"));
        assert!(refused(json!({"kind": "else"})).contains("unknown kind: else"));
        assert!(
            refused(json!({"textDocument": {"uri": c}, "edits": [replace(0, 0, "x")]})).contains("ENOENT")
        );
        assert!(refused(json!({"textDocument": {"uri": "untitled:x"}, "edits": []})).contains("untitled:x"));
    }
}
