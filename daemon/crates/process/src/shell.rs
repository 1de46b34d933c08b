//! Finds the shell that runs commands.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::command::SpawnError;

/// Why a shell command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The shell that the settings name does not exist.
    #[error("Custom shell path not found: {}", .0.display())]
    ShellMissing(PathBuf),
    /// The working directory does not exist.
    #[error("Working directory does not exist: {}\nCannot execute bash commands.", .0.display())]
    WorkingDirectoryMissing(PathBuf),
    /// The machine where commands run cannot be reached: what happened, and what to do.
    #[error("{0}")]
    Unreachable(String),
    /// Anything else.
    #[error(transparent)]
    Spawn(SpawnError),
}

impl From<SpawnError> for ShellError {
    fn from(error: SpawnError) -> Self {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        match error {
            SpawnError::WorkingDirectory { path, source }
                if matches!(source.kind(), NotFound | NotADirectory) =>
            {
                Self::WorkingDirectoryMissing(path)
            }
            other => Self::Spawn(other),
        }
    }
}

/// Finds the shell: the one in the settings, else `/bin/bash`, else `bash` on the `PATH` of `env`, else `sh`.
///
/// # Errors
/// [`ShellError::ShellMissing`] when the settings name one that does not exist.
pub async fn resolve_shell(
    setting: Option<&Path>,
    env: &[(OsString, OsString)],
) -> Result<PathBuf, ShellError> {
    if let Some(path) = setting {
        return match tokio::fs::try_exists(path).await {
            Ok(true) => Ok(path.into()),
            Ok(false) | Err(_) => Err(ShellError::ShellMissing(path.into())),
        };
    }
    let usual = Path::new("/bin/bash");
    if is_program(usual).await {
        return Ok(usual.into());
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value);
    for dir in env::split_paths(path) {
        let candidate = dir.join("bash");
        if candidate.is_absolute() && is_program(&candidate).await {
            return Ok(candidate);
        }
    }
    Ok("sh".into())
}

async fn is_program(path: &Path) -> bool {
    // A path without readable metadata cannot be executed either.
    let Ok(metadata) = tokio::fs::metadata(path).await else { return false };
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_custom_shell_is_an_error() {
        let error = resolve_shell(Some(Path::new("/no/such/shell")), &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "Custom shell path not found: /no/such/shell");
    }

    #[tokio::test]
    async fn the_custom_shell_wins() {
        assert_eq!(resolve_shell(Some(Path::new("/bin/sh")), &[]).await.unwrap(), Path::new("/bin/sh"));
    }

    #[tokio::test]
    async fn without_a_setting_there_is_always_a_shell() {
        let shell = resolve_shell(None, &[("PATH".into(), "/usr/bin:relative".into())]).await.unwrap();
        assert!(["bash", "sh"].contains(&shell.file_name().unwrap().to_str().unwrap()), "{shell:?}");
    }

    #[test]
    fn a_missing_directory_has_its_own_message() {
        let source = std::io::Error::from_raw_os_error(libc::ENOENT);
        let error = ShellError::from(SpawnError::WorkingDirectory { path: "/gone".into(), source });
        assert_eq!(
            error.to_string(),
            "Working directory does not exist: /gone\nCannot execute bash commands."
        );
    }
}
