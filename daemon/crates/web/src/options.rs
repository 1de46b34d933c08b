//! What a session says about its use of the web, and what all sessions share.

use std::{sync::Arc, time::Duration};

use agentd_http::Network;
use tokio::sync::Semaphore;

use crate::{
    net::{Clients, HttpCache, RobotsCache, address::AllowedHosts},
    pages::PageCache,
};

/// Calls with bodies in memory at the same time, over all sessions.
const BODIES: usize = 6;

/// What all sessions share: answers of servers, clients, pages. Cheap to clone. Takes no memory to speak of before the first page.
#[derive(Clone)]
pub struct WebStore {
    pub(crate) cache: HttpCache,
    pub(crate) clients: Clients,
    pub(crate) robots: RobotsCache,
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) pages: PageCache,
}

impl Default for WebStore {
    fn default() -> Self {
        Self {
            cache: HttpCache::default(),
            clients: Clients::default(),
            robots: RobotsCache::default(),
            bodies: Arc::new(Semaphore::new(BODIES)),
            pages: PageCache::default(),
        }
    }
}

/// What the permissions of a session say about hosts.
pub trait HostRules: Send + Sync {
    /// Whether a host may be asked that nobody was asked about: one that a page redirects to, or that has a better form of it.
    ///
    /// # Errors
    /// Why not, in a clause.
    fn check(&self, host: &str) -> Result<(), String>;
}

/// No rules.
impl HostRules for () {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// How a session uses the web: the setting `web`.
#[derive(Clone)]
pub struct WebOptions {
    /// Names the session, whose pages are kept for reading on.
    pub session: String,
    /// The most bytes of a body, unpacked: 50 MiB.
    pub max_body: usize,
    /// The time of a call that says none: 20 s.
    pub timeout: Duration,
    /// Redirects that are followed: 10.
    pub max_redirects: u32,
    /// Whether `robots.txt` counts.
    pub respect_robots: bool,
    /// The bytes of answers that are kept, over all sessions; 0 for none: 32 MiB.
    pub cache_bytes: usize,
    /// Hosts that may be reached though they are not public.
    pub allowed: AllowedHosts,
    /// Proxies, certificates and timeouts.
    pub network: Arc<Network>,
    /// What the permissions say about hosts.
    pub hosts: Arc<dyn HostRules>,
    /// Why nothing can be read at all, in a clause: the sandbox has the network off, or a setting is wrong.
    pub refused: Option<String>,
}

impl Default for WebOptions {
    fn default() -> Self {
        Self {
            session: String::new(),
            max_body: 50 << 20,
            timeout: Duration::from_secs(20),
            max_redirects: 10,
            respect_robots: true,
            cache_bytes: 32 << 20,
            allowed: AllowedHosts::default(),
            network: Arc::default(),
            hosts: Arc::new(()),
            refused: None,
        }
    }
}
