//! What authorises requests to providers: where keys come from, and in which order.
//!
//! A crate of its own because finding a key can run a command or ask a token endpoint. Nothing here talks to a model or knows
//! sessions, and no key, token, header value or command of the user's shows up in an error or in `Debug` output.

mod address;
mod aws;
mod azure;
mod command;
mod edit;
mod environment;
mod error;
mod federation;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod google;
mod key_variables;
mod known;
mod learn;
mod oauth;
mod resolve;
mod services;
mod status;
mod store;
mod tokens;
mod value;
mod withheld;

pub use agentd_http::{know, scrub, scrub_diagnostic, scrub_failure};
pub use agentd_protocol::secret::Secret;
pub use aws::{AwsCache, AwsProblem};
pub use command::{CommandCache, CommandError};
pub use edit::{KeyProblem, NewKey};
pub use environment::{advice_for as variables_for, providers as providers_with_variables};
pub use error::AuthError;
pub use federation::FederationError;
pub use google::GoogleError;
pub use known::KnownSecrets;
pub use oauth::{EndpointError, FinishedLogin, LoginError, Logins, RenewError, StartedLogin, StoredLogin};
pub use resolve::{Auth, AuthSources, ProviderCredentials, StartError};
pub use services::AuthServices;
pub use status::{KeySource, KeyStatus, LoginStatus};
pub use store::{AuthStore, StoreError, Stored, StoredCredentials};
pub use tokens::TokenCache;
pub use value::ValueError;
pub use withheld::PassedVariables;
