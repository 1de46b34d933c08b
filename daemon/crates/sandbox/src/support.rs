//! What the system offers for a sandbox.

use std::path::Path;

pub use agentd_protocol::sandbox::{SandboxLayer as Layer, SandboxSupport};

/// Tries each layer on the calling process, which must have one thread and do nothing else afterwards but tell the result. The mounts are
/// tried with `bwrap` if it is given.
#[cfg(target_os = "linux")]
#[must_use]
pub fn probe(bwrap: Option<&Path>) -> SandboxSupport {
    use crate::{policy::SandboxPolicy, restrictions, syscalls, view};
    let policy = SandboxPolicy { writable: vec![std::env::temp_dir()], ..SandboxPolicy::default() };
    let mut support = SandboxSupport { landlock_abi: landlock_abi(), ..SandboxSupport::default() };
    let mut note = |layer: Layer, outcome: Result<(), String>| match outcome {
        Ok(()) => support.layers.push(layer),
        Err(why) => support.missing.push(why),
    };
    let own = |error| {
        format!(
            "mounts: {error}. The system does not let this user make namespaces; containers and some distributions forbid it \
             (kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces)"
        )
    };
    let mounts = match bwrap {
        None => view::enter(&policy).map(drop).map_err(own),
        Some(program) => {
            try_bwrap(program, &policy).map_err(|why| format!("mounts: {}: {why}", program.display()))
        }
    };
    note(Layer::Mounts, mounts);
    let landlock = restrictions::apply(&policy)
        .map_err(|error| format!("landlock: {error}. The kernel must be built with it and list it in lsm="));
    note(Layer::Landlock, landlock);
    let seccomp = syscalls::apply(&policy).map_err(|error| format!("seccomp: {error}"));
    note(Layer::Seccomp, seccomp);
    support
}

/// Elsewhere than on Linux there is no sandbox.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn probe(_: Option<&Path>) -> SandboxSupport {
    SandboxSupport {
        missing: vec!["this system has no sandbox that agentd can use; Linux has".to_owned()],
        ..SandboxSupport::default()
    }
}

/// Has `bwrap` run a program that does nothing.
#[cfg(target_os = "linux")]
fn try_bwrap(program: &Path, policy: &crate::policy::SandboxPolicy) -> Result<(), String> {
    let output = std::process::Command::new(program)
        .args(crate::bwrap::mounts(policy))
        .args(["--", "true"])
        .env("PATH", "/usr/bin:/bin")
        .output()
        .map_err(|error| format!("it cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if said.is_empty() { format!("it ended with {}", output.status) } else { said })
}

/// The version of landlock; 0 without it.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "asking for the version of landlock has no safe form")]
fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call reads no memory and makes nothing.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}
