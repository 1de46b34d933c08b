//! Records exchanges with providers to files, and replays them from there.
//!
//! This layer is between the adapters and the network: it records what an adapter sent and received, without secrets. `docs/recording.md`
//! describes the format.

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

/// The destination of requests.
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

/// The means by which adapters send requests.
#[derive(Debug, Default)]
pub(crate) struct Transport {
    pub(crate) clients: HttpClients,
    pub(crate) exchange_mode: ExchangeMode,
    /// The account that running answers are charged to.
    pub(crate) memory: MemoryAccount,
}

#[cfg(test)]
mod tests;
