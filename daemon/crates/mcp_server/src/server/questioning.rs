//! Questions of the guard rails: asked through the client, by a request of ours or in a result, and its answers.

use std::collections::BTreeMap;

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionQuestion, PermissionResponseParams},
    ui::{ExtensionUiRequest, UiMethod},
};
use agentd_translator::rpc::{RpcError, quoted, write_notification, write_request, write_result};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    callers::tell_progress,
    state::{Asked, Caller, DaemonCall, Effects, Server},
};
use crate::{
    questions::{decision, form},
    requests::ElicitResult,
    results::of_era,
    versions::Era,
};

/// The client has not said that its user can be asked.
const MISSING_CAPABILITY: i32 = -32021;

impl Server {
    /// Takes a question about a call. Other questions are for the user's own clients.
    pub(super) fn asked_by_daemon(&mut self, id: &str, asked: ExtensionUiRequest, effects: &mut Effects) {
        let ExtensionUiRequest { id: question, method: UiMethod::Permission(about) } = asked else { return };
        let Some(work) = self.working.get_mut(id) else { return };
        work.activity = format!("A decision of the user is waited for: {}", about.tool);
        let Some(caller) = work.caller.clone() else {
            if work.is_cancelled {
                return self.decide(id, question, PermissionAnswer::Deny, None, effects);
            }
            // The client comes back, and hears of it then.
            work.questions.insert(question, *about);
            return;
        };
        if !caller.shows_forms {
            let why = "the agent that gave the task cannot ask its user".to_owned();
            return self.decide(id, question, PermissionAnswer::Deny, Some(why), effects);
        }
        tell_progress(work, effects);
        work.questions.insert(question.clone(), *about);
        match caller.era {
            Era::Modern => self.ask_in_result(id, effects),
            Era::Legacy => {
                self.last_question += 1;
                let params = self.working.get(id).and_then(|work| work.questions.get(&question));
                let params = params.map(|about| form(about, caller.version));
                write_request(self.last_question, "elicitation/create", &params, &mut effects.to_client);
                let asked = Asked { session: id.to_owned(), question };
                self.asked.insert(self.last_question, asked);
            }
        }
    }

    /// Answers the call with the open questions. The client comes back with their answers.
    fn ask_in_result(&mut self, id: &str, effects: &mut Effects) {
        let Some(work) = self.working.get_mut(id) else { return };
        let Some(caller) = work.caller.take() else { return };
        let requests = work.questions.iter().map(|(question, about)| {
            (question.clone(), json!({"method": "elicitation/create", "params": form(about, caller.version)}))
        });
        let requests: Map<String, Value> = requests.collect();
        let result = json!({"inputRequests": requests, "requestState": work.state});
        let result = of_era(caller.era, &self.options.version, "input_required", result);
        write_result(&caller.request, &result, &mut effects.to_client);
    }

    /// A call that was answered with questions comes again, with answers.
    pub(super) fn come_back(
        &mut self,
        caller: Caller,
        tool: &str,
        state: &str,
        answers: Option<&BTreeMap<String, Value>>,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        if let Some(place) = self.unclaimed.iter().position(|(of, _)| of == state)
            && let Some((_, result)) = self.unclaimed.remove(place)
        {
            self.done(&caller, result, effects);
            return Ok(());
        }
        let found = self.working.iter().find(|(_, work)| work.state == state && work.caller.is_none());
        let Some(id) =
            found.filter(|(_, work)| tool == "prompt" && !work.is_cancelled).map(|(id, _)| id.clone())
        else {
            let text =
                format!("Invalid params: requestState: \"{}\" is of no call that waits", quoted(state));
            return Err(RpcError::invalid_params(text));
        };
        let Some(work) = self.working.get_mut(&id) else { return Ok(()) };
        if !caller.shows_forms && !work.questions.is_empty() {
            let text =
                "The call waits for a decision of the user, and the client does not say that it shows forms";
            let data = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
            return Err(RpcError::new(MISSING_CAPABILITY, text).data(data));
        }
        let mut decided = Vec::new();
        for (question, given) in answers.into_iter().flatten() {
            // Of one that is answered already, by another client or by its time, there is nothing left to decide.
            let Some(about) = work.questions.get(question) else { continue };
            let read =
                serde_json::from_value::<ElicitResult>(given.clone()).map_err(|error| error.to_string());
            let decision = read.and_then(|answer| decision(about, &answer)).map_err(|text| {
                let text = format!("Invalid params: inputResponses.{}: {}", quoted(question), quoted(&text));
                RpcError::invalid_params(text)
            })?;
            decided.push((question.clone(), decision));
        }
        for (question, _) in &decided {
            work.questions.remove(question);
        }
        work.caller = Some(caller);
        let has_more = !work.questions.is_empty();
        for (question, decision) in decided {
            self.decide(&id, question, decision, None, effects);
        }
        if has_more {
            self.ask_in_result(&id, effects);
        }
        Ok(())
    }

    /// The client has answered a request of ours.
    pub(super) fn answered(&mut self, number: u64, given: &Result<&RawValue, String>, effects: &mut Effects) {
        let Some(Asked { session, question }) = self.asked.remove(&number) else { return };
        let Some(work) = self.working.get_mut(&session) else { return };
        let Some(about) = work.questions.remove(&question) else { return };
        let (answer, why) = match given {
            Ok(given) => (decided(&about, given), None),
            Err(error) => {
                (PermissionAnswer::Deny, Some(format!("the client could not ask its user: {error}")))
            }
        };
        self.decide(&session, question, answer, why, effects);
    }

    fn decide(
        &mut self,
        session: &str,
        request_id: String,
        decision: PermissionAnswer,
        message: Option<String>,
        effects: &mut Effects,
    ) {
        let params = PermissionResponseParams { request_id, decision, message, client: String::new() };
        // Somebody else may have answered first.
        self.ask(DaemonCall::Quiet, "permission_response", Some(session), &params, effects);
    }

    /// A question is over: the client need not ask it any more.
    pub(super) fn resolved(&mut self, id: &str, question: &str, effects: &mut Effects) {
        if let Some(work) = self.working.get_mut(id) {
            work.questions.remove(question);
        }
        self.withdraw(|asked| asked.question == question, effects);
    }

    /// The work of a session is over, and all of its questions with it.
    pub(super) fn withdraw_questions(&mut self, id: &str, effects: &mut Effects) {
        self.withdraw(|asked| asked.session == id, effects);
    }

    fn withdraw(&mut self, is_over: impl Fn(&Asked) -> bool, effects: &mut Effects) {
        let numbers = self.asked.iter().filter(|(_, asked)| is_over(asked)).map(|(number, _)| *number);
        for number in numbers.collect::<Vec<_>>() {
            self.asked.remove(&number);
            let params =
                json!({"requestId": number, "reason": "The question is decided, or its call is over."});
            write_notification("notifications/cancelled", &params, &mut effects.to_client);
        }
    }
}

/// The decision of the answer to a request of ours. What is no answer is a no.
fn decided(about: &PermissionQuestion, given: &RawValue) -> PermissionAnswer {
    let answer = serde_json::from_str::<ElicitResult>(given.get()).ok();
    answer.and_then(|answer| decision(about, &answer).ok()).unwrap_or(PermissionAnswer::Deny)
}
