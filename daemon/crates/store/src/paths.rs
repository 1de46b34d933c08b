//! The folders of session files, and the file systems that they lie on.

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
    /// True if sessions of other working directories lie there too, so that headers must be read.
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

/// Linux's numbers of network file systems, with their names. FUSE may be anything, and is not among them.
const ON_OTHER_MACHINES: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "SMB"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x0BD0_0BD0, "Lustre"),
];

/// The name of the network file system of a path; `None` for a local one, and where the system does not tell. Blocks.
#[must_use]
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    name_of(kind(path)?)
}

/// A warning about sessions in a folder on a network file system; `None` on a local one.
#[must_use]
pub fn network_warning(folder: &Path) -> Option<String> {
    let name = network_file_system(folder)?;
    Some(format!(
        "The sessions are on a network file system ({name}), where two machines can overwrite each other's entries and a lost server \
         holds writes up. Keep them on a local disk: --session-dir, or the setting sessionDir."
    ))
}

#[cfg(target_os = "linux")]
fn kind(path: &Path) -> Option<u64> {
    // The field's type differs between machines; the numbers have 32 bits.
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    u64::try_from(i128::from(kind) & 0xFFFF_FFFF).ok()
}

#[cfg(not(target_os = "linux"))]
fn kind(_path: &Path) -> Option<u64> {
    None
}

fn name_of(kind: u64) -> Option<&'static str> {
    ON_OTHER_MACHINES.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
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

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!((name_of(0x6969), name_of(0xFF53_4D42)), (Some("NFS"), Some("SMB")));
        // ext4, tmpfs, btrfs, overlayfs, FUSE
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x794C_7630, 0x6573_5546] {
            assert_eq!(name_of(local), None);
        }
    }

    #[test]
    fn processes_are_on_no_network() {
        assert_eq!(network_warning(Path::new("/proc")), None);
        #[cfg(target_os = "linux")]
        assert_eq!(kind(Path::new("/proc")), Some(0x9FA0));
        assert_eq!(network_warning(Path::new("/no/such/folder")), None);
    }
}
