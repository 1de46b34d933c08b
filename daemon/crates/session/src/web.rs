//! How a session uses the web, by its settings, its permissions and its sandbox.

use std::{sync::Arc, time::Duration};

use agentd_ai::Network;
use agentd_protocol::settings::WebSettings;
use agentd_web::{AllowedHosts, HostRules, WebOptions};

use crate::{permissions::PermissionGate, sandbox::SessionSandbox};

/// The longest time of a call.
const MAX_TIMEOUT: Duration = Duration::from_secs(45);

/// What the options of a session are made of.
pub(crate) struct WebSources<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) settings: Option<&'a WebSettings>,
    pub(crate) network: &'a Arc<Network>,
    pub(crate) permissions: &'a Arc<PermissionGate>,
    pub(crate) sandbox: Option<&'a SessionSandbox>,
}

impl HostRules for PermissionGate {
    fn check(&self, host: &str) -> Result<(), String> {
        self.check_host(host)
    }
}

impl WebSources<'_> {
    /// Why nothing may be sent to the network, in a clause.
    pub(crate) fn refusal(&self) -> Option<String> {
        let is_off = self.sandbox.is_some_and(|sandbox| !sandbox.policy().network);
        is_off.then(|| {
            "the network is off in the sandbox of this session (setting sandbox.network, or --network)"
                .to_owned()
        })
    }

    /// The options for reading pages.
    pub(crate) fn options(&self) -> WebOptions {
        let default = WebOptions::default();
        let settings = self.settings.cloned().unwrap_or_default();
        let bytes = |value: Option<u64>, default: usize| {
            value.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX))
        };
        let (allowed, wrong) =
            match AllowedHosts::parse(settings.allowed_hosts.as_deref().unwrap_or_default()) {
                Ok(allowed) => (allowed, None),
                // A fault must not let more in, nor go unseen.
                Err(wrong) => (AllowedHosts::default(), Some(wrong)),
            };
        WebOptions {
            session: self.session_id.to_owned(),
            max_body: bytes(settings.max_body_bytes, default.max_body),
            timeout: settings.timeout_ms.map_or(default.timeout, Duration::from_millis).min(MAX_TIMEOUT),
            max_redirects: settings.max_redirects.unwrap_or(default.max_redirects),
            respect_robots: settings.respect_robots.unwrap_or(default.respect_robots),
            cache_bytes: bytes(settings.cache_bytes, default.cache_bytes),
            allowed,
            network: Arc::clone(self.network),
            hosts: Arc::clone(self.permissions) as _,
            refused: self.refusal().or(wrong),
        }
    }
}
