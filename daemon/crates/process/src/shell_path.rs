//! Finds the shell that runs commands.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::Metadata,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use agentd_files::QuickAccess;

use crate::shell_run::ShellError;

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
    // A look at the system's own disk, before every command.
    static LOOK: LazyLock<QuickAccess> = LazyLock::new(|| QuickAccess::new(["/bin".into()]));
    let usual = Path::new("/bin/bash");
    // An error means that the runtime ends, or a bug, and that nothing is known of the program.
    if LOOK.run(|| usual.metadata().is_ok_and(|metadata| is_executable(&metadata))).await.unwrap_or(false) {
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
    tokio::fs::metadata(path).await.is_ok_and(|metadata| is_executable(&metadata))
}

fn is_executable(metadata: &Metadata) -> bool {
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
}
