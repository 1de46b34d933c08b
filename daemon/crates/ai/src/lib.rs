//! Talks to models: one interface over all provider APIs. Knows nothing of sessions, tools or files.

mod accumulate;
mod bound;
mod cost;
mod deadline;
mod estimate;
mod exchange_hooks;
pub mod failure;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod handoff;
mod http;
mod lenient;
pub mod local_servers;
pub mod partial_json;
mod provider;
mod providers;
mod record_replay;
mod registry;
mod request;
mod system_state;
mod vendors;

pub use accumulate::{Accumulator, AnswerPiece, AnswerPieceKind, SeenContent, priced};
pub use agentd_http::{CertificateFile, NamedProxy, Network, register_secret};
pub use agentd_protocol::secret::Secret;
pub use bound::{CallBound, call_bound, has_price, text_bound, with_output_limit};
pub use cost::cost;
pub use deadline::{Deadlines, OnStall, ProgressLimit, Stall, StallPhase};
pub use exchange_hooks::{ExchangeHook, ExchangeHooks, ExchangeStage};
pub use handoff::prompt_text;
pub use provider::{BlockKind, BlockSeal, Delta, DeltaStream, Provider};
pub use record_replay::{
    ExchangeMode, Player, PlayerOptions, Recorder, RecorderError, ReplayError, ReplayMatching,
};
pub use registry::ProviderRegistry;
pub use request::{
    Account, AwsKeys, CacheRetention, CredentialRenewer, Credentials, HttpRetries, RenewCredentials,
    RenewalFuture, RenewedCredentials, Request, ThinkingBudgets,
};
pub use system_state::{SystemState, describe_change, system_state};
