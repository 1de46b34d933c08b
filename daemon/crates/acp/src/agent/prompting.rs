//! `session/prompt` and `session/cancel`: one prompt at a time is worked on, and each gets its own answer.

use agentd_protocol::{
    budget::BudgetQuantity,
    command::{Accepted, Disposition, NoParams},
    error::ErrorCode,
    message::StopReason,
    session::{SessionState, SessionStats},
};
use serde_json::json;

use super::{
    calls::{Answer, data, done, failed, rpc_error, tell},
    state::{Agent, AnswerEnd, DaemonCall, Effects, Session, Turn},
};
use crate::{
    own_message::OwnMessage,
    prompts,
    requests::PromptParams,
    rpc::{AUTH_REQUIRED, INTERNAL_ERROR, INVALID_REQUEST, RequestId, RpcError},
    updates::{Cost, ToolCallFields, ToolStatus, Update},
};

/// How many prompts wait for the one before them in a session. Each can be as long as a line.
const WAITING_PROMPTS: usize = 16;

impl Agent {
    pub(super) fn prompt(
        &mut self,
        id: &RequestId,
        given: PromptParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        let PromptParams { session_id, prompt } = given;
        if prompt.is_empty() {
            return Err(RpcError::invalid_params("Invalid params: prompt: it is empty"));
        }
        let session = self.session(&session_id)?;
        if session.waiting.len() >= WAITING_PROMPTS {
            let text =
                format!("{WAITING_PROMPTS} prompts wait in this session, as many as may: wait for an answer");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        session.waiting.push_back((id.clone(), prompt));
        self.next_prompt(&session_id, effects);
        Ok(())
    }

    /// Sends the next prompt that waits, unless one is worked on.
    fn next_prompt(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.turn.is_none()) else {
            return;
        };
        let Some((request, blocks)) = session.waiting.pop_front() else { return };
        let command = prompts::command(blocks, &session.folders.cwd);
        let own = OwnMessage::Sent { text: command.message.clone(), has_images: !command.images.is_empty() };
        session.turn =
            Some(Turn { request, is_accepted: false, own, is_cancelled: false, last: None, budget: None });
        self.tell_remarks_as_text(id, effects);
        self.ask(DaemonCall::Prompt { session: id.to_owned() }, "prompt", Some(id), &command, effects);
        self.ask_held(id, effects);
    }

    /// The daemon has taken the prompt, or not.
    pub(super) fn prompt_taken(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        let taken = match answer {
            Ok(taken) => data::<Accepted>(Ok(taken)),
            Err(failure) => Err(rpc_error(&failure)),
        };
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = &mut session.turn else { return };
        match taken {
            Ok(Accepted { disposition: taken @ (Disposition::Started | Disposition::Queued), .. }) => {
                turn.is_accepted = true;
                turn.own.taken(taken, session.last_queued.clone());
            }
            // Where that was a command of an extension that has begun a run, the turn is over with the run.
            Ok(Accepted { disposition: Disposition::Handled, .. }) => {
                let call = DaemonCall::AtWork { session: id.to_owned() };
                self.ask(call, "get_state", Some(id), &NoParams {}, effects);
            }
            Err(error) => {
                if let Some(turn) = session.turn.take() {
                    match turn.is_cancelled {
                        true => done(&turn.request, &json!({"stopReason": "cancelled"}), effects),
                        false => failed(&turn.request, &error, effects),
                    }
                }
                self.next_prompt(id, effects);
            }
        }
    }

    /// The session's state after an extension took the prompt.
    pub(super) fn work_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        let is_at_work = data::<SessionState>(answer).is_ok_and(|state| state.is_streaming);
        match self.sessions.get_mut(id).and_then(|session| session.turn.as_mut()) {
            Some(turn) if is_at_work => turn.is_accepted = true,
            _ => self.end_turn(id, effects),
        }
    }

    /// Cancels all prompts of a session. Those that wait are answered at once, the one that is worked on when it has ended.
    pub(super) fn cancel(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for (request, _) in session.waiting.drain(..) {
            done(&request, &json!({"stopReason": "cancelled"}), effects);
        }
        if let Some(turn) = session.turn.as_mut().filter(|turn| !turn.is_cancelled) {
            turn.is_cancelled = true;
            self.ask(DaemonCall::Quiet, "abort", Some(id), &NoParams {}, effects);
        }
    }

    /// Cancels one request, where it is a prompt; others are answered anyway.
    pub(super) fn cancel_request(&mut self, request: &str, effects: &mut Effects) {
        let mut of_turn = None;
        for (id, session) in &mut self.sessions {
            if session.turn.as_ref().is_some_and(|turn| turn.request.text() == request) {
                of_turn = Some(id.clone());
            }
            if let Some(place) = session.waiting.iter().position(|(waiting, _)| waiting.text() == request)
                && let Some((waiting, _)) = session.waiting.remove(place)
            {
                return done(&waiting, &json!({"stopReason": "cancelled"}), effects);
            }
        }
        let Some(id) = of_turn else { return };
        let Some(turn) = self.sessions.get_mut(&id).and_then(|session| session.turn.as_mut()) else { return };
        if !turn.is_cancelled {
            turn.is_cancelled = true;
            self.ask(DaemonCall::Quiet, "abort", Some(&id), &NoParams {}, effects);
        }
    }

    /// The session has settled. The turn ends when its statistics are there: nothing of it follows its answer.
    pub(super) fn settled(&mut self, id: &str, was_aborted: bool, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.as_mut().filter(|turn| turn.is_accepted) else {
            session.end_open_calls(id, effects);
            return;
        };
        turn.is_cancelled |= was_aborted;
        session.end_open_calls(id, effects);
        let call = DaemonCall::Stats { session: id.to_owned(), ends_turn: true };
        self.ask(call, "get_session_stats", Some(id), &NoParams {}, effects);
    }

    /// Tells tokens and cost.
    pub(super) fn stats_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        // They are for the user's eyes alone: without them, the turn ends as well.
        let Ok(stats) = data::<SessionStats>(answer) else { return };
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.cost = stats.cost;
        let Some(usage) = stats.context_usage else { return };
        session.options.window = usage.context_window;
        if let Some(tokens) = usage.tokens {
            session.tell_usage(id, tokens, effects);
        }
    }

    /// Answers the prompt that was worked on, and goes on with the next one.
    pub(super) fn end_turn(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some(turn) = session.turn.take() {
            session.streaming_writes.clear();
            match outcome(&turn) {
                Ok(stop_reason) => done(&turn.request, &json!({"stopReason": stop_reason}), effects),
                Err(error) => failed(&turn.request, &error, effects),
            }
        }
        self.next_prompt(id, effects);
    }
}

impl Session {
    /// Tells that calls which were begun, and never ran, are over.
    fn end_open_calls(&mut self, id: &str, effects: &mut Effects) {
        for (call, _) in self.tools.drain() {
            let status = Some(ToolStatus::Failed);
            let fields = ToolCallFields { tool_call_id: call, status, ..ToolCallFields::default() };
            tell(id, &Update::ToolCallUpdate(fields), effects);
        }
    }

    /// Tells the tokens of the context.
    pub(super) fn tell_usage(&self, id: &str, used: u64, effects: &mut Effects) {
        // Without a window there is no size to compare with.
        if self.options.window > 0 {
            let cost = Some(Cost { amount: self.cost, currency: "USD" });
            tell(id, &Update::UsageUpdate { used, size: self.options.window, cost }, effects);
        }
    }
}

/// Pure. The answer to a prompt whose work is over.
fn outcome(turn: &Turn) -> Result<&'static str, RpcError> {
    if turn.is_cancelled {
        return Ok("cancelled");
    }
    match turn.budget {
        Some(BudgetQuantity::Turns) => return Ok("max_turn_requests"),
        Some(BudgetQuantity::Tokens) => return Ok("max_tokens"),
        _ => {}
    }
    let Some(AnswerEnd { stop_reason, error, code }) = &turn.last else { return Ok("end_turn") };
    match stop_reason {
        StopReason::Aborted => Ok("cancelled"),
        StopReason::Length => Ok("max_tokens"),
        StopReason::Error if *code == Some(ErrorCode::ModelRefused) => Ok("refusal"),
        StopReason::Error => {
            let text = error.clone().unwrap_or_else(|| "The model did not answer".to_owned());
            let of_login = matches!(code, Some(ErrorCode::NoCredentials | ErrorCode::NoModel));
            let error = RpcError::new(if of_login { AUTH_REQUIRED } else { INTERNAL_ERROR }, text);
            Err(error.data(json!({"code": code.unwrap_or(ErrorCode::ModelFailed)})))
        }
        StopReason::Stop | StopReason::ToolUse | StopReason::Deferred | StopReason::Pending => Ok("end_turn"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{Incoming, parse};

    fn turn(stop_reason: StopReason, code: Option<ErrorCode>) -> Turn {
        let Ok(Incoming::Request { id, .. }) = parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#) else {
            panic!("no request")
        };
        let last = Some(AnswerEnd { stop_reason, error: Some("e".into()), code });
        let own = OwnMessage::Next;
        Turn { request: id, is_accepted: true, own, is_cancelled: false, last, budget: None }
    }

    #[test]
    fn the_end_of_an_answer_is_the_stop_reason() {
        for (stop_reason, code, expected) in [
            (StopReason::Stop, None, Some("end_turn")),
            (StopReason::ToolUse, None, Some("end_turn")),
            (StopReason::Length, None, Some("max_tokens")),
            (StopReason::Aborted, None, Some("cancelled")),
            (StopReason::Error, Some(ErrorCode::ModelRefused), Some("refusal")),
            (StopReason::Error, Some(ErrorCode::ModelFailed), None),
            (StopReason::Error, None, None),
        ] {
            assert_eq!(outcome(&turn(stop_reason, code)).ok(), expected, "{stop_reason:?} {code:?}");
        }
        let login = outcome(&turn(StopReason::Error, Some(ErrorCode::NoCredentials))).unwrap_err();
        assert!(login.is(AUTH_REQUIRED));
    }

    #[test]
    fn what_is_cancelled_is_cancelled_whatever_failed() {
        let turn = Turn { is_cancelled: true, ..turn(StopReason::Error, Some(ErrorCode::Internal)) };
        assert_eq!(outcome(&turn), Ok("cancelled"));
    }

    #[test]
    fn budgets_of_turns_and_tokens_have_stop_reasons() {
        for (what, expected) in [
            (BudgetQuantity::Turns, Some("max_turn_requests")),
            (BudgetQuantity::Tokens, Some("max_tokens")),
            (BudgetQuantity::CostUsd, None),
        ] {
            let turn = Turn { budget: Some(what), ..turn(StopReason::Error, Some(ErrorCode::LimitReached)) };
            assert_eq!(outcome(&turn).ok(), expected, "{what:?}");
        }
    }
}
