//! A server that wants the user to sign in.

use std::sync::Arc;

use super::{McpServer, connecting::Attempt};
use crate::oauth::Authorization;

impl McpServer {
    /// The authorization of its requests.
    pub(crate) fn authorization(&self) -> Option<&Arc<Authorization>> {
        self.authorization.as_ref()
    }

    /// Why the user must sign in, while that is so.
    pub(super) fn needed_sign_in(&self) -> Option<String> {
        self.authorization.as_ref()?.needed_sign_in()
    }

    /// Whether the user must sign in.
    pub(crate) fn lacks_sign_in(&self) -> bool {
        self.needed_sign_in().is_some()
    }

    /// Waits for an attempt to connect, unless it is connected or has said that it wants a sign-in.
    pub(crate) async fn ensure_tried(self: &Arc<Self>) {
        if !self.lacks_sign_in() {
            // The state says what came of it.
            let _ = self.connection(None, Attempt::Now).await;
        }
    }

    /// Connects again where a sign-in was missing and the file of tokens has changed: the user has signed in elsewhere.
    pub(crate) async fn connect_after_sign_in(self: &Arc<Self>) {
        if let Some(authorization) = &self.authorization
            && authorization.needed_sign_in().is_some()
            && authorization.has_news().await
        {
            let _ = self.connection(None, Attempt::Now).await;
        }
    }
}
