//! The `/dev` of confined processes: no disks, no memory, nothing but what every program may use.

use std::{
    fs,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::Path,
};

use rustix::{
    fs::Mode,
    io::{self, Errno},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    },
};

use crate::mounts::{attach, clone_of};

/// The devices and folders of devices that may be written.
pub(crate) const WRITABLE_DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// The devices that are there.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// The folder of shared memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// The most bytes in the shared memory of a command.
const SHARED_MEMORY_SIZE: &str = "512m";

/// A folder in the new `/dev` that is mounted over denied folders, and then removed.
pub(crate) const NO_FOLDER: &str = "/dev/.denied-folder";

/// The devices, taken before the mounts became read-only.
pub(crate) struct Devices {
    nodes: Vec<(&'static str, OwnedFd)>,
}

impl Devices {
    /// Takes the devices that there are.
    ///
    /// # Errors
    /// The system's; a missing device is no error.
    pub(crate) fn take() -> io::Result<Self> {
        let mut nodes = Vec::with_capacity(DEVICES.len());
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            if let Some(node) = clone_of(&path)? {
                nodes.push((name, node));
            }
        }
        Ok(Self { nodes })
    }

    /// Mounts a new `/dev` with these devices, and with [`NO_FOLDER`], which only root can read: it is empty.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn mount(self) -> io::Result<()> {
        attach(&memory_folder("755", "1m")?, Path::new("/dev"))?;
        for (name, node) in self.nodes {
            let path = Path::new("/dev").join(name);
            create(&path)?;
            attach(&node, &path)?;
        }
        fs::create_dir("/dev/pts").map_err(errno)?;
        attach(&terminals()?, Path::new("/dev/pts"))?;
        fs::create_dir(SHARED_MEMORY).map_err(errno)?;
        attach(&memory_folder("1777", SHARED_MEMORY_SIZE)?, Path::new(SHARED_MEMORY))?;
        for (name, target) in LINKS {
            symlink(target, Path::new("/dev").join(name)).map_err(errno)?;
        }
        fs::create_dir(NO_FOLDER).map_err(errno)?;
        rustix::fs::chmod(NO_FOLDER, Mode::empty())
    }
}

/// A new file system in memory, not mounted yet.
fn memory_folder(mode: &str, size: &str) -> io::Result<OwnedFd> {
    new_mount("tmpfs", &[("mode", mode), ("size", size)], MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// A new folder of terminals, not mounted yet. Those of the user are not in it: what is written to them can steer them, and what is read
/// from them is what the user types.
fn terminals() -> io::Result<OwnedFd> {
    new_mount("devpts", &[("mode", "620"), ("ptmxmode", "666")], MountAttrFlags::empty())
}

fn new_mount(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&system, *key, *value)?;
    }
    fsconfig_create(&system)?;
    let attributes = attributes | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn create(path: &Path) -> io::Result<()> {
    fs::File::create_new(path).map(drop).map_err(errno)
}

/// The code of a system's error.
pub(crate) fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
