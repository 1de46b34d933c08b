//! What this system has for owning and limiting processes.

use crate::linux;

/// What the owning and limiting of processes rests on here, besides what every Linux has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSupport {
    /// The kernel lists the children of a process. Without that, measuring looks at all processes of the system.
    pub lists_children: bool,
    /// Processes carry their owner's mark even when they clear their environment. Without that, those that do so may be
    /// left when a daemon is killed together with its guard and all scopes.
    pub lasting_marks: bool,
}

impl ProcessSupport {
    /// Looks at this system. Blocks, shortly.
    #[must_use]
    pub fn of_this_system() -> Self {
        Self { lists_children: linux::lists_children(), lasting_marks: linux::has_lasting_marks() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_last_where_limits_can_hold_them() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let told = ProcessSupport::of_this_system();
        assert!(told.lasting_marks || !limits.contains("Max file locks            unlimited"), "{limits}");
    }
}
