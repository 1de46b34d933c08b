//! The `write` tool.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_checkpoints::SessionCheckpoints;
use agentd_protocol::{
    agent_mode::LOCAL_URL,
    tool::{ConstrainedSampling, ToolResult, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    arguments, blocking, errno,
    file_queue::FileQueue,
    home::Home,
    operations::{FileHost, FileSystem, LocalHost},
    read::{SessionUrls, scheme},
    session_folder::{SessionFolder, Use, own_file},
    undo::explain_gap,
};

/// Creates files and replaces whole ones.
pub struct WriteTool {
    queue: FileQueue,
    home: Home,
    host: Arc<dyn FileHost>,
    undo: Option<Arc<SessionCheckpoints>>,
    own: Option<SessionFolder>,
    urls: SessionUrls,
}

impl WriteTool {
    /// The tool of the session that `queue` belongs to, with the home directory of the process for `~`.
    #[must_use]
    pub fn new(queue: FileQueue) -> Self {
        Self {
            queue,
            home: Home::default(),
            host: Arc::new(LocalHost),
            undo: None,
            own: None,
            urls: SessionUrls::default(),
        }
    }

    /// Sets the session's home directory, which `~` means in paths.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Home::new(home);
        self
    }

    /// Sets the host of the files; the default is this machine.
    #[must_use]
    pub fn with_host(mut self, host: Arc<dyn FileHost>) -> Self {
        self.host = host;
        self
    }

    /// Sets the folder of the session's own files, for `local://NAME`.
    #[must_use]
    pub fn with_own_files(mut self, folder: SessionFolder) -> Self {
        self.own = Some(folder);
        self
    }

    /// Sets the URLs that are no files.
    #[must_use]
    pub fn with_urls(mut self, urls: SessionUrls) -> Self {
        self.urls = urls;
        self
    }

    /// The error of a URL of a scheme that there is not.
    fn unknown_scheme(&self, scheme: &str) -> ToolError {
        let mut known: Vec<String> =
            std::iter::once(LOCAL_URL.to_owned()).chain(self.urls.starts(true)).collect();
        known.sort();
        ToolError(format!("Unknown URL scheme: {scheme}://. write knows {}.", known.join(", ")))
    }

    /// Sets what keeps the changes of files; by default nothing does.
    #[must_use]
    pub fn with_undo(mut self, undo: Option<Arc<SessionCheckpoints>>) -> Self {
        self.undo = undo;
        self
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| Arc::new(spec()));

fn spec() -> ToolSpec {
    ToolSpec {
        name: "write".to_owned(),
        description: "Write a file: creates it, with the folders it needs, or replaces all of its content."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                "content": {"type": "string", "description": "The whole new content of the file"},
            },
            "required": ["path", "content"],
        }),
        constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
    }
}

#[derive(Deserialize)]
struct WriteArguments {
    path: String,
    content: String,
}

impl Tool for WriteTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Create a file, or replace a whole one")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec!["Use write only for new files and complete rewrites; change parts of a file with edit."]
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        // Take the place in the queue now, not when the future first runs.
        let ticket = self.queue.ticket();
        Box::pin(async move {
            let WriteArguments { path: given, content } = arguments::parse(invocation.arguments)?;
            if let Some((urls, rest)) = self.urls.find(&given) {
                // It is no file that others wait for.
                drop(ticket);
                return urls.write(rest, content, &invocation.cancel).await;
            }
            let (mut host, mut undo) = (Arc::clone(&self.host), self.undo.clone());
            let path = match own_file(self.own.as_ref(), &given, Use::Written).await? {
                Some(path) => {
                    // They are on this machine, wherever the tools work, and are no part of the project.
                    (host, undo) = (Arc::new(LocalHost), None);
                    path
                }
                None => self.home.resolve(&given, &invocation.cwd, &*host)?,
            };
            let cancel = invocation.cancel;
            let is_url = !given.starts_with(LOCAL_URL);
            let unknown = scheme(&given).filter(|_| is_url).map(|scheme| self.unknown_scheme(scheme));
            let turn = blocking::enter(ticket, &*host, &path, &cancel, |error| {
                ToolError(errno::describe(error, "open", &path))
            })
            .await?;
            let files = host.files(&cancel);
            let call_id = invocation.call_id;
            blocking::run(move || {
                // What names a file, or one in a folder that is there, is a path all the same.
                let is_path = |path: &Path| files.about(path).is_ok();
                if let Some(unknown) = unknown
                    && !is_path(&path)
                    && !path.parent().is_some_and(is_path)
                {
                    return Err(unknown);
                }
                let write = || write(&*files, &path, &content, &cancel);
                let (done, gap) = match &undo {
                    Some(undo) => undo.change_file(Some(&call_id), "write", turn.real_path(), write),
                    None => (write(), None),
                };
                drop(turn);
                explain_gap(done.map(|()| ToolResult::text(format!("Successfully wrote to {given}"))), gap)
            })
            .await
        })
    }
}

fn write(
    files: &dyn FileSystem,
    path: &Path,
    content: &str,
    cancel: &CancellationToken,
) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        return Err(blocking::aborted());
    }
    // Check before creating folders.
    files.may_write(path).map_err(|error| ToolError(error.to_string()))?;
    if let Some(folder) = path.parent() {
        files.create_folders(folder).map_err(|error| ToolError(errno::describe(&error, "mkdir", folder)))?;
    }
    files.replace(path, content.as_bytes(), None).map_err(|error| ToolError(error.to_string()))
}

#[cfg(test)]
mod tests;
