//! Talks to models: one interface over every wire API. Knows nothing of sessions, tools or files.

mod delta;
pub mod failure;
mod provider;
mod request;

pub use delta::{BlockKind, BlockSeal, Delta};
pub use provider::{DeltaStream, Provider};
pub use request::{Credentials, Request, Secret};
