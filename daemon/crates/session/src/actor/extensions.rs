//! The session's extensions: what they are told, and what they ask of the session.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use agentd_auth::scrub;
use agentd_extensions::{CallResponder, EventKind, ExtensionFailure, HostFailure, SessionCall};
use agentd_protocol::{
    entry::EntryBody,
    error::Failure,
    event::{EntryAppended, Event, ExtensionError},
    message::{ContentBlock, CustomMessage, MessageContent},
    model::ThinkingLevel,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    early_notice::{EarlyNotice, MAX_EARLY},
    replacement::ReplacingCall,
    session_actor::Actor,
};
use crate::{
    clock::now_ms,
    extension_start::{StartAsker, StartReason},
    extensions::{
        EntriesTold, ExtensionLink, ExtensionRequest, FileLocks, PromptSpans, all_taken, models_topic, notice,
    },
    replacement::SessionEnd,
    tool_registry::{RegisteredTool, ToolOwner},
    transcript::store_failure,
    ui::{Asker, Dialog, request},
};

/// The default of the setting `extensionHost.dialogWaitMs`.
const DIALOG_WAIT_MS: u64 = 60_000;

/// The answer to a call.
type CallResult = Result<Value, HostFailure>;

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
        self.tasks.spawn(async move {
            extensions.bind(weak, core).await;
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
            ExtensionRequest::Call(call) => self.on_extension_call(call).await,
            ExtensionRequest::Ask(asked) => self.ask_for_extension(*asked),
            ExtensionRequest::Show(fields) => self.show_for_extension(fields),
            ExtensionRequest::Failed(failure) => self.tell_extension_failure(failure),
            ExtensionRequest::ToolsChanged => self.on_tools_changed().await,
            ExtensionRequest::PresenceChanged => {
                self.tell_early_notices();
                self.tell_extensions();
            }
            ExtensionRequest::Spent => self.record_unsaid().await,
            ExtensionRequest::ModelsChanged => self.use_extension_models().await,
            ExtensionRequest::ListCommands(reply) => self.list_commands(reply).await,
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

    async fn on_extension_call(&mut self, call: SessionCall) {
        if call.method.starts_with("model.") && call.method != "model.set" {
            return Box::pin(self.on_model_call(call)).await;
        }
        let call = self.take_tool_call(call).and_then(|call| self.take_read(call));
        let Some(call) = call else { return };
        let SessionCall { method, params, responder, command, .. } = call;
        let is_waited_for = params["wait"] == true;
        let outcome = match method.as_str() {
            "session.waitIdle" => return self.answer_when_idle(responder, Ok(Value::Null)),
            "session.new" | "session.switch" | "session.fork" => {
                let call = ReplacingCall { method, params, responder, command };
                return self.replace_for_extension(call);
            }
            "agent.compact" => return self.compact_for_extension(&params, responder),
            "agent.shutdown" => return self.quit_for_extension(responder),
            "session.reload" => return self.reload_for_extension(responder),
            "session.navigate" => return self.navigate_for_extension(&params, responder).await,
            "read" => self.read_for_extension(&params).await,
            "session.writeFile" => self.journal.make_file().await.map(|()| Value::Null).map_err(failed),
            "session.appendEntry" => self.append_for_extension(params).await,
            "session.setName" => match params["name"].as_str() {
                Some(name) => self.use_name(name).await.map(|()| Value::Null).map_err(failed),
                None => Err(invalid("name")),
            },
            "session.setLabel" => self.label_for_extension(&params).await,
            "session.sendMessage" => self.send_for_extension(params).await,
            "session.sendUserMessage" => self.send_user_for_extension(&params).await,
            "tools.setActive" => self.activate_for_extension(&params).await,
            "thinking.set" => {
                let level = params["level"].as_str().and_then(ThinkingLevel::from_name);
                let used = self.use_level(level).await;
                used.map(|()| json!(self.chooser.current().level.as_str())).map_err(failed)
            }
            "model.set" => self.set_model_for_extension(&params).await,
            "agent.abort" => {
                self.run.cancel();
                Ok(Value::Null)
            }
            other => Err(HostFailure::new("unsupported", format!("agentd knows no call {other}"))),
        };
        // What it changed is known before its answer.
        self.tell_extensions();
        if is_waited_for && outcome.is_ok() {
            return self.answer_when_idle(responder, outcome);
        }
        responder.send(&outcome);
    }

    /// Answers once nothing works for the session.
    fn answer_when_idle(&mut self, responder: CallResponder, outcome: CallResult) {
        let (done, idle) = oneshot::channel();
        self.when_idle(done);
        self.context.services.tasks.spawn(async move {
            // An error means that the session is gone, and nothing works for it.
            let _ = idle.await;
            responder.send(&outcome);
        });
    }

    async fn append_for_extension(&mut self, params: Value) -> CallResult {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            custom_type: String,
            #[serde(default)]
            data: Option<Value>,
        }
        let Params { custom_type, data } = parsed(params)?;
        self.journal.append(&EntryBody::Custom { custom_type, data }).await.map_err(failed)?;
        let Some(entry) = self.journal.tree().leaf() else { return Ok(Value::Null) };
        let id = json!(entry.id());
        let entry = entry.json().map_err(|error| failed(store_failure(&error)))?;
        self.publish(&EntryAppended { entry }.into());
        Ok(id)
    }

    async fn label_for_extension(&mut self, params: &Value) -> CallResult {
        let target_id = params["entryId"].as_str().ok_or_else(|| invalid("entryId"))?.to_owned();
        if self.journal.tree().get(&target_id).is_none() {
            return Err(HostFailure::new("invalid", format!("Entry {target_id} not found")));
        }
        let label = params["label"].as_str().map(str::to_owned);
        let body = EntryBody::Label { target_id, label };
        self.journal.append(&body).await.map(|()| Value::Null).map_err(failed)
    }

    async fn activate_for_extension(&mut self, params: &Value) -> CallResult {
        let wanted: Vec<String> = params["names"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        self.use_known_tools(&wanted).await.map_err(failed)?;
        Ok(json!(self.tools.active(&self.context.tools)))
    }

    /// Makes the tools of these names active. Unknown ones are ignored, as in pi.
    pub(super) async fn use_known_tools(&mut self, wanted: &[String]) -> Result<(), Failure> {
        let states = self.tools.states(&self.context.tools).into_iter();
        let names: Vec<String> = states.map(|tool| tool.name).filter(|name| wanted.contains(name)).collect();
        self.use_tools(names).await
    }

    async fn set_model_for_extension(&mut self, params: &Value) -> CallResult {
        let (Some(provider), Some(id)) = (params["provider"].as_str(), params["id"].as_str()) else {
            return Err(invalid("provider"));
        };
        let (provider, id) = (provider.to_owned(), id.to_owned());
        let found =
            self.context.with_usable_models(move |models| models.find_available(&provider, &id)).await;
        let Some(model) = found else { return Ok(json!(false)) };
        let pinned = self.chooser.pinned(&model);
        self.use_model(model, pinned).await.map_err(failed)?;
        Ok(json!(true))
    }

    async fn read_for_extension(&mut self, params: &Value) -> CallResult {
        let etag = params["etag"].as_str().unwrap_or_default();
        let value = match params["topic"].as_str().unwrap_or_default() {
            "entries" => {
                let tree = self.journal.tree();
                self.entries_told = Some(EntriesTold {
                    count: tree.entries().len(),
                    leaf: tree.leaf_id().map(str::to_owned),
                });
                return Ok(json!({"etag": "", "value": self.entries_for_extension()}));
            }
            "settings" => json!(self.context.settings),
            "commands" => json!(self.command_list().await.map_err(failed)?),
            "models" => models_topic(&self.context).await,
            "mcp" => json!(self.context.mcp.as_ref().map(|mcp| mcp.list()).unwrap_or_default()),
            "scopedModels" => {
                let scope = self.chooser.scope().iter();
                scope.map(|scoped| json!({"model": &*scoped.model, "thinkingLevel": scoped.level})).collect()
            }
            other => return Err(HostFailure::new("unsupported", format!("agentd has no topic {other}"))),
        };
        let now = fingerprint(&value);
        Ok(if now == etag { json!({"etag": now}) } else { json!({"etag": now, "value": value}) })
    }

    /// The entries, as extensions read them.
    pub(super) fn entries_for_extension(&self) -> Value {
        let tree = self.journal.tree();
        let entries: Vec<_> = tree.entries().iter().filter_map(|entry| entry.json().ok()).collect();
        let header: Value = serde_json::from_str(tree.header().line()).unwrap_or_default();
        json!({"header": header, "entries": entries, "leafId": tree.leaf_id()})
    }

    /// A message of an extension: stored now, queued, or the beginning of a run.
    async fn send_for_extension(&mut self, params: Value) -> CallResult {
        #[derive(Deserialize)]
        struct Params {
            message: Sent,
            #[serde(default)]
            options: Options,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Sent {
            custom_type: String,
            #[serde(default)]
            content: Option<MessageContent>,
            #[serde(default)]
            display: bool,
            #[serde(default)]
            details: Option<Value>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Options {
            #[serde(default)]
            trigger_turn: Option<bool>,
            #[serde(default)]
            deliver_as: Option<String>,
        }
        let Params { message: Sent { custom_type, content, display, details }, options } = parsed(params)?;
        let content = content.unwrap_or_else(|| MessageContent::Blocks(Vec::new()));
        let message = CustomMessage { custom_type, content, display, details, timestamp: now_ms() };
        self.take_custom(message, options.trigger_turn, options.deliver_as.as_deref()).await
    }

    /// A message of an extension in the user's name.
    async fn send_user_for_extension(&mut self, params: &Value) -> CallResult {
        let (text, images) = match &params["content"] {
            Value::String(text) => (text.clone(), Vec::new()),
            blocks => {
                let blocks: Vec<ContentBlock> = parsed(blocks.clone())?;
                let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
                (texts.join("\n"), blocks.iter().filter_map(ContentBlock::as_image).cloned().collect())
            }
        };
        let behavior = match params["options"]["deliverAs"].as_str() {
            Some("steer") => Some(agentd_protocol::command::StreamingBehavior::Steer),
            Some("followUp") => Some(agentd_protocol::command::StreamingBehavior::FollowUp),
            _ => None,
        };
        let expands = params["options"]["expandPromptTemplates"] == true;
        self.take_extension_prompt(text, images, behavior, expands).await
    }
}

/// A text that changes with the value.
pub(super) fn fingerprint(value: &Value) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn parsed<T: for<'a> Deserialize<'a>>(value: Value) -> Result<T, HostFailure> {
    serde_json::from_value(value).map_err(|error| HostFailure::new("invalid", error.to_string()))
}

fn invalid(field: &str) -> HostFailure {
    HostFailure::new("invalid", format!("The parameter {field} is missing or of another type."))
}

fn failed(failure: Failure) -> HostFailure {
    HostFailure::new("failed", failure.error)
}
