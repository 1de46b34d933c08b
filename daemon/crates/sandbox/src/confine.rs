//! Confines the calling process.

use std::path::Path;

#[cfg(target_os = "linux")]
use crate::{
    capabilities, restrictions,
    step::ConfineStep::{Capabilities, Landlock, Seccomp, WorkingDirectory},
    support::Layer,
    syscalls, view,
};
use crate::{policy::SandboxPolicy, step::ConfineError};

/// Confines the calling process, and all that it starts from now on, by the layers of `policy`; `cwd` is its working directory. There
/// is no way back, and after an error the process must not run its program.
///
/// The process must have one thread. Mounts by `bwrap` are not made here: see [`crate::command_line`].
///
/// # Errors
/// [`ConfineError`]: any step that fails.
#[cfg(target_os = "linux")]
pub fn confine(policy: &SandboxPolicy, cwd: &Path) -> Result<(), ConfineError> {
    let kept = if policy.has(Layer::Mounts) {
        let kept = view::enter(policy)?;
        // The working directory is still that of the mounts before.
        std::env::set_current_dir(cwd).map_err(ConfineError::at(WorkingDirectory))?;
        kept
    } else {
        capabilities::usable()
    };
    capabilities::keep_only(kept).map_err(ConfineError::at(Capabilities))?;
    rustix::thread::set_no_new_privs(true).map_err(ConfineError::at(Capabilities))?;
    if policy.has(Layer::Landlock) {
        restrictions::apply(policy).map_err(ConfineError::at(Landlock))?;
    }
    if policy.has(Layer::Seccomp) {
        syscalls::apply(policy).map_err(ConfineError::at(Seccomp))?;
    }
    Ok(())
}

/// Elsewhere than on Linux nothing can be confined.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine(_: &SandboxPolicy, _: &Path) -> Result<(), ConfineError> {
    Err(ConfineError {
        step: crate::step::ConfineStep::Namespace,
        source: std::io::ErrorKind::Unsupported.into(),
    })
}
