//! Logins with providers of extensions, as the keys of a session are found.

use std::sync::Arc;

use agentd_auth::{LoginRenewer, LoginStep};
use agentd_extensions::{ExtensionLogins, SessionExtensions};
use serde_json::{Map, Value};

struct LoginsOfExtensions(ExtensionLogins);

/// What renews the logins with the providers of these extensions.
pub(crate) fn login_renewer(extensions: Option<&SessionExtensions>) -> Option<Arc<dyn LoginRenewer>> {
    Some(Arc::new(LoginsOfExtensions(extensions?.logins())))
}

impl LoginRenewer for LoginsOfExtensions {
    fn renews(&self, provider: &str) -> bool {
        self.0.renews(provider)
    }

    fn renew<'a>(
        &'a self,
        provider: &'a str,
        login: &'a Map<String, Value>,
    ) -> LoginStep<'a, Map<String, Value>> {
        Box::pin(self.0.renew(provider, login))
    }

    fn key<'a>(&'a self, provider: &'a str, login: &'a Map<String, Value>) -> LoginStep<'a, String> {
        Box::pin(self.0.key(provider, login))
    }
}
