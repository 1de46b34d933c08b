//! Logging in through a session: what a client asks, and what it hears.

use agentd_auth::StartError;
use agentd_protocol::credentials::LoginStarted;
use tokio::sync::oneshot;

/// A client wants to log in.
pub(crate) struct LogIn {
    pub(crate) provider: String,
    /// Whether the login takes the place of a stored key.
    pub(crate) force: bool,
    pub(crate) answer: oneshot::Sender<LogInAnswer>,
}

/// What comes of logging in through a session.
#[derive(Debug)]
pub enum LogInAnswer {
    /// It has begun, or has even ended: [`Logins`](agentd_auth::Logins) knows how.
    Started(Box<LoginStarted>),
    /// It could not begin.
    Failed(Box<StartError>),
    /// No extension logs in to the provider; they do to these.
    NotOfExtensions(Vec<String>),
}

impl Default for LogInAnswer {
    fn default() -> Self {
        Self::NotOfExtensions(Vec::new())
    }
}
