//! The texts that a server has: opened, changed, saved and closed as the files on disk are.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_tools::{
    ReadFile,
    operations::{FileHost, FileStamp},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::server_link::ServerLink;
use crate::uri::file_uri;

/// The longest text that a server gets: 4 MiB. Longer ones are data.
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// Texts that a server has at the same time.
const MAX_OPEN: usize = 200;

/// Their bytes together: 32 MiB.
const MAX_OPEN_BYTES: usize = 32 << 20;

/// A text of a file on disk.
#[derive(Clone)]
pub(crate) struct FileText {
    pub(crate) text: Arc<str>,
    pub(crate) file: ReadFile,
}

/// A text that the server has been given.
pub(crate) struct SyncedFile {
    pub(crate) text: Arc<str>,
    /// Its number among the texts of this file.
    pub(crate) version: i64,
    /// How often the server had spoken of the file before it got this text.
    pub(crate) reports: u64,
    /// Whether the server got it just now.
    pub(crate) is_new: bool,
}

/// Reads a text. The reading happens on a blocking thread.
///
/// # Errors
/// A sentence for the model.
pub(crate) async fn read_text(
    host: &Arc<dyn FileHost>,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<FileText, String> {
    let (files, path) = (host.files(cancel), path.to_owned());
    let reading = tokio::task::spawn_blocking(move || {
        let given = path.display().to_string();
        let file = ReadFile::read(&*files, &path, &given, MAX_DOCUMENT_BYTES)?;
        let text = std::str::from_utf8(&file.content)
            .map_err(|error| format!("{given} is not UTF-8 text (at byte {})", error.valid_up_to()))?;
        Ok(FileText { text: text.into(), file })
    });
    reading.await.unwrap_or_else(|error| Err(format!("reading stopped unexpectedly: {error}")))
}

struct Document {
    version: i64,
    language: String,
    text: Arc<str>,
    stamp: FileStamp,
    last_use: u64,
}

/// The texts of one server.
#[derive(Default)]
pub(super) struct Documents {
    open: HashMap<PathBuf, Document>,
    bytes: usize,
    uses: u64,
}

impl Documents {
    pub(super) fn versions(&self) -> BTreeMap<PathBuf, i64> {
        self.open.iter().map(|(path, document)| (path.clone(), document.version)).collect()
    }

    pub(super) fn paths(&self) -> Vec<(PathBuf, String)> {
        let mut open: Vec<(&PathBuf, &Document)> = self.open.iter().collect();
        open.sort_by_key(|(_, document)| std::cmp::Reverse(document.last_use));
        open.into_iter().map(|(path, document)| (path.clone(), document.language.clone())).collect()
    }

    pub(super) async fn sync(
        &mut self,
        client: &ServerLink,
        path: &Path,
        language: &str,
    ) -> Result<SyncedFile, String> {
        let read = match read_text(&client.host, path, &CancellationToken::new()).await {
            Ok(read) => read,
            Err(error) => {
                // What cannot be read any more is not the server's either.
                self.close(client, path).await;
                return Err(error);
            }
        };
        self.put(client, path, language, read).await
    }

    async fn put(
        &mut self,
        client: &ServerLink,
        path: &Path,
        language: &str,
        FileText { text, file }: FileText,
    ) -> Result<SyncedFile, String> {
        self.uses += 1;
        let uses = self.uses;
        let uri = file_uri(path);
        let failed = |error| format!("{}: {error}", client.name);
        let reports = client.reports(path);
        if let Some(document) = self.open.get_mut(path) {
            document.last_use = uses;
            document.stamp = file.stamp;
            if document.text == text {
                return Ok(SyncedFile { text, version: document.version, reports, is_new: false });
            }
            let version = document.version + 1;
            let params = json!({
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"text": &*text}],
            });
            client.connection.notify("textDocument/didChange", &params).await.map_err(failed)?;
            self.bytes = self.bytes - document.text.len() + text.len();
            document.version = version;
            document.text = Arc::clone(&text);
            self.saved(client, &uri, &text).await.map_err(failed)?;
            client.files_changed(&[(path.to_owned(), 2)]).await;
            return Ok(SyncedFile { text, version, reports, is_new: true });
        }
        self.make_room(client, text.len()).await;
        let params = json!({
            "textDocument": {"uri": uri, "languageId": language, "version": 1, "text": &*text},
        });
        client.connection.notify("textDocument/didOpen", &params).await.map_err(failed)?;
        self.bytes += text.len();
        self.open.insert(
            path.to_owned(),
            Document {
                version: 1,
                language: language.to_owned(),
                text: Arc::clone(&text),
                stamp: file.stamp,
                last_use: uses,
            },
        );
        Ok(SyncedFile { text, version: 1, reports, is_new: true })
    }

    /// Tells that a file was saved, to a server that wants to know.
    async fn saved(
        &self,
        client: &ServerLink,
        uri: &str,
        text: &str,
    ) -> Result<(), crate::connection::RequestError> {
        let mut params = json!({"textDocument": {"uri": uri}});
        match client.capability("/textDocumentSync/save") {
            None | Some(Value::Null | Value::Bool(false)) => {
                // A number says how texts are synchronised, and nothing of saving: most servers want to know then.
                if client.capability("/textDocumentSync").is_some_and(|sync| sync.is_object())
                    && !client.can("", "textDocument/didSave")
                {
                    return Ok(());
                }
            }
            Some(save) if save.get("includeText") == Some(&Value::Bool(true)) => {
                params["text"] = text.into();
            }
            Some(_) => {}
        }
        client.connection.notify("textDocument/didSave", &params).await
    }

    /// Closes what was used longest ago until there is room for a text more.
    async fn make_room(&mut self, client: &ServerLink, bytes: usize) {
        while !self.open.is_empty() && (self.open.len() >= MAX_OPEN || self.bytes + bytes > MAX_OPEN_BYTES) {
            let oldest = self.open.iter().min_by_key(|(_, document)| document.last_use);
            let Some(path) = oldest.map(|(path, _)| path.clone()) else { return };
            self.close(client, &path).await;
        }
    }

    async fn close(&mut self, client: &ServerLink, path: &Path) {
        let Some(document) = self.open.remove(path) else { return };
        self.bytes -= document.text.len();
        let params = json!({"textDocument": {"uri": file_uri(path)}});
        if let Err(error) = client.connection.notify("textDocument/didClose", &params).await {
            tracing::debug!(%error, server = client.name, "a language server was not told of a closed file");
        }
    }

    pub(super) async fn refresh(&mut self, client: &ServerLink) {
        let known: Vec<(PathBuf, String, FileStamp)> = self
            .open
            .iter()
            .map(|(path, document)| (path.clone(), document.language.clone(), document.stamp))
            .collect();
        let files = client.host.files(&CancellationToken::new());
        let looking = tokio::task::spawn_blocking(move || {
            known
                .into_iter()
                .filter_map(|(path, language, stamp)| match files.open(&path) {
                    Ok(now) if stamp.is_sure && !stamp.differs(&now.stamp) => None,
                    Ok(_) => Some((path, Some(language))),
                    Err(_) => Some((path, None)),
                })
                .collect::<Vec<_>>()
        });
        let Ok(changed) = looking.await else { return };
        for (path, language) in changed {
            let synced = match language {
                Some(language) => self.sync(client, &path, &language).await.map(drop),
                None => Err(format!("{} is gone", path.display())),
            };
            if let Err(why) = synced {
                tracing::debug!(why, server = client.name, "a file of a language server is closed");
                self.close(client, &path).await;
                client.state().diagnostics.forget(&path);
                client.files_changed(&[(path, 3)]).await;
            }
        }
    }
}
