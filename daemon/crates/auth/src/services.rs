//! What the credentials of all sessions share.

use std::sync::Arc;

use agentd_http::HttpClients;

use crate::{AwsCache, CommandCache, Logins, TokenCache};

/// What all [`Auth`](crate::Auth)s of a daemon share, for its life; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AuthServices {
    /// Outputs of commands that print keys.
    pub commands: CommandCache,
    /// What token endpoints are asked with.
    pub http: Arc<HttpClients>,
    /// Tokens of clouds.
    pub tokens: TokenCache,
    /// Logins that are under way.
    pub logins: Logins,
    /// Keys of AWS that expire.
    pub aws: AwsCache,
}
