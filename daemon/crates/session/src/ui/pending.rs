//! The dialogs that wait for an answer, and how the last questions about calls ended.

use std::collections::VecDeque;

use agentd_protocol::{
    error::{ErrorCode, Failure},
    permissions::{PermissionAnswer, PermissionQuestion, PermissionResponseParams},
    ui::{ExtensionUiRequest, UiMethod, UiRequestResolved, UiResponse},
};
use tokio::sync::oneshot;

use super::dialog::{Asker, ClientAnswer, DialogAnswer, UiAbilities};

/// How many questions about calls are remembered, so that a late answer is told what became of them.
const REMEMBERED: usize = 64;

/// Dialogs that wait for an answer.
#[derive(Default)]
pub(crate) struct PendingDialogs {
    waiting: Vec<Pending>,
    /// Questions about calls that are over, the newest last.
    ended: VecDeque<UiRequestResolved>,
}

struct Pending {
    request: ExtensionUiRequest,
    /// In whose name.
    asker: Asker,
    /// Who asked.
    answer: oneshot::Sender<ClientAnswer>,
}

/// A dialog that is over.
pub(crate) struct EndedDialog {
    pub(crate) resolved: UiRequestResolved,
    /// Whether it was a question about a call.
    pub(crate) was_permission: bool,
}

impl PendingDialogs {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.iter().all(|pending| pending.answer.is_closed())
    }

    pub(crate) fn add(
        &mut self,
        request: ExtensionUiRequest,
        asker: Asker,
        answer: oneshot::Sender<ClientAnswer>,
    ) {
        // Dialogs whose askers were dropped do not accumulate.
        self.waiting.retain(|pending| !pending.answer.is_closed());
        self.waiting.push(Pending { request, asker, answer });
    }

    /// Hands an answer of a client to the asker; `None` when no dialog of that id waits for such a client.
    pub(crate) fn answer(
        &mut self,
        response: &UiResponse,
        by: &str,
        abilities: UiAbilities,
    ) -> Option<EndedDialog> {
        let is_it = |pending: &Pending| pending.request.id == response.id && abilities.answer(pending.asker);
        let place = self.waiting.iter().position(is_it)?;
        let read = DialogAnswer::read(&self.waiting[place].request.method, response);
        self.end(place, Some((read, by)))
    }

    /// The same for an answer to a question about a call.
    ///
    /// # Errors
    /// It is over, which the text says with who decided what; or that is not among its options.
    pub(crate) fn decide(&mut self, answer: PermissionResponseParams) -> Result<EndedDialog, Failure> {
        let PermissionResponseParams { request_id: id, decision, message, client } = answer;
        let place = self.waiting.iter().position(|pending| pending.request.id == id);
        let asked = place.map(|place| (place, &self.waiting[place].request.method));
        let Some((place, UiMethod::Permission(question))) = asked else { return Err(self.too_late(&id)) };
        if question.option(decision).is_none() {
            let known: Vec<&str> = question.options.iter().map(|option| option.decision.as_str()).collect();
            let text = format!(
                "Invalid field \"decision\": {} is not among the options of this question: {}",
                decision.as_str(),
                known.join(", ")
            );
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
        let message = message.filter(|message| !message.trim().is_empty());
        if message.is_some() && decision != PermissionAnswer::Deny {
            let text = "Invalid field \"message\": words to the model go with the decision deny";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
        let answer = DialogAnswer::Permission { decision, message };
        self.end(place, Some((answer, &client))).ok_or_else(|| self.too_late(&id))
    }

    fn too_late(&self, id: &str) -> Failure {
        let Some(ended) = self.ended.iter().rev().find(|ended| ended.id == id) else {
            let text = format!("No question about a call has the id \"{id}\" in this session.");
            return Failure::new(ErrorCode::NotFound, text);
        };
        let text = match (&ended.by, ended.decision) {
            (Some(by), Some(decision)) => format!("{by} has answered this already: {}.", decision.done()),
            (Some(by), None) => format!("{by} has answered this already."),
            (None, _) => {
                "This question is over: nobody answered it in time, or the call was stopped.".to_owned()
            }
        };
        Failure::new(ErrorCode::NotFound, text).hint("The event permission_decision tells what was decided.")
    }

    /// Gives a dialog up, which its default then answers; `None` when it is over.
    pub(crate) fn withdraw(&mut self, id: &str) -> Option<EndedDialog> {
        let place = self.waiting.iter().position(|pending| pending.request.id == id)?;
        self.end(place, None)
    }

    /// Gives all up.
    pub(crate) fn clear(&mut self) -> Vec<EndedDialog> {
        let mut ended = Vec::new();
        while !self.waiting.is_empty() {
            ended.extend(self.end(0, None));
        }
        ended
    }

    /// The dialogs that wait, oldest first, without those whose asker is gone.
    pub(crate) fn list(&self) -> Vec<ExtensionUiRequest> {
        let waits = |pending: &&Pending| !pending.answer.is_closed();
        self.waiting.iter().filter(waits).map(|pending| pending.request.clone()).collect()
    }

    /// Ends the dialog at `place`: by an answer, or by its default. `None` when the asker did not wait any more.
    fn end(&mut self, place: usize, answer: Option<(DialogAnswer, &str)>) -> Option<EndedDialog> {
        let Pending { request, answer: asker, .. } = self.waiting.remove(place);
        let by = answer.as_ref().map(|(_, by)| (*by).to_owned());
        let (decision, was_permission) = match &request.method {
            UiMethod::Permission(question) => {
                (answer.as_ref().map(|(answer, _)| decided(question, answer)), true)
            }
            _ => (None, false),
        };
        let resolved = UiRequestResolved { id: request.id, by, decision };
        if was_permission {
            if self.ended.len() == REMEMBERED {
                self.ended.pop_front();
            }
            self.ended.push_back(resolved.clone());
        }
        if let Some((answer, by)) = answer {
            asker.send(ClientAnswer { answer, by: by.to_owned() }).ok()?;
        }
        Some(EndedDialog { resolved, was_permission })
    }
}

/// What an answer says about a call. None of the options is a no.
fn decided(question: &PermissionQuestion, answer: &DialogAnswer) -> PermissionAnswer {
    match answer {
        DialogAnswer::Permission { decision, .. } => *decision,
        DialogAnswer::Value(text) => question
            .options
            .iter()
            .find(|option| option.text == *text)
            .map_or(PermissionAnswer::Deny, |option| option.decision),
        DialogAnswer::Confirmed(_) | DialogAnswer::Nothing => PermissionAnswer::Deny,
    }
}
