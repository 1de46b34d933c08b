//! Why a sign-in failed.

use agentd_auth::endpoint::EndpointError;

/// Why a server gives no token. No message holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    /// The entry, or a value that it names, cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// The session has no such server.
    #[error("{0}")]
    NoServer(String),
    /// Tokens would be sent in the clear.
    #[error("its URL is neither https nor of this machine: a token would be sent in the clear")]
    InTheClear,
    /// Nothing says that the server has a sign-in.
    #[error("the server does not ask for a sign-in, and publishes no authorization server")]
    NotAsked,
    /// The server speaks for another one.
    #[error(
        "its metadata is of \"{resource}\", which does not hold {server}: no token of it may be sent there"
    )]
    ResourceMismatch {
        /// The published resource.
        resource: String,
        /// The server's URL.
        server: String,
    },
    /// The authorization server's metadata is of another one.
    #[error("the metadata of the authorization server {expected} is of \"{issuer}\"")]
    IssuerMismatch {
        /// Its issuer.
        issuer: String,
        /// The issuer that was asked.
        expected: String,
    },
    /// Metadata lacks what it must have.
    #[error("the metadata of {of} cannot be used: {why}")]
    Metadata {
        /// The resource or issuer.
        of: String,
        /// The fault.
        why: &'static str,
    },
    /// The authorization server has no metadata.
    #[error("the authorization server {issuer} publishes no metadata{}", last.as_ref().map(|error| format!(" ({error})")).unwrap_or_default())]
    NoMetadata {
        /// The issuer.
        issuer: String,
        /// The last answer.
        last: Option<EndpointError>,
    },
    /// The authorization server cannot protect the code.
    #[error("the authorization server {0} does not offer PKCE with S256")]
    NoPkce(String),
    /// There is no client, and no way to one.
    #[error(
        "the authorization server {0} registers no clients by itself: register one there, and put its id into \"oauth\": \
         {{\"clientId\": ...}} of the entry"
    )]
    NoRegistration(String),
    /// The server does not take the client's document.
    #[error(
        "the authorization server {0} takes no client metadata documents: leave out \"clientRegistration\""
    )]
    NoClientDocuments(String),
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
    /// The server or the user refused.
    #[error("the authorization server refused ({0})")]
    Denied(String),
    /// The answer is of another authorization server.
    #[error("the browser came back from another authorization server than it was sent to ({0})")]
    WrongIssuer(&'static str),
    /// What was pasted is of no use; the sign-in goes on.
    #[error("what was pasted is of no use: {0}")]
    Pasted(&'static str),
    /// No sign-in of this id.
    #[error("there is no sign-in \"{0}\" under way")]
    NotThere(String),
    /// The time was up.
    #[error("nobody signed in before the time was up")]
    Expired,
    /// The sign-in was given up.
    #[error("the sign-in was cancelled")]
    Cancelled,
    /// The token endpoint's answer is of no use.
    #[error("the answer of the token endpoint cannot be used: {0}")]
    BadAnswer(&'static str),
    /// There is nothing to renew the token with.
    #[error("there is no refresh token")]
    NoRefreshToken,
    /// An endpoint gave nothing.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The file of tokens cannot be used.
    #[error("{0}")]
    Store(String),
}

impl OAuthError {
    /// Whether the same may work later, without the user.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Endpoint(error) => error.may_pass(),
            Self::NoMetadata { last, .. } => last.as_ref().is_some_and(EndpointError::may_pass),
            Self::Store(_) => true,
            _ => false,
        }
    }
}
