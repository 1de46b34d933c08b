//! The traffic with providers: as it is, written down, or played back from what was written down.
//!
//! Below the adapters and above the network: what is recorded is what an adapter sent and what it was given to read, without
//! secrets. The format is described in `docs/recording.md`.

mod compare;
mod format;
mod player;
mod read;
mod recorder;

use std::sync::Arc;

use agentd_http::HttpClients;
use agentd_memory::MemoryAccount;

pub(crate) use format::ExchangeInfo;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use format::fuzz;
pub(crate) use player::ReplayedAnswer;
pub use player::{Player, PlayerOptions, ReplayMatching};
pub use read::ReplayError;
pub(crate) use recorder::ExchangeRecorder;
pub use recorder::{Recorder, RecorderError};

/// Where requests go.
#[derive(Debug, Clone, Default)]
pub enum ExchangeMode {
    /// To the provider.
    #[default]
    Live,
    /// To the provider, and into files.
    Recorded(Arc<Recorder>),
    /// Nowhere: answers come from files.
    Replayed(Arc<Player>),
}

/// What adapters send requests with.
#[derive(Debug, Default)]
pub(crate) struct Transport {
    pub(crate) clients: HttpClients,
    pub(crate) exchange_mode: ExchangeMode,
    /// What answers that run take is charged to it.
    pub(crate) memory: MemoryAccount,
}

#[cfg(test)]
mod tests;
