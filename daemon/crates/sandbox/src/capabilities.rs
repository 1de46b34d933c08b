//! The capabilities that a confined process keeps.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// What root needs to work with files of other users in the writable folders. None of it leads out: what is read-only or denied stays
/// so for root.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// The capabilities that the calling process has and may keep.
pub(crate) fn usable() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective & KEPT)
}

/// Whether the calling process may make mounts.
pub(crate) fn may_mount() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Gives up all capabilities but `kept`, for programs that the process executes, too.
///
/// # Errors
/// The system's.
pub(crate) fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    // Programs that root executes get what is in the bounding set. It can only be made smaller by those who have a capability
    // themselves; others get none by executing a program.
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << bit);
            // An error: there is no such capability.
            if !kept.contains(capability) && capability_is_in_bounding_set(capability).unwrap_or(false) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    Ok(())
}
