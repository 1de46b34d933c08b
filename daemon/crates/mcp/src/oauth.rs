//! OAuth of servers that are reached by HTTP: tokens, where they come from, and the sign-in of the user.
//!
//! From the inside out: `challenge`, `metadata`, `scopes` and `token_auth` read what servers say; `discovery`, `registration` and `token_request`
//! ask them; `store` keeps what they gave; `renewal`, `machine_token` and `sign_in` are the ways to a token; [`Authorization`] chooses among
//! them for each request. A token goes to its own server and nowhere else: its entry is bound to the server's URL and to the authorization
//! server that gave it.

mod authorization;
mod challenge;
mod discovery;
mod error;
mod machine_token;
mod metadata;
mod redirect;
mod registration;
mod renewal;
mod scopes;
mod sign_in;
mod store;
mod token_auth;
mod token_request;
mod values;

pub use self::error::OAuthError;
pub(crate) use self::{
    authorization::{AfterRefusal, Authorization, AuthorizationParts, RequestCourse, TokenSource},
    challenge::Challenge,
    discovery::OAuthHttp,
    sign_in::OpenSignIn,
    store::SignInStore,
    values::{FilledIn, ValueResolver},
};

/// Reads metadata of a server and of an authorization server, for the laws.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_metadata(document: &serde_json::Map<String, serde_json::Value>, server: &reqwest::Url) {
    use self::metadata::{ExpectedIssuer, ResourceMetadata, ServerMetadata, covers};
    if let Ok(read) = ResourceMetadata::read(document, server) {
        assert!(covers(&read.resource, server));
    }
    let asked = "https://login.example/tenant";
    if let Ok(read) = ServerMetadata::read(document, ExpectedIssuer::Exactly(asked)) {
        assert_eq!(read.issuer.trim_end_matches('/'), asked);
    }
}
