//! The common frame of the search tools: reads the arguments, searches on a blocking thread, returns the result.

use std::{
    io::ErrorKind,
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::tool::{ToolResult, ToolSpec};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::{
    arguments, blocking, errno,
    home::Home,
    operations::{FileFacts, FileHost, FileKind, FileSystem, LocalHost},
};

/// One of the search tools.
pub trait SearchKind: Send + Sync + 'static {
    /// The arguments, checked against the schema.
    type Arguments: DeserializeOwned + Send + 'static;

    /// One line for the system prompt.
    const SNIPPET: &'static str;

    /// What models are told; the same in all sessions.
    fn spec() -> &'static Arc<ToolSpec>;

    /// Searches. Blocks; ends soon after the call was aborted.
    fn search(arguments: &Self::Arguments, here: &SearchCall<'_>) -> Result<ToolResult, ToolError>;
}

/// The context of a call.
pub struct SearchCall<'a> {
    cwd: &'a Path,
    home: &'a Home,
    host: &'a dyn FileHost,
    /// The files to search.
    pub(crate) files: &'a dyn FileSystem,
    pub(crate) cancel: &'a CancellationToken,
}

impl SearchCall<'_> {
    /// Resolves a path argument; without one, the working directory. Blocks.
    pub(crate) fn place(&self, argument: Option<&str>) -> Result<SearchRoot, ToolError> {
        SearchRoot::find(argument, self.cwd, self.home, (self.host, self.files))
    }
}

/// A tool that searches folders and changes nothing.
pub struct SearchTool<S> {
    home: Home,
    host: Arc<dyn FileHost>,
    search: PhantomData<S>,
}

impl<S> SearchTool<S> {
    /// The tool, with the home directory of the process for `~`.
    #[must_use]
    pub fn new() -> Self {
        Self { home: Home::default(), host: Arc::new(LocalHost), search: PhantomData }
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
}

impl<S> Default for SearchTool<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: SearchKind> Tool for SearchTool<S> {
    fn spec(&self) -> &Arc<ToolSpec> {
        S::spec()
    }

    fn snippet(&self) -> Option<&str> {
        Some(S::SNIPPET)
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        let (home, host) = (self.home.clone(), Arc::clone(&self.host));
        Box::pin(async move {
            let arguments: S::Arguments = arguments::parse(invocation.arguments)?;
            let (cwd, cancel) = (invocation.cwd, invocation.cancel);
            blocking::run(move || {
                let files = host.files(&cancel);
                let here =
                    SearchCall { cwd: &cwd, home: &home, host: &*host, files: &*files, cancel: &cancel };
                let found = S::search(&arguments, &here);
                if cancel.is_cancelled() { Err(blocking::aborted()) } else { found }
            })
            .await
        })
    }
}

/// The argument `limit` as a number, at least one; `default` without the argument.
pub(crate) fn limit(argument: Option<f64>, default: usize) -> usize {
    // The conversion from f64 saturates, and NaN becomes 0.
    argument.map_or(default, |limit| limit as usize).max(1)
}

/// An existing path.
#[derive(Debug)]
pub(crate) struct SearchRoot {
    pub(crate) path: PathBuf,
    about: FileFacts,
}

impl SearchRoot {
    /// Resolves a path argument; without one, the working directory. Reads its metadata; blocks.
    ///
    /// # Errors
    /// `Path not found: ABS`, or another error of the system.
    pub(crate) fn find(
        argument: Option<&str>,
        cwd: &Path,
        home: &Home,
        (host, files): (&dyn FileHost, &dyn FileSystem),
    ) -> Result<Self, ToolError> {
        let path = home.resolve(argument.unwrap_or("."), cwd, host)?;
        match files.about(&path) {
            Ok(about) => Ok(Self { path, about }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(ToolError(format!("Path not found: {}", path.display())))
            }
            Err(error) => Err(ToolError(errno::describe(&error, "stat", &path))),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.about.kind == FileKind::Folder
    }

    pub(crate) fn is_file(&self) -> bool {
        self.about.kind == FileKind::File
    }
}
