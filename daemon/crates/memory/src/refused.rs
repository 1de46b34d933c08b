//! Why no more memory is given.

use std::fmt;

use crate::purpose::MemoryPurpose;

/// Why there is no more. Says so for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryRefused {
    /// All users together have as much as they may.
    Full {
        /// What for.
        purpose: MemoryPurpose,
        /// What they have, in bytes.
        used: u64,
        /// What they may have, in bytes.
        limit: u64,
    },
    /// The address space of the process is nearly used up.
    AddressSpace {
        /// What the system allows, in bytes.
        limit: u64,
        /// What is left of it, in bytes.
        left: u64,
    },
    /// The system gave no memory.
    NoMemory,
}

impl MemoryRefused {
    /// What can be done about it, for people.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Full { .. } => {
                "Wait until others are done. The setting daemon.maxMemoryBytes sets the limit."
            }
            Self::AddressSpace { .. } => "The `ulimit -v` that the daemon is started with sets the limit.",
            Self::NoMemory => "Free memory on this machine, or send less at once.",
        }
    }
}

impl fmt::Display for MemoryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { purpose, used, limit } => {
                write!(f, "{purpose} take {used} bytes of memory together, and may take {limit}")
            }
            Self::AddressSpace { limit, left } => write!(
                f,
                "of the {limit} bytes of address space that the system allows the daemon (ulimit -v) only {left} are left"
            ),
            Self::NoMemory => f.write_str("the system has no memory for it"),
        }
    }
}

impl std::error::Error for MemoryRefused {}
