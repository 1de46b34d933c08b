//! The tools that read and change files, with language servers beside them.

use std::{path::PathBuf, sync::Arc};

use agentd_agent::{ExecutionMode, Exposure, Invocation, PrepareFuture, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    patch::PATCH_TOOL,
    tool::{ToolAnnotations, ToolResult, ToolSpec},
};
use agentd_tools::{files_of_patch, resolve_path_argument};
use serde_json::{Map, Value};

use crate::{
    edit_diagnostics::with_report,
    session::{DiagnosticsOnEdit, SessionServers},
    table::language_of,
};

/// A tool that reads or changes a file, with what language servers have to say of that.
pub struct DiagnosedTool {
    inner: Arc<dyn Tool>,
    servers: Arc<SessionServers>,
    changes: bool,
}

impl DiagnosedTool {
    /// A tool that changes the file of its argument `path`, or of a diff of one file: its results say what it broke. The tool itself where
    /// the settings want no diagnostics.
    #[must_use]
    pub fn changing(inner: Arc<dyn Tool>, servers: &Arc<SessionServers>) -> Arc<dyn Tool> {
        Self::around(inner, servers, true)
    }

    /// A tool that reads the file of its argument `path`: the servers for it are started and get it.
    #[must_use]
    pub fn reading(inner: Arc<dyn Tool>, servers: &Arc<SessionServers>) -> Arc<dyn Tool> {
        Self::around(inner, servers, false)
    }

    fn around(inner: Arc<dyn Tool>, servers: &Arc<SessionServers>, changes: bool) -> Arc<dyn Tool> {
        if servers.parts.options.on_edit == DiagnosticsOnEdit::Off {
            return inner;
        }
        Arc::new(Self { inner, servers: Arc::clone(servers), changes })
    }

    /// The real path of the file of a call; `None` for what is no file of this machine that a server could be for.
    async fn path_of(&self, invocation: &Invocation) -> Option<PathBuf> {
        let text = |name: &str| invocation.arguments.get(name)?.as_str();
        let given = if self.inner.spec().name == PATCH_TOOL {
            // Of several files that change at once, servers would see some with the texts of before.
            let [file] = <[String; 1]>::try_from(files_of_patch(text("diff")?)).ok()?;
            file
        } else {
            text("path")?.to_owned()
        };
        if given.contains("://") {
            return None;
        }
        let path = resolve_path_argument(&given, &invocation.cwd, &self.servers.place.home).ok()?;
        self.servers.real_path(path).await.ok()
    }

    async fn with_diagnostics(
        &self,
        invocation: Invocation,
        changing: ToolFuture<'_>,
    ) -> Result<ToolResult, ToolError> {
        let cancel = invocation.cancel.clone();
        let path = self.path_of(&invocation).await;
        let Some(path) = path else { return changing.await };
        let before = self.servers.before_edit(&path, &cancel).await;
        let result = changing.await?;
        if !before.is_watched() {
            let language = before.language;
            self.servers.prepare(&path, &language).await;
            return Ok(result);
        }
        let report = self.servers.after_edit(before, &cancel).await;
        Ok(with_report(&self.servers, result, &report))
    }
}

impl Tool for DiagnosedTool {
    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        // The tool takes its place in the queue of the file now, in the order of the calls.
        let reading = self.inner.execute(invocation.clone());
        if self.changes {
            return Box::pin(self.with_diagnostics(invocation, reading));
        }
        Box::pin(async move {
            let result = reading.await?;
            if let Some(path) = self.path_of(&invocation).await {
                let servers = Arc::clone(&self.servers);
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let language = language_of(&name);
                // Nobody who reads waits for a server.
                self.servers.parts.tasks.spawn(async move { servers.prepare(&path, &language).await });
            }
            Ok(result)
        })
    }

    fn spec(&self) -> &Arc<ToolSpec> {
        self.inner.spec()
    }

    fn label(&self) -> Option<&str> {
        self.inner.label()
    }

    fn annotations(&self) -> Option<&ToolAnnotations> {
        self.inner.annotations()
    }

    fn is_trusted_read(&self) -> bool {
        self.inner.is_trusted_read()
    }

    fn snippet(&self) -> Option<&str> {
        self.inner.snippet()
    }

    fn guidelines(&self) -> Vec<&str> {
        self.inner.guidelines()
    }

    fn execution(&self) -> ExecutionMode {
        self.inner.execution()
    }

    fn prepares_images(&self) -> bool {
        self.inner.prepares_images()
    }

    fn comes_with(&self) -> Option<&str> {
        self.inner.comes_with()
    }

    fn comes_with_mode(&self) -> bool {
        self.inner.comes_with_mode()
    }

    fn declares_reading(&self) -> bool {
        self.inner.declares_reading()
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.inner.prepare(arguments)
    }

    fn prepare_remotely<'a>(&'a self, arguments: &'a Map<String, Value>) -> Option<PrepareFuture<'a>> {
        self.inner.prepare_remotely(arguments)
    }

    fn ends_run(&self) -> bool {
        self.inner.ends_run()
    }

    fn exposure(&self) -> Exposure {
        self.inner.exposure()
    }

    fn definition_facts(&self) -> Option<&Map<String, Value>> {
        self.inner.definition_facts()
    }
}
