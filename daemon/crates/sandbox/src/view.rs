//! The mounts that a confined process sees.
//!
//! In a mount namespace of its own, everything becomes read-only. What is to stay writable was taken before, as detached copies of its
//! mounts, and is mounted over its own path again; then what is protected, read-only, and what is denied, replaced by something that
//! nobody can read. A folder that is a mount can be neither renamed nor removed, so what is protected in it cannot be moved away.
#![allow(unsafe_code, reason = "unshare has no safe form; each use says why it is sound")]

use std::{
    fs, io as std_io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::CWD,
    io::{self, Errno},
    mount::{MountPropagationFlags, mount_change},
    process::{getegid, geteuid},
    thread::{CapabilitySet, UnshareFlags, unshare_unsafe},
};

use crate::{
    capabilities,
    device_files::{Devices, NO_FOLDER, SHARED_MEMORY, errno},
    mounts::{READ_ONLY, attach, attach_real, clone_of, clone_of_real, restrict},
    policy::SandboxPolicy,
    step::{ConfineError, ConfineStep},
};

/// Puts the calling process, which has one thread, into a mount namespace as `policy` says. Returns the capabilities that it may keep.
///
/// # Errors
/// [`ConfineError`].
pub(crate) fn enter(policy: &SandboxPolicy) -> Result<CapabilitySet, ConfineError> {
    let kept = namespace().map_err(ConfineError::at(ConfineStep::Namespace))?;
    mount_all(policy).map_err(ConfineError::at(ConfineStep::Mounts))?;
    Ok(kept)
}

/// A mount namespace, and one for shared memory and message queues that are no files; for those who may not make them, in a user namespace
/// with the same user and group.
fn namespace() -> std_io::Result<CapabilitySet> {
    if capabilities::may_mount() {
        let kept = capabilities::usable();
        // SAFETY: the process has one thread, so that nothing else relies on a shared file system context.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWIPC) }?;
        return Ok(kept);
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: the process has one thread, so that nothing else relies on its user or file system context.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(CapabilitySet::empty())
}

/// A path that is mounted over itself.
struct Part {
    path: PathBuf,
    mount: OwnedFd,
}

fn mount_all(policy: &SandboxPolicy) -> io::Result<()> {
    // Nothing goes from here to the mounts of others, or back.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let writable = parts(policy.mounted_writable(), clone_of_real)?;
    let protected = parts(policy.protected().collect(), clone_of)?;
    let devices = Devices::take()?;
    restrict(CWD, c"/", READ_ONLY, libc::AT_RECURSIVE)?;
    devices.mount()?;
    for Part { path, mount } in writable {
        if path.starts_with(SHARED_MEMORY) {
            // The new folder of shared memory is empty.
            fs::create_dir_all(&path).map_err(errno)?;
        }
        attach_real(&mount, &path)?;
    }
    for Part { path, mount } in protected {
        restrict(mount.as_fd(), c"", READ_ONLY, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)?;
        attach(&mount, &path)?;
    }
    for path in &policy.denied {
        deny(path)?;
    }
    rustix::fs::rmdir(NO_FOLDER)?;
    restrict(CWD, c"/dev", READ_ONLY, 0)
}

/// Copies of the mounts at these paths, outer ones first. Missing paths are left out.
fn parts(
    mut paths: Vec<PathBuf>,
    clone_of: impl Fn(&Path) -> io::Result<Option<OwnedFd>>,
) -> io::Result<Vec<Part>> {
    paths.sort_unstable();
    paths.dedup();
    let mut parts = Vec::with_capacity(paths.len());
    for path in paths {
        if let Some(mount) = clone_of(&path)? {
            parts.push(Part { path, mount });
        }
    }
    Ok(parts)
}

/// Mounts something without content over a denied path, if it exists: a folder that only root can read, or a device that the mount
/// does not let anybody open.
fn deny(path: &Path) -> io::Result<()> {
    let Ok(about) = fs::symlink_metadata(path) else { return Ok(()) };
    let stand_in = if about.is_dir() { NO_FOLDER } else { "/dev/null" };
    let mount = clone_of(Path::new(stand_in))?.ok_or(Errno::NOENT)?;
    restrict(mount.as_fd(), c"", READ_ONLY | libc::MOUNT_ATTR_NODEV, libc::AT_EMPTY_PATH)?;
    attach(&mount, path)
}
