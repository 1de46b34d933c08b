//! What authorises requests to providers: where keys come from, and in which order.
//!
//! A crate of its own because finding a key can run a command. Nothing here talks to a provider or knows sessions, and no
//! key, header value or command of the user's shows up in an error or in `Debug` output.

mod command;
mod environment;
mod error;
mod resolve;
mod store;
mod value;

pub use agentd_protocol::secret::Secret;
pub use command::{CommandCache, CommandError};
pub use environment::advice_for as variables_for;
pub use error::AuthError;
pub use resolve::{Auth, AuthSources, ProviderCredentials};
pub use store::{AuthStore, StoreError, Stored, StoredCredentials};
pub use value::ValueError;
