//! Where the program `agentd` is.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::ConnectError;

const PROGRAM: &str = "agentd";

/// The `agentd` beside our own executable, else the first one on the search path.
///
/// # Errors
/// When there is none.
pub fn find_agentd() -> Result<PathBuf, ConnectError> {
    let own = env::current_exe().ok();
    find(own.as_deref(), env::var_os("PATH").as_deref())
}

fn find(own: Option<&Path>, search_path: Option<&OsStr>) -> Result<PathBuf, ConnectError> {
    let beside = own.and_then(Path::parent);
    let on_path = search_path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    beside
        .map(Path::to_owned)
        .into_iter()
        // An empty element of the search path would mean the current folder: no place to run programs from unasked.
        .chain(on_path.into_iter().filter(|folder| folder.is_absolute()))
        .map(|folder| folder.join(PROGRAM))
        .find(|path| is_executable(path))
        .ok_or_else(|| ConnectError::NoProgram {
            beside: beside.map_or_else(|| "beside this program".to_owned(), |dir| dir.display().to_string()),
        })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn program(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join(PROGRAM);
        fs::create_dir_all(folder).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_one_beside_us_wins_over_the_search_path() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("bin/agentctl");
        let plain = dir.path().join("plain");
        program(&plain, 0o644);
        let search = env::join_paths([plain, dir.path().join("path")]).unwrap();
        let error = find(Some(&own), Some(&search)).unwrap_err();
        assert!(error.to_string().contains("cargo build"), "{error}");
        let on_path = program(&dir.path().join("path"), 0o755);
        assert_eq!(find(Some(&own), Some(&search)).unwrap(), on_path);
        let beside = program(&dir.path().join("bin"), 0o755);
        assert_eq!(find(Some(&own), Some(&search)).unwrap(), beside);
    }
}
