//! Whether a file system is another machine's: locks and appends mean less there.

use std::path::Path;

/// Linux's numbers of file systems that lie on other machines, with what they are called. What a program of the user's serves
/// (FUSE) may be anything, and is not among them.
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

/// What the network file system is called that a path lies on; `None` for a local one, and where the system does not say. Blocks.
#[must_use]
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    name_of(kind(path)?)
}

/// What is to be told of sessions in a folder; `None` where nothing is.
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
