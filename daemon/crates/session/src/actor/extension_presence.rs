//! Whether extensions can ask the user.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::session_actor::Actor;
use crate::{extensions::ExtensionRequest, options::SessionMode, ui::Asker};

impl Actor {
    /// Whether somebody may answer questions of extensions. Before the first client that does, one is expected.
    pub(super) fn has_ui_for_extensions(&self) -> bool {
        if self.context.mode != SessionMode::Rpc {
            return false;
        }
        let is_there = self.clients.presence().is_there(Asker::Extension);
        let Some(link) = &self.extension_link else { return true };
        if is_there {
            link.ui_was_there.store(true, Ordering::Relaxed);
        }
        is_there || !link.ui_was_there.load(Ordering::Relaxed)
    }

    /// Tells the extensions of clients that can answer their questions when the first comes and the last leaves, until `over` fires.
    pub(super) fn watch_presence(&self, over: CancellationToken) {
        let (presence, requests) = (self.clients.presence().clone(), self.extension_requests.0.clone());
        self.context.services.tasks.spawn(async move {
            let mut is_there = presence.is_there(Asker::Extension);
            while over.run_until_cancelled(presence.until(Asker::Extension, !is_there)).await.is_some() {
                is_there = !is_there;
                if requests.send(ExtensionRequest::PresenceChanged).is_err() {
                    return;
                }
            }
        });
    }
}
