//! The HTTP clients, made on first use: one for each network and kind of destination.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_http::{ClientError, Network, client_with_resolver, is_local};
use reqwest::{Client, Url};

use super::{
    address::AllowedHosts,
    resolver::{GuardedResolver, Lookup},
};

/// The clients that are kept. The one that was made first goes first.
const MAX_CLIENTS: usize = 12;

/// The clients of all sessions. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Clients(Arc<Mutex<Vec<(Key, Client)>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    network: Network,
    allowed: AllowedHosts,
    secure: bool,
    local: bool,
    /// The only host, where the user allows it by name: its addresses are not looked at.
    free: Option<String>,
}

impl Clients {
    /// The client for a URL.
    ///
    /// # Errors
    /// Where proxy or certificates cannot be used.
    pub(crate) fn get(
        &self,
        url: &Url,
        network: &Arc<Network>,
        allowed: &AllowedHosts,
        lookup: &Arc<dyn Lookup>,
    ) -> Result<Client, ClientError> {
        let free = allowed.names(url).then(|| url.host_str().unwrap_or_default().to_ascii_lowercase());
        let secure = url.scheme() == "https";
        let key = Key {
            network: Network::clone(network),
            allowed: allowed.clone(),
            secure,
            local: is_local(url),
            free: free.clone(),
        };
        if let Some((_, client)) = self.lock().iter().find(|(known, _)| *known == key) {
            return Ok(client.clone());
        }
        let proxy = network.proxy(secure).map(agentd_http::NamedProxy::host);
        let resolver = GuardedResolver {
            lookup: Arc::clone(lookup),
            allowed: allowed.clone(),
            is_free: Arc::new(move |name| {
                let is = |host: &Option<String>| {
                    host.as_deref().is_some_and(|host| host.eq_ignore_ascii_case(name))
                };
                is(&proxy) || is(&free)
            }),
        };
        let client = client_with_resolver(url, network, Arc::new(resolver))?;
        let mut clients = self.lock();
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((key, client.clone()));
        Ok(client)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Key, Client)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
