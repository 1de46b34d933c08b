//! Landlock: writing only below some folders, no TCP, and nothing towards processes outside.

use std::{io, os::fd::OwnedFd, path::Path};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

use crate::{device_files::WRITABLE_DEVICES, mounts::open_real, policy::SandboxPolicy};

/// The newest version whose rights are used. What the kernel lacks is left out: [`crate::SandboxSupport`] says so.
const NEWEST: ABI = ABI::V6;

/// Restricts the calling process. Reading is not restricted: landlock cannot except a folder from a readable one.
///
/// # Errors
/// The system's, and `EOPNOTSUPP` where there is no landlock.
pub(crate) fn apply(policy: &SandboxPolicy) -> io::Result<()> {
    let writing = AccessFs::from_write(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)
        .map_err(io::Error::other)?
        .scope(Scope::from_all(NEWEST))
        .map_err(io::Error::other)?;
    if !policy.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST)).map_err(io::Error::other)?;
    }
    let mut rules = rules.create().map_err(io::Error::other)?;
    for root in &policy.writable {
        // A folder that is gone cannot be written.
        let Some(folder) = open_real(root)? else { continue };
        rules = rules.add_rule(PathBeneath::new(folder, writing)).map_err(io::Error::other)?;
    }
    for device in WRITABLE_DEVICES {
        let Some(file) = handle(Path::new(device))? else { continue };
        let rights = if Path::new(device).is_dir() { writing } else { writing & AccessFs::from_file(NEWEST) };
        rules = rules.add_rule(PathBeneath::new(file, rights)).map_err(io::Error::other)?;
    }
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::NotEnforced { Err(Errno::OPNOTSUPP.into()) } else { Ok(()) }
}

/// A handle to a path; `None` when it is missing.
fn handle(path: &Path) -> io::Result<Option<OwnedFd>> {
    match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
