//! Why a login failed, or could not be renewed.

use agentd_protocol::oauth_setting::LoginFlow;

use super::endpoint::EndpointError;

/// The number of logins that can be under way in a daemon.
pub(super) const MAX_LOGINS: usize = 8;

/// Why there is no login. No message holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Nothing says how a login with the provider works.
    #[error("nothing says how a login with {0} works")]
    Unknown(String),
    /// There is no client id.
    #[error(
        "a login with {0} needs a client id: agentd has none of its own there, and uses no other program's"
    )]
    NoClientId(String),
    /// The provider has no such flow.
    #[error("{provider} has no login {}: nothing names its {missing}", match .flow { LoginFlow::Browser => "by browser", LoginFlow::Device => "by a code for another device" })]
    NoFlow {
        /// The provider.
        provider: String,
        /// The flow.
        flow: LoginFlow,
        /// The endpoint that is not known.
        missing: &'static str,
    },
    /// The port for the browser cannot be had.
    #[error("the browser could not come back: {address} cannot be listened at: {problem}")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        problem: String,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
    /// Too many are under way.
    #[error("{MAX_LOGINS} logins are under way already")]
    TooMany,
    /// There is no such login, or no longer.
    #[error("there is no login \"{0}\" under way")]
    NotThere(String),
    /// It was given up.
    #[error("the login was cancelled")]
    Cancelled,
    /// Nobody came in time.
    #[error("nobody logged in before the time was up")]
    Expired,
    /// The provider or the user said no.
    #[error("the provider said no ({0})")]
    Denied(String),
    /// The pasted text is of no use; the login goes on.
    #[error("what was pasted is of no use: {0}")]
    Pasted(&'static str),
    /// An answer lacks something.
    #[error("the provider's answer does not hold {0}")]
    Incomplete(&'static str),
    /// An endpoint gave nothing.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A login that something else than agentd runs has failed: why.
    #[error("{0}")]
    Outside(String),
    /// It worked, and could not be stored.
    #[error("{0}")]
    NotStored(String),
}

/// Why there is no new token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenewError {
    /// Nothing says how.
    #[error("{0}")]
    NoWay(&'static str),
    /// The endpoint gave none.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Its answer has none.
    #[error("the answer of the token endpoint has no token in it")]
    NoToken,
    /// What renews it in the place of agentd did not.
    #[error("{0}")]
    Outside(String),
}
