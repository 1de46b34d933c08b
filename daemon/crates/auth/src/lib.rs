//! Authorisation of requests to providers: the sources of keys, and their order.
//!
//! A crate of its own because finding a key can run a command or ask a token endpoint. It talks to no model and knows no
//! sessions, and no key, token, header value or command of the user appears in an error or in `Debug` output.

mod address;
mod auth;
mod aws;
mod azure;
mod command;
mod edit;
mod error;
mod federation;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod google;
mod jwt;
mod login_renewer;
mod oauth;
mod passed_variables;
mod provider_keys;
mod register_secrets;
mod resolve;
mod status;
mod store;
mod tokens;
mod user_secrets;
mod value;

/// The parts of a login by browser, for logins that find their endpoints by themselves (MCP servers).
pub mod browser_login {
    pub use crate::oauth::{
        Callback, CallbackOutcome, ExpectedCallback, Pkce, random_text, read_pasted, wait_for_callback,
    };
}

/// Asking the endpoints that give tokens.
pub mod endpoint {
    pub use crate::oauth::{EndpointError, EndpointRequest, RequestKind, address, ask_by, query};
}

pub use agentd_http::{register_secret, scrub, scrub_diagnostic, scrub_failure};
pub use agentd_protocol::secret::Secret;
pub use auth::{Auth, AuthServices, AuthSources};
pub use aws::{AwsCache, AwsProblem};
pub use command::{CommandCache, CommandError, run as run_command};
pub use edit::NewKey;
pub use error::AuthError;
pub use federation::FederationError;
pub use google::GoogleError;
pub use jwt::{JwtAlgorithm, JwtError, sign_jwt};
pub use login_renewer::{LoginRenewer, LoginStep};
pub use oauth::{
    EndpointError, FinishedLogin, LoginError, Logins, OutsideLogin, RenewError, StartedLogin, StoredLogin,
};
pub use passed_variables::PassedVariables;
pub use provider_keys::{advice_for as variables_for, providers as providers_with_variables};
pub use resolve::{ProviderCredentials, StartError};
pub use status::{KeySource, KeyStatus, LoginStatus};
pub use store::{AuthStore, KeyProblem, StoreError, StoredCredentials, StoredEntry};
pub use tokens::TokenCache;
pub use user_secrets::UserSecrets;
pub use value::ValueError;
