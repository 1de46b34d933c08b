//! The dialogs of a session that nobody has answered yet, in the order in which they were asked. Pure.

use agentd_protocol::ui::{ExtensionUiRequest, UiResponse};
use tokio::sync::oneshot;

use super::{
    dialog::{Asker, DialogAnswer},
    presence::UiAbilities,
};

/// Dialogs that wait for an answer.
#[derive(Default)]
pub(crate) struct PendingDialogs(Vec<Pending>);

struct Pending {
    request: ExtensionUiRequest,
    /// In whose name.
    asker: Asker,
    /// Who asked.
    answer: oneshot::Sender<DialogAnswer>,
}

impl PendingDialogs {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|pending| pending.answer.is_closed())
    }

    pub(crate) fn add(
        &mut self,
        request: ExtensionUiRequest,
        asker: Asker,
        answer: oneshot::Sender<DialogAnswer>,
    ) {
        // What was dropped instead of withdrawn does not add up.
        self.0.retain(|pending| !pending.answer.is_closed());
        self.0.push(Pending { request, asker, answer });
    }

    /// Hands an answer of a client to whoever asked; false when no dialog waits for one that such a client is asked.
    pub(crate) fn answer(&mut self, response: &UiResponse, abilities: UiAbilities) -> bool {
        let is_it = |pending: &Pending| pending.request.id == response.id && abilities.answer(pending.asker);
        let Some(place) = self.0.iter().position(is_it) else { return false };
        let Pending { request, answer, .. } = self.0.remove(place);
        answer.send(DialogAnswer::read(&request.method, response)).is_ok()
    }

    /// Gives a dialog up, which its default then answers; false when it is over.
    pub(crate) fn withdraw(&mut self, id: &str) -> bool {
        self.take(id).is_some()
    }

    /// Gives all up. Their ids.
    pub(crate) fn clear(&mut self) -> Vec<String> {
        self.0.drain(..).map(|pending| pending.request.id).collect()
    }

    /// What waits, oldest first. Dialogs whose asker is gone are not among them.
    pub(crate) fn list(&self) -> Vec<ExtensionUiRequest> {
        let waits = |pending: &&Pending| !pending.answer.is_closed();
        self.0.iter().filter(waits).map(|pending| pending.request.clone()).collect()
    }

    fn take(&mut self, id: &str) -> Option<Pending> {
        let place = self.0.iter().position(|pending| pending.request.id == id)?;
        Some(self.0.remove(place))
    }
}
