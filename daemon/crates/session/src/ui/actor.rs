//! The session's side: dialogs are kept, published, answered once.

use agentd_protocol::{
    event::Event,
    ui::{ExtensionUiRequest, UiRequestResolved, UiResponse},
};

use super::{Asker, Notice, Ui, UiAbilities, UiMessage, asking::request};
use crate::{actor::Actor, event_log::Audience, reply::encode};

impl Actor {
    /// What reaches the session's user.
    pub(crate) fn ui(&self) -> Ui {
        Ui {
            to_actor: self.to_actor.clone(),
            presence: self.feed.presence().clone(),
            timeout: self.context.services.limits.ui_timeout,
        }
    }

    pub(crate) fn on_ui_message(&mut self, message: UiMessage) {
        match message {
            // Whoever asks a session that ends gets the default: nobody answers any more.
            UiMessage::Ask { .. } if self.closing => {}
            UiMessage::Ask { request, line, asker, answer } => {
                self.dialogs.add(request, asker, answer);
                self.feed.publish_for(asker.audience(), line);
            }
            UiMessage::Withdraw { id } => {
                if self.dialogs.withdraw(&id) {
                    self.resolved(id, None);
                }
            }
            UiMessage::Tell { line, asker } => self.feed.publish_for(asker.audience(), line),
        }
    }

    /// An answer of a client. The first one counts; one to a dialog that is over, that another session asks, or that is not for
    /// clients of these `abilities`, is ignored.
    pub(crate) fn on_ui_response(&mut self, response: UiResponse, by: String, abilities: UiAbilities) {
        if self.dialogs.answer(&response, abilities) {
            self.resolved(response.id, Some(by));
        }
    }

    /// Gives up every dialog: each is answered by its default.
    pub(crate) fn give_up_dialogs(&mut self) {
        for id in self.dialogs.clear() {
            self.resolved(id, None);
        }
    }

    /// The dialogs that nobody has answered yet.
    pub(crate) fn pending_ui(&self) -> Vec<ExtensionUiRequest> {
        self.dialogs.list()
    }

    /// Tells the user something in the daemon's own name.
    pub(crate) fn tell_user(&self, notice: Notice) {
        if let Some((_, line)) = request(notice.into_method()) {
            self.feed.publish_for(Asker::Daemon.audience(), line);
        }
    }

    fn resolved(&self, id: String, by: Option<String>) {
        match encode(&Event::from(UiRequestResolved { id, by })) {
            Ok(line) => self.feed.publish_for(Audience::Counting, line),
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }
}
