//! The traffic with providers: as it is, written down, or played back from what was written down.
//!
//! Below the adapters and above the network: what is recorded is what an adapter sent and what it was given to read, without
//! secrets. The format is described in `docs/recording.md`.

mod diff;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod player;
mod recorder;
mod shape;
mod tape;

use std::sync::Arc;

use agentd_http::{Account, HttpClients};
use agentd_memory::MemoryAccount;
use agentd_protocol::model::Model;

pub use player::{Player, PlayerOptions, ReplayError, ReplayMatching};
pub use recorder::{Recorder, RecorderError};

pub(crate) use player::Played;
pub(crate) use tape::Tape;

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
    pub(crate) traffic: ExchangeMode,
    /// What answers that run take is charged to it.
    pub(crate) memory: MemoryAccount,
}

/// What an exchange is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) api: String,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) base_url: String,
    pub(crate) account: Account,
    pub(crate) session: String,
    /// The model as it is configured.
    pub(crate) definition: Option<Arc<Model>>,
}

#[cfg(test)]
mod tests;
