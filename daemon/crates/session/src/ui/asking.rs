//! Asking the user, from any task of a session.

use std::time::Duration;

use agentd_protocol::{
    event::Event,
    ui::{ExtensionUiRequest, UiMethod},
};
use bytes::Bytes;
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::dialog::{Asker, ClientAnswer, Dialog, DialogAnswer, Notice, Presence};
use crate::{event_log::Audience, message_sender::MessageSender, reply::encode};

/// Reaches the user of a session. Cheap to clone.
#[derive(Clone)]
pub struct Ui {
    /// Whether nobody is asked and nothing is shown, even while clients are there that could answer (`--no-ui`).
    pub(crate) is_off: bool,
    pub(crate) messages: MessageSender<UiMessage>,
    pub(crate) presence: Presence,
    /// Time that a dialog without a limit of its own waits while no client is there.
    pub(crate) timeout: Duration,
    /// The user of the session that a subagent works for, who is asked where nobody follows the subagent.
    pub(crate) parent: Option<Box<ParentUi>>,
}

/// The user of the session that a subagent works for.
#[derive(Clone)]
pub(crate) struct ParentUi {
    pub(crate) ui: Ui,
    /// The subagent's id, for the question.
    pub(crate) id: String,
}

/// A message from [`Ui`] to the session.
pub(crate) enum UiMessage {
    /// A dialog is to be shown until it is answered or withdrawn.
    Ask {
        request: ExtensionUiRequest,
        line: Bytes,
        audience: Audience,
        asker: Asker,
        answer: oneshot::Sender<ClientAnswer>,
    },
    /// A dialog is given up.
    Withdraw { id: String },
    /// A notice is to be shown.
    Tell { line: Bytes, asker: Asker },
}

impl Ui {
    /// Asks, and waits for the first answer of any client.
    ///
    /// The default (a no, or nothing) is the answer at once in a session without questions (`--no-ui`), and when `cancel` fires, when
    /// the dialog's own limit is over, when the session ends, and, for a dialog without a limit, when nobody was there to answer for
    /// the time of the setting `daemon.uiTimeoutMs`. Cancel safety: dropped early, the dialog stays on the clients' screens until they look again;
    /// better fire `cancel`.
    pub async fn ask(&self, asker: Asker, dialog: Dialog, cancel: &CancellationToken) -> DialogAnswer {
        self.ask_whom(asker, dialog, cancel).await.0
    }

    /// As [`Self::ask`], with the name of the client that answered; `None` for the default.
    pub async fn ask_whom(
        &self,
        asker: Asker,
        dialog: Dialog,
        cancel: &CancellationToken,
    ) -> (DialogAnswer, Option<String>) {
        let (limit, default) = (dialog.limit(), dialog.default_answer());
        if self.is_off {
            return (default, None);
        }
        if let Some(parent) = self.parent.as_ref().filter(|_| !self.presence.is_there(asker)) {
            return Box::pin(parent.ui.ask_whom(asker, dialog.of_subagent(&parent.id), cancel)).await;
        }
        let Some((request, line, audience)) = question(dialog.into_method(), asker) else {
            return (default, None);
        };
        let id = request.id.clone();
        let (answer, mut answered) = oneshot::channel();
        self.send(UiMessage::Ask { request, line, audience, asker, answer }).await;
        tokio::select! {
            biased;
            answer = &mut answered => return named(answer, default),
            () = self.expired(asker, limit) => {}
            () = cancel.cancelled() => {}
        }
        self.send(UiMessage::Withdraw { id }).await;
        // An answer that came first counts: the clients were told that it did.
        named(answered.await, default)
    }

    /// Whether somebody is there who can answer.
    #[must_use]
    pub fn is_there(&self, asker: Asker) -> bool {
        let has_client = || self.presence.is_there(asker);
        !self.is_off && (has_client() || self.parent.as_ref().is_some_and(|parent| parent.ui.is_there(asker)))
    }

    /// Shows something that needs no answer.
    pub async fn tell(&self, asker: Asker, notice: Notice) {
        if !self.is_off
            && let Some((_, line)) = request(notice.into_method())
        {
            self.send(UiMessage::Tell { line, asker }).await;
        }
    }

    /// Waits until a client is there that can be asked, at most as long as for an answer while no client is there.
    /// Returns whether one is.
    ///
    /// A question that is asked earlier does not reach a client that opens the session: its event is older than the
    /// subscription.
    pub async fn somebody(&self, asker: Asker) -> bool {
        if self.is_off {
            return false;
        }
        tokio::select! {
            biased;
            () = self.presence.until(asker, true) => true,
            () = sleep(self.timeout) => false,
        }
    }

    /// Waits until it is too late for an answer.
    async fn expired(&self, asker: Asker, limit: Option<Duration>) {
        if let Some(limit) = limit {
            return sleep(limit).await;
        }
        loop {
            self.presence.until(asker, false).await;
            tokio::select! {
                biased;
                () = self.presence.until(asker, true) => {}
                () = sleep(self.timeout) => return,
            }
        }
    }

    async fn send(&self, message: UiMessage) {
        // A session that is gone drops the message, and with it the sender of the answer.
        self.messages.send(message).await;
    }
}

/// An answer of a client, or the default.
fn named(
    answer: Result<ClientAnswer, oneshot::error::RecvError>,
    default: DialogAnswer,
) -> (DialogAnswer, Option<String>) {
    answer.map_or((default, None), |answer| (answer.answer, Some(answer.by)))
}

/// A question under a new id, and its line: in two forms, where it is about a call.
fn question(method: UiMethod, asker: Asker) -> Option<(ExtensionUiRequest, Bytes, Audience)> {
    let (request, line) = request(method)?;
    if !matches!(request.method, UiMethod::Permission(_)) {
        return Some((request, line, asker.audience()));
    }
    let plain = encode(&Event::from(request.clone().plain())).ok()?;
    let split = u32::try_from(line.len()).ok()?;
    Some((request, [line, plain].concat().into(), Audience::Permission { split }))
}

/// A request under a new id, and its line.
pub(crate) fn request(method: UiMethod) -> Option<(ExtensionUiRequest, Bytes)> {
    let request = ExtensionUiRequest { id: Uuid::new_v4().to_string(), method };
    match encode(&Event::from(request.clone())) {
        Ok(line) => Some((request, line)),
        Err(error) => {
            tracing::error!(%error, "cannot write a question to the user");
            None
        }
    }
}
