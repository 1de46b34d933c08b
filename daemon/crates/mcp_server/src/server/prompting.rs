//! `prompt`: from the call to the session's work, and to the result.

use std::collections::BTreeMap;

use agentd_protocol::{
    command::{Accepted, Disposition, NoParams, PromptParams},
    daemon::{
        AttachSessionParams, AttachedSession, CloseSessionParams, EndMode, OpenSessionParams, OpenedSession,
        SessionParams,
    },
    error::ErrorCode,
    session::SessionState,
};
use agentd_translator::{Answer, rpc::quoted};

use super::{
    callers::{HOW_TO_GET_A_MODEL, data},
    finding::{is_asked_for, unknown_session},
    state::{Caller, DaemonCall, Effects, Errand, Opening, Place, Server, Work},
};
use crate::{arguments::PromptArguments, results::Outcome};

/// The provider of the model that stands where none is configured.
const NO_MODEL: &str = "unknown";

/// Results that wait for callers that were asked something.
const MAX_UNCLAIMED: usize = 16;

impl Server {
    pub(super) fn prompt(&mut self, caller: Caller, arguments: PromptArguments, effects: &mut Effects) {
        if let Some(id) = &arguments.session_id
            && (self.working.contains_key(id) || self.is_opening(id))
        {
            return self.tool_failed(&caller, &busy(id), effects);
        }
        self.take_questions(&caller, effects);
        let session = arguments.session_id.clone();
        let opening = Opening { caller: Some(caller), arguments };
        match session {
            Some(id) => self.find(id, Errand::Prompt(Box::new(opening)), effects),
            None => self.open(opening, None, effects),
        }
    }

    /// Opens the session of a prompt: one that exists, or a new one.
    pub(super) fn open(&mut self, opening: Opening, place: Option<Place>, effects: &mut Effects) {
        let Opening { caller, arguments } = &opening;
        let at = match (place, &arguments.session_id) {
            (Some(place), Some(id)) => {
                if let (Some(cwd), Some(caller)) = (&arguments.cwd, caller)
                    && *cwd != place.cwd
                {
                    let text = format!(
                        "cwd: the session {id} works in {}; leave cwd out, or begin a new session",
                        place.cwd
                    );
                    return self.tool_failed(caller, &text, effects);
                }
                self.opening_at(id, place)
            }
            _ => OpenSessionParams {
                cwd: arguments.cwd.clone().unwrap_or_else(|| self.options.cwd.display().to_string()),
                args: self.options.session_args.clone(),
                env: self.options.env.clone(),
                ..OpenSessionParams::default()
            },
        };
        let params = OpenSessionParams {
            model: arguments.model.clone(),
            thinking_level: arguments.thinking_level,
            name: arguments.name.clone(),
            if_idle: Some(true),
            ..at
        };
        self.ask(DaemonCall::Open(Box::new(opening)), "open_session", None, &params, effects);
    }

    fn is_opening(&self, id: &str) -> bool {
        self.daemon_calls.iter().any(|call| match call {
            DaemonCall::Open(opening) => opening.arguments.session_id.as_deref() == Some(id),
            DaemonCall::Find { session, errand: Errand::Prompt(_) } => session == id,
            _ => false,
        })
    }

    /// The daemon has opened a session, or not.
    pub(super) fn opened(&mut self, opening: Opening, answer: Answer<'_>, effects: &mut Effects) {
        let Opening { caller, arguments } = opening;
        let opened: OpenedSession = match data(answer) {
            Ok(opened) => opened,
            Err(failure) => {
                let Some(caller) = caller else { return };
                return match (&failure.code, &arguments.session_id) {
                    (ErrorCode::Busy, Some(id)) => self.tool_failed(&caller, &busy(id), effects),
                    (ErrorCode::SessionNotFound, Some(id)) => {
                        self.tool_failed(&caller, &unknown_session(id), effects);
                    }
                    _ => self.command_failed(&caller, &failure, effects),
                };
            }
        };
        let id = opened.state.session_id.clone();
        let has_existed =
            arguments.session_id.as_ref().is_some_and(|asked| is_asked_for(asked, &opened.state));
        let Some(caller) = caller else { return self.give_back(&id, has_existed, effects) };
        let problem = if arguments.session_id.is_some() && !has_existed {
            self.places.remove(arguments.session_id.as_deref().unwrap_or_default());
            Some(unknown_session(arguments.session_id.as_deref().unwrap_or_default()))
        } else if opened.state.model.provider == NO_MODEL {
            Some(format!("agentd has no model that it can use. {HOW_TO_GET_A_MODEL}"))
        } else if self.is_leaving && !self.options.shared {
            Some("The work was stopped: this server ends.".to_owned())
        } else if self.working.contains_key(&id) {
            Some(busy(&id))
        } else {
            None
        };
        if let Some(problem) = problem {
            if !self.working.contains_key(&id) {
                self.give_back(&id, has_existed, effects);
            }
            return self.tool_failed(&caller, &problem, effects);
        }
        self.remember(&opened.state);
        self.last_work += 1;
        let work = Work {
            state: format!("{id}:{}", self.last_work),
            caller: Some(caller),
            is_accepted: false,
            is_cancelled: false,
            outcome: Outcome { session: id.clone(), warnings: opened.warnings, ..Outcome::default() },
            activity: "The model is asked".to_owned(),
            progress: 0,
            questions: BTreeMap::new(),
        };
        self.working.insert(id.clone(), work);
        let params =
            PromptParams { message: arguments.prompt, budget: arguments.budget, ..PromptParams::default() };
        self.ask(DaemonCall::Prompt { session: id.clone() }, "prompt", Some(&id), &params, effects);
    }

    /// The daemon has taken the prompt, or not.
    pub(super) fn prompt_taken(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        let Some(work) = self.working.get_mut(id) else { return };
        match data::<Accepted>(answer) {
            // Where that was a command of an extension that has begun a run, the work is over with the run.
            Ok(Accepted { disposition: Disposition::Handled, .. }) => {
                let call = DaemonCall::AtWork { session: id.to_owned() };
                self.ask(call, "get_state", Some(id), &NoParams {}, effects);
            }
            Ok(Accepted { disposition: Disposition::Started | Disposition::Queued, .. }) => {
                work.is_accepted = true;
            }
            Err(failure) => {
                let caller = work.caller.take();
                self.working.remove(id);
                self.leave(id, effects);
                if let Some(caller) = caller {
                    match failure.code {
                        ErrorCode::Busy => self.tool_failed(&caller, &busy(id), effects),
                        _ => self.command_failed(&caller, &failure, effects),
                    }
                }
            }
        }
    }

    /// The session's state after an extension took the prompt.
    pub(super) fn work_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        let is_at_work = data::<SessionState>(answer).is_ok_and(|state| state.is_streaming);
        match self.working.get_mut(id) {
            Some(work) if is_at_work => work.is_accepted = true,
            _ => self.finish(id, effects),
        }
    }

    /// The session has settled.
    pub(super) fn settled(&mut self, id: &str, was_aborted: bool, effects: &mut Effects) {
        let Some(work) = self.working.get_mut(id).filter(|work| work.is_accepted) else { return };
        work.outcome.was_aborted |= was_aborted;
        self.finish(id, effects);
    }

    /// Answers the call, and leaves the session: no events of it come any more.
    fn finish(&mut self, id: &str, effects: &mut Effects) {
        self.leave(id, effects);
        self.end_work(id, effects);
    }

    /// The session is gone, or is not followed any more: what there is of its work is the result.
    pub(super) fn lost(&mut self, id: &str, why: &str, effects: &mut Effects) {
        if let Some(work) = self.working.get_mut(id) {
            work.outcome.error = Some(why.to_owned());
            work.outcome.code = Some(ErrorCode::Internal);
            self.end_work(id, effects);
        }
    }

    fn end_work(&mut self, id: &str, effects: &mut Effects) {
        let Some(work) = self.working.remove(id) else { return };
        self.withdraw_questions(id, effects);
        match work.caller {
            Some(caller) => self.done(&caller, work.outcome.result(), effects),
            None if work.is_cancelled => {}
            // The client was asked something, and is to come back for the rest.
            None => {
                if self.unclaimed.len() >= MAX_UNCLAIMED {
                    self.unclaimed.pop_front();
                }
                self.unclaimed.push_back((work.state, work.outcome.result()));
            }
        }
    }

    /// Cancels the call of a request. A call that is cancelled gets no answer; those of tools that are quick are answered all the same.
    pub(super) fn cancel(&mut self, request: &str, effects: &mut Effects) {
        if self.end_subscription(request) {
            return;
        }
        let is_of = |caller: &Option<Caller>| caller.as_ref().is_some_and(|it| it.request.text() == request);
        let of_work = self.working.iter().find(|(_, work)| is_of(&work.caller)).map(|(id, _)| id.clone());
        if let Some(id) = of_work {
            if let Some(work) = self.working.get_mut(&id) {
                work.caller = None;
            }
            return self.stop(&id, effects);
        }
        for call in self.daemon_calls.iter_mut() {
            if let DaemonCall::Open(opening) | DaemonCall::Find { errand: Errand::Prompt(opening), .. } = call
                && is_of(&opening.caller)
            {
                opening.caller = None;
            }
        }
    }

    /// Aborts the work on a prompt.
    pub(super) fn stop(&mut self, id: &str, effects: &mut Effects) {
        let Some(work) = self.working.get_mut(id).filter(|work| !work.is_cancelled) else { return };
        work.is_cancelled = true;
        self.ask(DaemonCall::Quiet, "abort", Some(id), &NoParams {}, effects);
    }

    /// Events were not sent, since this client did not take them fast enough: joins the session anew.
    pub(super) fn lagged(&mut self, id: &str, effects: &mut Effects) {
        let Some(work) = self.working.get_mut(id) else { return };
        let remark = "Some of what happened is not counted here: events were not taken fast enough.";
        work.outcome.warn(remark.to_owned());
        let params = AttachSessionParams { session_id: id.to_owned(), since: None };
        self.ask(DaemonCall::Attach { session: id.to_owned() }, "attach_session", None, &params, effects);
    }

    /// Joined anew: work that has ended meanwhile is over.
    pub(super) fn attached(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        match data::<AttachedSession>(answer) {
            Ok(attached) if attached.state.is_streaming => {}
            Ok(_) => self.settled(id, false, effects),
            Err(failure) => self.lost(id, &failure.error, effects),
        }
    }

    /// Stops following a session; what it did is stored, and it can go on.
    fn leave(&mut self, id: &str, effects: &mut Effects) {
        let params = SessionParams { session_id: id.to_owned() };
        self.ask(DaemonCall::Quiet, "detach_session", None, &params, effects);
    }

    /// Leaves a session that the caller does not get. A new one is ended where it is ours alone; one that existed stays as it was.
    fn give_back(&mut self, id: &str, has_existed: bool, effects: &mut Effects) {
        if self.options.shared || has_existed {
            return self.leave(id, effects);
        }
        let params = CloseSessionParams { session_id: id.to_owned(), mode: EndMode::Abort };
        self.ask(DaemonCall::Quiet, "close_session", None, &params, effects);
    }
}

fn busy(id: &str) -> String {
    format!(
        "The session {} works on a prompt. `steer` tells it something now, `abort` stops it, `read_session` shows what it does; \
         another `prompt` is taken when that one is answered.",
        quoted(id)
    )
}
