//! HTTP for the whole daemon: the clients, the authorisation of requests, and the removal of secrets from texts.
//!
//! Knows neither models nor sessions, and reads no files of the user.

mod client;
mod clock;
mod credentials;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod network;
mod redact;
pub mod sigv4;

pub use agentd_protocol::secret::Secret;
pub use client::{ClientError, HttpClients, client_with_resolver, is_local, is_loopback};
pub use clock::{ClockSkew, Clocks};
pub use credentials::{Account, AwsKeys, Credentials};
pub use network::{CONNECT_TIMEOUT, CertificateFile, NamedProxy, Network, NetworkError, deepest_cause};
pub use redact::{Redactor, StreamRedactor, register_secret, scrub, scrub_diagnostic, scrub_failure};
