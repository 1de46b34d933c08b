//! Detects what this system offers for owning and limiting processes.

use crate::linux;

/// Optional features of the system that owning and limiting processes can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSupport {
    /// The kernel lists the children of a process. Otherwise measuring examines all processes of the system.
    pub lists_children: bool,
    /// Processes keep their owner's mark even when they clear their environment. Otherwise such processes may be left
    /// when a daemon is killed together with its guard and all supervisors.
    pub lasting_marks: bool,
}

impl ProcessSupport {
    /// Detects the features. Blocks briefly.
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
