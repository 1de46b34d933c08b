//! The home directory of a session's paths.

use std::{
    env,
    path::{Path, PathBuf},
};

use agentd_agent::ToolError;

use crate::{
    operations::FileHost,
    path::{Base, resolve},
};

/// The folder that `~` means.
#[derive(Debug, Clone)]
pub(crate) struct Home(Option<PathBuf>);

impl Default for Home {
    /// The home directory of the process, for sessions without an environment of their own.
    fn default() -> Self {
        Self(env::home_dir())
    }
}

impl Home {
    pub(crate) fn new(home: impl Into<PathBuf>) -> Self {
        Self(Some(home.into()))
    }

    /// The absolute path on `host` of the argument `path` in `cwd`.
    pub(crate) fn resolve(&self, path: &str, cwd: &Path, host: &dyn FileHost) -> Result<PathBuf, ToolError> {
        let home = host.home().or_else(|| self.0.clone());
        resolve(path, Base { cwd, home: home.as_deref() }).map_err(|error| ToolError(error.to_string()))
    }
}
