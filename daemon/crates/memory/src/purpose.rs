//! What memory is taken for.

use std::fmt;

/// What memory is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryPurpose {
    /// Lines of clients that have not ended, or were not taken yet.
    Lines,
    /// Commands that wait for their session, or are being answered by it.
    Commands,
    /// Answers of models that run.
    Answers,
    /// Messages that wait in sessions.
    Queues,
    /// What MCP servers send, and results that are made of it.
    Servers,
}

impl MemoryPurpose {
    pub(crate) const ALL: [Self; 5] =
        [Self::Lines, Self::Commands, Self::Answers, Self::Queues, Self::Servers];

    /// What each user has for itself and is not counted, in bytes: what is small always goes on, whatever others take. How many users there are
    /// is bounded elsewhere.
    pub(crate) const fn free(self) -> u64 {
        match self {
            Self::Lines | Self::Commands => 64 << 10,
            Self::Answers => 1 << 20,
            Self::Queues | Self::Servers => 256 << 10,
        }
    }

    pub(crate) const fn place(self) -> usize {
        match self {
            Self::Lines => 0,
            Self::Commands => 1,
            Self::Answers => 2,
            Self::Queues => 3,
            Self::Servers => 4,
        }
    }
}

impl fmt::Display for MemoryPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "lines that clients are sending",
            Self::Commands => "commands that wait for their sessions",
            Self::Answers => "answers that are running",
            Self::Queues => "messages that wait in sessions",
            Self::Servers => "messages of MCP servers",
        })
    }
}
