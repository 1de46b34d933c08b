//! Logins with providers that only something else than agentd can renew.

use std::pin::Pin;

use serde_json::{Map, Value};

/// A step of a [`LoginRenewer`]. The error is a text for the user.
pub type LoginStep<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Renews logins with providers that only it knows. `login` is always the whole entry of `auth.json`.
///
/// A step is not cancelled once it has begun, unless the renewer is gone.
pub trait LoginRenewer: Send + Sync {
    /// Whether it renews the logins with a provider.
    fn renews(&self, provider: &str) -> bool;

    /// The entry that takes the place of one whose token has ended or was refused. Each refresh token may be good for one call.
    fn renew<'a>(
        &'a self,
        provider: &'a str,
        login: &'a Map<String, Value>,
    ) -> LoginStep<'a, Map<String, Value>>;

    /// The key that requests carry.
    fn key<'a>(&'a self, provider: &'a str, login: &'a Map<String, Value>) -> LoginStep<'a, String>;
}
