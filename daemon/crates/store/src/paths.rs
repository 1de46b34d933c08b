//! Where session files are.

use std::path::{Path, PathBuf};

use crate::{
    StoreError,
    io::{Disk, Io},
};

/// A folder of session files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDir {
    /// The folder.
    pub path: PathBuf,
    /// Whether sessions of other working directories lie there too, so that one looks at headers.
    pub is_shared: bool,
}

impl SessionDir {
    /// The folder of the sessions that work in `cwd`, below the root of all sessions (`<agent dir>/sessions`).
    #[must_use]
    pub fn of_cwd(root: &Path, cwd: &Path) -> Self {
        Self { path: root.join(cwd_dir_name(cwd)), is_shared: false }
    }

    /// A folder that someone chose: files go into it directly, whatever directory their sessions work in. It is not
    /// shared if it happens to be the one of `cwd`.
    #[must_use]
    pub fn custom(path: PathBuf, root: &Path, cwd: &Path) -> Self {
        let is_shared = path != Self::of_cwd(root, cwd).path;
        Self { path, is_shared }
    }
}

/// The name of the folder for the sessions of a working directory (absolute): `/home/u/my.proj` has
/// `--home-u-my.proj--`.
///
/// Different directories may share a name; the header of a session tells.
#[must_use]
pub fn cwd_dir_name(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let inner = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", inner.replace(['/', '\\', ':'], "-"))
}

/// The name of a session's file. `timestamp` is the ISO time stamp of its header.
#[must_use]
pub fn session_file_name(timestamp: &str, id: &str) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

/// Makes a folder for sessions and those above it, as far as they are not there, private to the user.
///
/// # Errors
/// [`StoreError::Io`].
pub fn create_dirs(path: &Path) -> Result<(), StoreError> {
    Disk.create_dirs(path).map_err(StoreError::io("create the folder", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names() {
        for (cwd, name) in [
            ("/home/u/my.proj", "--home-u-my.proj--"),
            ("/", "----"),
            ("/a b/ü", "--a b-ü--"),
            ("C:\\Users\\u", "--C--Users-u--"),
            ("//server/share", "---server-share--"),
        ] {
            assert_eq!(cwd_dir_name(Path::new(cwd)), name, "{cwd}");
        }
    }

    #[test]
    fn file_names() {
        assert_eq!(
            session_file_name("2026-11-21T03:28:11.123Z", "0199"),
            "2026-11-21T03-28-11-123Z_0199.jsonl"
        );
    }

    #[test]
    fn custom_folders() {
        let (root, cwd) = (Path::new("/r"), Path::new("/w"));
        assert!(!SessionDir::of_cwd(root, cwd).is_shared);
        assert!(SessionDir::custom("/r".into(), root, cwd).is_shared);
        assert!(!SessionDir::custom("/r/--w--".into(), root, cwd).is_shared);
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_private_unless_they_were_there() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
        create_dirs(&open.join("a/b")).unwrap();
        create_dirs(&open.join("a/b")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&open), 0o755);
        assert_eq!([mode(&open.join("a")), mode(&open.join("a/b"))], [0o700, 0o700]);
    }
}
