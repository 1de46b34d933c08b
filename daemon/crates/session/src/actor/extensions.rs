//! The session's extensions: connecting them with it, what they are told, and what they tell its clients.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use agentd_auth::scrub;
use agentd_extensions::{EventKind, ExtensionFailure, SessionCall};
use agentd_protocol::event::{Event, ExtensionError};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    early_notice::{EarlyNotice, MAX_EARLY},
    session_actor::Actor,
};
use crate::{
    extension_start::{StartAsker, StartReason},
    extensions::{ExtensionLink, ExtensionRequest, FileLocks, PromptSpans, all_taken, notice},
    replacement::SessionEnd,
    tool_registry::{RegisteredTool, ToolOwner},
    ui::{Asker, Dialog, request},
};

/// The default of the setting `extensionHost.dialogWaitMs`.
const DIALOG_WAIT_MS: u64 = 60_000;

impl Actor {
    /// Connects the extensions of the session with it, and tells their handlers that it begins. The run waits for that, and who asked for it.
    pub(super) fn start_extensions(&mut self, why: StartReason, asker: Option<StartAsker>) {
        let Some(extensions) = self.context.extensions.clone() else {
            self.extensions_started.cancel();
            // The asker may be gone.
            asker.map(|asker| asker.send(Ok(())));
            return;
        };
        let over = CancellationToken::new();
        self.watch_presence(over.clone());
        let host = self.context.settings.extension_host.as_ref();
        let dialog_wait = host.and_then(|host| host.dialog_wait_ms).unwrap_or(DIALOG_WAIT_MS);
        let link = Arc::new(ExtensionLink {
            extensions: extensions.clone(),
            prompts: PromptSpans::default(),
            dialog_wait: Duration::from_millis(dialog_wait),
            known_tools: Mutex::new(extensions.tools().iter().map(|tool| tool.spec().name.clone()).collect()),
            ui_was_there: AtomicBool::new(false),
            _over: over.drop_guard(),
            requests: self.extension_requests.0.clone(),
            ui: self.ui(),
            tasks: self.context.services.tasks.clone(),
            models_due: AtomicBool::new(false),
            locks: FileLocks::default(),
        });
        self.register_extension_tools();
        let core: Map<String, Value> =
            self.core().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let weak = Arc::downgrade(&link);
        self.extension_link = Some(link);
        let started = self.extensions_started.clone();
        let cwd = self.context.cwd.display().to_string();
        let requests = self.extension_requests.0.clone();
        // It says itself when its handlers begin.
        let is_of_extension = self.is_of_extension();
        self.tasks.spawn(async move {
            extensions.bind(weak, core).await;
            if is_of_extension {
                started.cancel();
                return asker.into_iter().for_each(|asker| drop(asker.send(Ok(()))));
            }
            let StartReason { reason, previous_file } = why;
            let mut event = json!({"type": "session_start", "reason": reason});
            if let Some(file) = previous_file {
                event["previousSessionFile"] = file.into();
            }
            extensions.notify(EventKind::SessionStart, &event).await;
            extensions.discover(&cwd, if reason == "reload" { reason } else { "startup" }).await;
            started.cancel();
            if let Some(asker) = asker {
                // What the handlers have shown comes before the answer.
                all_taken(&requests).await;
                // The asker may be gone.
                let _ = asker.send(Ok(()));
            }
        });
    }

    /// Runs the handlers of `session_shutdown`, which may still call the session, and ends the extensions, or gives their hosts away.
    pub(super) async fn end_extensions(&mut self, end: Option<Box<SessionEnd>>) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        let mut ending = std::pin::pin!(async move {
            let Some(SessionEnd { reason, target, hosts }) = end.map(|end| *end) else {
                return extensions.shut_down("quit").await;
            };
            let kept = extensions.hand_over(reason, target.as_deref()).await;
            let given = match hosts {
                Some(hosts) => hosts.send(kept),
                None => Err(kept),
            };
            // Nobody wants them.
            if let Err(kept) = given {
                kept.ended().await;
            }
        });
        loop {
            tokio::select! {
                () = &mut ending => return,
                Some(request) = self.extension_requests.1.recv() => Box::pin(self.on_extension(request)).await,
            }
        }
    }

    /// Takes all that extensions have sent.
    pub(super) async fn take_extension_requests(&mut self) {
        loop {
            let request = match self.extension_backlog.pop_front() {
                Some(request) => request,
                None => match self.extension_requests.1.try_recv() {
                    Ok(request) => request,
                    // The actor holds a sender: there is nothing.
                    Err(_) => return,
                },
            };
            // Boxed: the actor's future has no room for what only sessions with extensions do.
            Box::pin(self.on_extension(request)).await;
        }
    }

    /// Takes a message of an extension.
    pub(super) async fn on_extension(&mut self, request: ExtensionRequest) {
        match request {
            ExtensionRequest::Call(call) => self.on_extension_call(*call).await,
            ExtensionRequest::Ask(asked) => self.ask_for_extension(*asked),
            ExtensionRequest::Show(fields) => self.show_for_extension(*fields),
            ExtensionRequest::Failed(failure) => self.tell_extension_failure(*failure),
            ExtensionRequest::ToolsChanged => {
                self.on_tools_changed().await;
                Box::pin(self.tell_commands()).await;
            }
            ExtensionRequest::PresenceChanged => {
                self.tell_early_notices();
                self.tell_extensions();
            }
            ExtensionRequest::Spent => self.record_unsaid().await,
            ExtensionRequest::ModelsChanged => {
                self.use_extension_models().await;
                self.modify_extension_models();
            }
            ExtensionRequest::ModelsModified => self.use_extension_models().await,
            ExtensionRequest::LogIn(login) => self.log_in(*login),
            ExtensionRequest::LoginUpdate(update) => self.publish(&Event::from(*update)),
            ExtensionRequest::LoggedIn(provider, counted) => self.on_logged_in(provider, counted).await,
            ExtensionRequest::ListCommands(reply) => self.list_commands(*reply).await,
            // Who waits may have left.
            ExtensionRequest::Reached(reached) => drop(reached.send(())),
            ExtensionRequest::BetweenTurns(reached) => self.await_turn_end(reached),
        }
        self.show_summary();
    }

    /// Tells of a failure of an extension.
    pub(super) fn tell_extension_failure(&mut self, failure: ExtensionFailure) {
        let ExtensionFailure { extension_path, event, error } = failure;
        // It may quote what the extension worked with.
        let error = scrub(&error).into_owned();
        self.tell_early(EarlyNotice::Failure(ExtensionError { extension_path, event, error }));
    }

    /// Asks the user. What the extension showed before is shown by then.
    fn ask_for_extension(&self, (dialog, call): (Dialog, SessionCall)) {
        if let Some(link) = &self.extension_link {
            link.ask(dialog, call);
        }
    }

    fn show_for_extension(&mut self, fields: Map<String, Value>) {
        // Something that draws on a terminal, which clients of the protocol do not have.
        if fields.get("method").is_some_and(|method| method == "custom") {
            return;
        }
        match notice(fields) {
            Ok(method) if !method.is_dialog() => {
                if let Some((_, line)) = request(method) {
                    self.tell_early(EarlyNotice::Line(line));
                }
            }
            Ok(_) => {}
            Err(error) => self.tell_extension_failure(ExtensionFailure {
                extension_path: "<runtime>".to_owned(),
                event: "ui".to_owned(),
                error: error.to_string(),
            }),
        }
    }

    /// Tells the clients, or the first one once it is there.
    fn tell_early(&mut self, notice: EarlyNotice) {
        if self.early_notices.is_some() && self.clients.presence().is_there(Asker::Extension) {
            self.tell_early_notices();
        }
        match &mut self.early_notices {
            Some(early) if early.len() < MAX_EARLY => early.push(notice),
            Some(_) => tracing::debug!("an extension shows more than is kept for the first client"),
            None => self.tell_notice(notice),
        }
    }

    fn tell_notice(&self, notice: EarlyNotice) {
        match notice {
            EarlyNotice::Line(_) if !self.context.mode.has_ui() => {}
            EarlyNotice::Line(line) => {
                self.feed.publish_for(Asker::Extension.audience(), line);
            }
            EarlyNotice::Failure(failure) => self.publish(&Event::from(failure)),
        }
    }

    /// A client is there.
    pub(super) fn tell_early_notices(&mut self) {
        for notice in self.early_notices.take().into_iter().flatten() {
            self.tell_notice(notice);
        }
    }

    /// A host that has ended is started again between turns.
    fn await_turn_end(&mut self, reached: oneshot::Sender<()>) {
        self.turn_waiters.push(reached);
        if !self.run.is_active() {
            self.tell_between_turns();
        }
    }

    /// No turn is under way.
    pub(super) fn tell_between_turns(&mut self) {
        for waiter in self.turn_waiters.drain(..) {
            // The host may have been given up.
            let _ = waiter.send(());
        }
    }

    pub(super) fn register_extension_tools(&mut self) {
        let extensions = self.context.extensions.as_ref();
        let inactive = extensions.map(|extensions| extensions.inactive_tools()).unwrap_or_default();
        let tools =
            extensions.into_iter().flat_map(|extensions| extensions.tools()).map(|tool| RegisteredTool {
                active: !inactive.contains(&tool.spec().name),
                tool,
                owner: ToolOwner::Extension,
            });
        self.tools.registry().replace(agentd_protocol::tool_list::ToolSource::Extension, tools);
    }

    /// The tools of extensions are others now. One that is new becomes active, unless it says otherwise, whatever was chosen before.
    async fn on_tools_changed(&mut self) {
        self.register_extension_tools();
        let Some(link) = &self.extension_link else { return };
        let all = self.tools.all(&self.context.tools);
        let of_extensions = all.iter().filter(|tool| tool.owner == ToolOwner::Extension);
        let new: Vec<String> = {
            let mut known = link.known_tools.lock().unwrap_or_else(PoisonError::into_inner);
            let new = of_extensions.filter(|tool| known.insert(tool.name().to_owned()));
            new.map(|tool| tool.name().to_owned()).collect()
        };
        let Some(extensions) = self.context.extensions.as_ref().filter(|_| !new.is_empty()) else { return };
        let inactive = extensions.inactive_tools();
        let wanted = |name: &String| {
            let is_declarable = all.iter().any(|it| it.name() == name && it.tool.exposure().is_for_models());
            is_declarable && !inactive.contains(name)
        };
        if self.tools.chosen().is_some() {
            let mut names = self.tools.active(&self.context.tools);
            names.extend(new.into_iter().filter(wanted));
            if let Err(failure) = self.use_known_tools(&names).await {
                tracing::error!(error = failure.error, "the tools of an extension could not be recorded");
            }
        }
    }

    /// Tells the handlers of an event that nobody waits for.
    pub(super) fn notify_extensions(&mut self, kind: EventKind, event: Value) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        if !extensions.listens(kind) {
            return;
        }
        self.tell_extensions();
        let cancel = self.server_prompts.cancel.clone();
        self.tasks.spawn(async move {
            cancel.run_until_cancelled(extensions.notify(kind, &event)).await;
        });
    }

    /// Tells the extensions what is different in the session. Before the next hook, which then knows it.
    pub(super) fn tell_extensions(&mut self) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        extensions.tell_core(self.core());
        let entries = self.journal.tree().entries();
        let leaf = self.journal.tree().leaf_id();
        if let Some(told) = &mut self.entries_told
            && (told.count < entries.len() || told.leaf.as_deref() != leaf)
        {
            let first = std::mem::replace(&mut told.count, entries.len());
            told.leaf = leaf.map(str::to_owned);
            if extensions.has_entries() {
                let new: Vec<_> = entries[first..].iter().filter_map(|entry| entry.json().ok()).collect();
                extensions.tell_entries(&json!({"entries": new, "leafId": leaf}));
            }
        }
    }

    /// A low-level run begins, if it has not yet: extensions hear of it before clients.
    pub(super) fn begin_agent_run(&mut self) {
        if self.agent_run.is_none() {
            self.runs += 1;
            self.agent_run = Some(self.runs);
        }
    }

    /// The mirror `core`.
    fn core(&mut self) -> Vec<(&'static str, Value)> {
        let choice = self.chooser.in_use();
        let usage = self.journal.usage(choice.model.context_window);
        let tree = self.journal.tree();
        let run = self.agent_run.map(|id| json!({"id": id, "aborted": self.run.is_cancelled()}));
        let path = |path: Option<&std::path::Path>| {
            path.map_or(Value::Null, |path| json!(path.display().to_string()))
        };
        let file = self.context.session_file.as_deref();
        vec![
            ("idle", json!((!self.run.is_active() || self.settling) && !self.compacting.is_active())),
            ("run", run.unwrap_or_default()),
            ("pendingCount", json!(self.queues.len())),
            ("model", if choice.model.is_placeholder() { Value::Null } else { json!(&*choice.model) }),
            ("thinkingLevel", json!(choice.level.as_str())),
            ("contextUsage", json!(usage)),
            ("sessionId", json!(self.context.session_id)),
            ("sessionFile", path(file)),
            ("sessionDir", path(file.and_then(std::path::Path::parent))),
            ("sessionName", json!(tree.name())),
            ("cwd", json!(self.context.cwd.display().to_string())),
            ("leafId", json!(tree.leaf_id())),
            ("entryCount", json!(tree.entries().len())),
            ("trusted", json!(self.context.prompt.is_trusted())),
            ("activeTools", json!(self.tools.active(&self.context.tools))),
            ("hasUI", json!(self.has_ui_for_extensions())),
            ("mode", json!(self.context.mode.name())),
        ]
    }
}
