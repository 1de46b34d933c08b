//! A running server: what it is asked and told, its texts, its end.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use super::{
    documents::{Documents, SyncedFile},
    server_link::ServerLink,
};

/// A running server. Without its last owner it ends.
pub(crate) struct Client {
    pub(super) link: Arc<ServerLink>,
    pub(super) documents: AsyncMutex<Documents>,
    /// Fires when nothing of it is left.
    pub(super) gone: CancellationToken,
}

impl Deref for Client {
    type Target = ServerLink;

    fn deref(&self) -> &ServerLink {
        &self.link
    }
}

impl Client {
    /// Fires when nothing of it is left.
    pub(crate) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// Ends it: it is asked to, and killed when it does not. Returns when nothing of it is left.
    ///
    /// Cancel safety: dropped early, it ends without having been asked.
    pub(crate) async fn end(&self, why: &str) {
        let guard = self.link.over.clone().drop_guard();
        if self.ended().is_none() {
            let (limit, cancel) = (Duration::from_secs(1), CancellationToken::new());
            let _ = self.connection.request("shutdown", &Value::Null, limit, &cancel).await;
            let exit = self.connection.notify("exit", &Value::Null);
            let _ = tokio::time::timeout(Duration::from_millis(200), exit).await;
        }
        self.connection.close(why);
        drop(guard);
        self.gone.cancelled().await;
    }

    /// Gives the server the text of a file as it is on disk now, and forgets those that have been there longest. Returns the text.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, is no text or too long, or the server is gone.
    pub(crate) async fn sync(&self, path: &Path, language: &str) -> Result<SyncedFile, String> {
        self.touch();
        let mut documents = self.documents.lock().await;
        let synced = documents.sync(&self.link, path, language).await;
        drop(documents);
        self.touch();
        synced
    }

    /// The numbers of the texts that the server has.
    pub(crate) async fn versions(&self) -> std::collections::BTreeMap<PathBuf, i64> {
        self.documents.lock().await.versions()
    }

    /// The files that the server has, the last used ones first.
    pub(crate) async fn open_files(&self) -> Vec<(PathBuf, String)> {
        self.documents.lock().await.paths()
    }

    /// Gives the server the texts of all its files as they are on disk now, and tells it of files that changed or are gone.
    pub(crate) async fn refresh(&self) {
        let mut documents = self.documents.lock().await;
        documents.refresh(&self.link).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.link.over.cancel();
    }
}
