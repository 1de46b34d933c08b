//! Leaving the session for another one: what extensions say about it, and their calls that do it. The connection of the client does the rest.

use std::collections::HashMap;

use agentd_extensions::{CallResponder, EventKind, HostFailure, HostFunctions, SessionExtensions};
use agentd_protocol::{
    entry::EntryBody,
    error::{ErrorCode, Failure},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc::error::SendError, oneshot};
use tokio_util::sync::CancellationToken;

use super::{pending_start::Renewal, session_actor::Actor};
use crate::{
    extension_start::{SetUp, StartReason},
    extensions::{RunningCommand, all_taken},
    project_answer::AskedBefore,
    replacement::{
        AskedMove, ClientOrder, Leaving, LeavingAnswer, MoveRequest, MovedCommand, ReplaceCall,
        SessionBeginning, SessionEnd,
    },
    run::RunMessage,
};

impl Actor {
    /// What the extensions say about leaving the session.
    pub(super) fn answer_leaving(&mut self, leaving: &Leaving) -> LeavingAnswer {
        let has_models = |extensions: &SessionExtensions| {
            !extensions.providers().is_empty() || !extensions.virtual_models().is_empty()
        };
        LeavingAnswer {
            has_models: self.context.extensions.as_ref().is_some_and(has_models),
            asked: self.asked_before(),
            question: self.ask_leaving(leaving, true),
        }
    }

    /// What the extensions have to do with the trust in the project.
    fn asked_before(&self) -> AskedBefore {
        let extensions = self.context.extensions.as_ref();
        AskedBefore {
            are_asked: extensions.is_some_and(|extensions| extensions.listens(EventKind::ProjectTrust)),
            answer: self.trust.answer.clone(),
        }
    }

    /// Asks the extensions whether the session may be left; `None` where nobody is asked. With `after_start`, not before their handlers of
    /// `session_start` have ended: a client may be quicker than they are.
    fn ask_leaving(&mut self, leaving: &Leaving, after_start: bool) -> Option<oneshot::Receiver<bool>> {
        let extensions = self.context.extensions.clone()?;
        let (kind, event) = leaving.question(self.journal.tree().leaf_id())?;
        if !extensions.listens(kind) {
            return None;
        }
        self.tell_extensions();
        let (mut answer, answered) = oneshot::channel();
        let requests = self.extension_requests.0.clone();
        let started = after_start.then(|| self.extensions_started.clone());
        self.context.services.tasks.spawn(async move {
            if let Some(started) = started {
                // Without the client or the session, nobody waits for the start.
                tokio::select! {
                    () = started.cancelled() => {}
                    () = answer.closed() => return,
                    () = requests.closed() => {}
                }
            }
            let said = extensions.before(kind, &event).await;
            // What the handlers have shown comes before the answer to the client.
            all_taken(&requests).await;
            // The client may have left.
            let _ = answer.send(said.is_some_and(|said| said.get("cancel") == Some(&Value::Bool(true))));
        });
        Some(answered)
    }

    /// The calls `session.new`, `session.switch` and `session.fork`.
    pub(super) fn replace_for_extension(&mut self, call: ReplacingCall) {
        let ReplacingCall { method, params, responder, command } = call;
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let leaving = match (method.as_str(), text("path"), text("entryId")) {
            ("session.new", ..) => Some(Leaving::New { parent: text("parentSession") }),
            ("session.switch", Some(path), _) => Some(Leaving::Resume { path }),
            ("session.fork", _, Some(entry_id)) if params["position"] == "at" => {
                Some(Leaving::ForkAt { entry_id })
            }
            ("session.fork", _, Some(entry_id)) => Some(Leaving::ForkBefore { entry_id }),
            _ => None,
        };
        let Some(leaving) = leaving else {
            return responder.send(&Err(HostFailure::new("invalid", "A parameter is missing.")));
        };
        let Some(command) = command.filter(|number| self.command_runs.get(*number).is_some()) else {
            let text = "The session can be replaced only from a command.";
            return responder.send(&Err(HostFailure::new("not_in_command", text)));
        };
        let call = ReplaceCall {
            responder,
            setup: params["setup"].as_u64(),
            with_session: params["withSession"].as_u64(),
        };
        let (asked, to_actor) = (self.ask_leaving(&leaving, false), self.to_actor.clone());
        let asked_move = Box::new(AskedMove { leaving, command, call });
        self.tasks.spawn(async move {
            let is_prevented = match asked {
                Some(asked) => asked.await.unwrap_or(true),
                None => false,
            };
            if is_prevented {
                return asked_move.call.responder.send(&Ok(json!({"cancelled": true})));
            }
            // Without the actor the responder says that the session is gone.
            let _ = to_actor.send(RunMessage::Move(asked_move)).await;
        });
    }

    /// Hands the client of a command to another session.
    pub(super) fn lead_elsewhere(&mut self, asked: AskedMove) {
        let AskedMove { leaving, command, call } = asked;
        let refused = |text: &str| Err(HostFailure::new("failed", text));
        let Some(running) = self.command_runs.get(command) else {
            return call.responder.send(&refused("The command has ended."));
        };
        let Some(mover) = self.clients.movers().of(running.request.reply.subscriber) else {
            let text = "No client of this session can be led to another one.";
            return call.responder.send(&refused(text));
        };
        let running = self.command_runs.take(command).map(Box::new);
        if let Some(running) = &running {
            running.moved.cancel();
        }
        let command = MovedCommand { running, call, fault: None };
        let (session, asked) = (self.context.session_id.as_str().into(), self.asked_before());
        let request = MoveRequest { session, leaving, asked, command };
        if let Err(SendError(ClientOrder::Move(request))) = mover.send(ClientOrder::Move(Box::new(request))) {
            let failure = Failure::new(ErrorCode::NoSession, "The client of this command has left.");
            self.go_on_with((request.command, failure));
        }
    }

    /// A command that led nowhere goes on here.
    pub(super) fn go_on_with(&mut self, (command, failure): (MovedCommand, Failure)) {
        if let Some(running) = command.refuse(&failure) {
            self.adopt_command(*running);
        }
    }

    /// Waits for a command from here on; gives its number.
    fn adopt_command(&mut self, running: RunningCommand) -> u64 {
        let number = self.command_runs.begin(RunningCommand { moved: CancellationToken::new(), ..running });
        self.await_command(number);
        number
    }

    /// Gives the hosts of the extensions away, and starts others for this session.
    pub(super) fn give_hosts(&mut self, end: SessionEnd) {
        let (asker, _) = oneshot::channel();
        self.renew_extensions(Renewal::Give(Box::new(end)), asker);
    }

    /// A client has come from another session: the extensions begin.
    pub(super) async fn begin(&mut self, beginning: SessionBeginning) {
        let SessionBeginning { reason, previous_file, hosts, command, started } = beginning;
        let why = StartReason { reason, previous_file };
        let Some(MovedCommand { running, call, fault }) = command else {
            return self.start_in(hosts, why, None, started);
        };
        let number = running.map(|running| self.adopt_command(*running));
        if let Some(fault) = fault {
            call.responder.send(&Err(HostFailure::new("failed", fault.error)));
            return self.start_in(hosts, why, None, started);
        }
        let ReplaceCall { responder, setup, with_session } = call;
        let functions = responder.functions();
        let set_up = setup.map(|callback| SetUpCall {
            functions: functions.clone(),
            callback,
            session: self.entries_for_extension(),
        });
        let (asker, began) = oneshot::channel();
        self.start_in(hosts, why, set_up, asker);
        self.context.services.tasks.spawn(async move {
            let outcome = began
                .await
                .unwrap_or_else(|_| Err(Failure::new(ErrorCode::NoSession, "The session has ended.")));
            // The client is answered by the end of the command.
            let _ = started.send(Ok(()));
            let outcome = match (outcome, with_session) {
                (Err(failure), _) => Err(HostFailure::new("failed", failure.error)),
                (Ok(()), Some(callback)) => {
                    functions.call(callback, None, Vec::new(), number).await.map(drop)
                }
                (Ok(()), None) => Ok(()),
            };
            responder.send(&outcome.map(|()| json!({"cancelled": false})));
        });
    }

    /// Puts into the session what an extension filled it with.
    pub(super) async fn set_up(&mut self, set_up: SetUp) -> Result<(), Failure> {
        let mut ids: HashMap<String, String> = HashMap::new();
        let invalid = |error: &serde_json::Error| Failure::new(ErrorCode::InvalidField, error.to_string());
        for mut entry in set_up.entries {
            let own = entry["id"].as_str().map(str::to_owned);
            let known = |value: &Value| {
                let id = value.as_str()?;
                Some(ids.get(id).cloned().unwrap_or_else(|| id.to_owned()))
            };
            let parent = known(&entry["parentId"]);
            if parent.as_deref() != self.journal.tree().leaf_id() {
                let moved = self.journal.set_leaf(parent.as_deref());
                moved.map_err(|error| Failure::new(ErrorCode::NotFound, error.to_string()))?;
            }
            for field in ["targetId", "firstKeptEntryId"] {
                if let Some(id) = known(&entry[field]) {
                    entry[field] = id.into();
                }
            }
            let body: EntryBody = serde_json::from_value(entry).map_err(|error| invalid(&error))?;
            self.journal.append(&body).await?;
            if let (Some(own), Some(id)) = (own, self.journal.tree().leaf_id()) {
                ids.insert(own, id.to_owned());
            }
        }
        let leaf = set_up.leaf_id.map(|id| ids.get(&id).cloned().unwrap_or(id));
        let moved = self.journal.set_leaf(leaf.as_deref());
        moved.map_err(|error| Failure::new(ErrorCode::NotFound, error.to_string()))
    }
}

/// A call of an extension that replaces the session.
pub(super) struct ReplacingCall {
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) responder: CallResponder,
    /// The number of the command in which it was made.
    pub(super) command: Option<u64>,
}

/// The function of an extension that fills a new session.
pub(super) struct SetUpCall {
    functions: HostFunctions,
    callback: u64,
    /// What is in the session.
    session: Value,
}

impl SetUpCall {
    /// Runs it.
    ///
    /// # Errors
    /// The function failed.
    pub(super) async fn run(self) -> Result<SetUp, Failure> {
        let Self { functions, callback, session } = self;
        let failed = |text: String| Failure::new(ErrorCode::Unsupported, text);
        let made = functions.call(callback, None, vec![session], None).await;
        let made = made.map_err(|failure| failed(failure.message))?;
        serde_json::from_value(made).map_err(|error| failed(error.to_string()))
    }
}
