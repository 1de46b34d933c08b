//! The commands that bring messages: prompts, queued messages, and `continue`, a run without a new message.

use std::sync::Arc;

use agentd_agent::queue::QueueKind;
use agentd_config::resources::{ExpandError, Expansion, TemplateCommands, expand, load_resources};
use agentd_prompt_history::NewPrompt;
use agentd_protocol::{
    command::{Disposition, Image, PromptParams, QueueParams},
    error::{ErrorCode, Failure},
    message::{ImageContent, Message},
    resources::{CommandSource, SlashCommand, SlashCommands},
    session::InterruptMode,
    ui::NotifyType,
};
use agentd_store::intent_log::{IntentRecord, QueuedRecord};
use tokio::task::{JoinError, spawn_blocking};

use super::session_actor::{Actor, shutting_down};
use crate::{
    clock::now_ms,
    extensions::ExtensionRequest,
    queues::{WaitingSize, message_bytes, queue_of},
    reply::Reply,
    requests::{CachedAnswer, CommandKind, PendingRequest},
    run::{Prompt, RunBeginning},
    server_prompts::MessageCommand,
    template_commands::expand_failure,
    transcript::store_failure,
    ui::Notice,
};

impl Actor {
    pub(super) async fn prompt(&mut self, mut params: PromptParams, reply: Reply) {
        let typed = params.typed.take();
        let text = typed.as_deref().unwrap_or(&params.message);
        let Some(request) = self.first_message(text, params.request_key.take(), reply) else {
            return;
        };
        self.take_checked(MessageCommand::Prompt(params), request).await;
    }

    /// Takes a message in. What the user typed is kept in the request until it is accepted.
    fn first_message(&mut self, text: &str, key: Option<String>, reply: Reply) -> Option<PendingRequest> {
        let is_kept = reply.is_of_user && self.context.prompt_history.is_some();
        let mut request = self.first(key, CommandKind::Message, reply)?;
        request.typed = if is_kept { agentd_prompt_history::normalized(text) } else { None };
        Some(request)
    }

    /// Has an accepted prompt of the user recorded, beside everything else.
    pub(super) fn remember(&self, prompt: String) {
        let Some(file) = self.context.prompt_history.clone() else { return };
        let prompt = NewPrompt {
            prompt,
            created_at: now_ms(),
            cwd: Some(self.context.cwd.display().to_string()),
            session_id: Some(self.context.session_id.clone()),
        };
        self.context.services.prompt_recorder.record(file, prompt);
    }

    /// Takes a message of the user: extensions come first.
    async fn take_checked(&mut self, command: MessageCommand, request: PendingRequest) {
        if let Err(failure) = self.check_message(command.message(), command.images()) {
            return self.refuse(request, failure);
        }
        if let Some((command, request)) = self.hand_to_extensions(command, request) {
            self.take_unseen(command, request).await;
        }
    }

    /// Takes a message that no extension has to do with any more: shell hooks come next.
    pub(super) async fn take_unseen(&mut self, command: MessageCommand, request: PendingRequest) {
        if let Some((command, request)) = self.hand_to_hooks(command, request) {
            self.take_seen(command, request).await;
        }
    }

    /// Takes a message that all have seen: skills, slash commands and prompt templates come next.
    pub(super) async fn take_seen(&mut self, mut command: MessageCommand, request: PendingRequest) {
        match self.expand(command.message_mut()).await {
            Ok(None) => self.take_message(command, request).await,
            Ok(Some(_)) if self.closing => self.refuse(request, shutting_down()),
            Ok(Some(commands)) => self.run_template_commands(commands, command, request),
            Err(failure) => self.refuse(request, failure),
        }
    }

    /// Stops the run and takes its place once the message is there.
    pub(super) async fn abort_and_prompt(&mut self, mut params: PromptParams, reply: Reply) {
        let typed = params.typed.take();
        let text = typed.as_deref().unwrap_or(&params.message);
        let Some(request) = self.first_message(text, params.request_key.take(), reply) else {
            return;
        };
        self.take_checked(MessageCommand::AbortAndPrompt(params), request).await;
    }

    /// Stops the run and takes its place: a prompt that waits for the same is refused, so that this one comes next.
    pub(super) async fn take_place(&mut self, mut params: PromptParams, request: PendingRequest) {
        params.streaming_behavior = None;
        self.run.cancel();
        for (_, waiting) in self.run.take_waiting() {
            let text = "Another prompt took the place of this one before its run began.";
            self.refuse(waiting, Failure::new(ErrorCode::Aborted, text));
        }
        self.give_up_compactions();
        let waits = self.run.wait(params, request);
        if let Some((params, request)) =
            waits.and_then(|(params, request)| self.compacting.replace(params, request))
        {
            self.take_prompt(params, request).await;
        }
    }

    /// Starts a run, queues the message, or says why neither.
    pub(super) async fn take_prompt(&mut self, params: PromptParams, request: PendingRequest) {
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        if self.compacting.is_asked_for() {
            let text = "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry.";
            let hint = "steer and follow_up are taken, for the next run.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text).hint(hint));
        }
        // A message for the running work need not wait for its end, which a retry or a compaction puts off.
        let is_held = self.run.is_pausing() || self.compacting.is_active();
        let queues = is_held && params.streaming_behavior.is_some();
        if self.run.is_ending() && !queues {
            if let Err(failure) = self.check_waiting(&params.message, &params.images) {
                return self.refuse(request, failure);
            }
            if let Some((params, request)) = self.run.wait(params, request) {
                self.start_run(prompt(params), request);
            }
            return;
        }
        if !self.run.is_active() {
            self.refresh_models().await;
            return self.start_run(prompt(params), request);
        }
        let Some(to) = params.streaming_behavior else {
            let text = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue \
                        the message.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text));
        };
        self.take_queued(queue_of(to), params.message, params.images, request).await;
    }

    pub(super) async fn queue(&mut self, kind: QueueKind, mut params: QueueParams, reply: Reply) {
        let Some(request) = self.first_message(&params.message, params.request_key.take(), reply) else {
            return;
        };
        self.take_checked(MessageCommand::Queue(kind, params), request).await;
    }

    /// Goes on from the context as it stands, or with what waits in the queues.
    pub(super) fn continue_run(&mut self, reply: Reply) {
        if let Some(request) = self.first(None, CommandKind::Message, reply) {
            self.take_continue(request);
        }
    }

    /// Starts a run without a prompt, or says why not.
    pub(super) fn take_continue(&mut self, request: PendingRequest) {
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        if self.compacting.is_asked_for() {
            let text =
                "Cannot continue while compaction is in progress. Wait for compaction to finish and retry.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text));
        }
        if self.run.is_ending() {
            return self.run.wait_to_continue(request);
        }
        if self.run.is_active() {
            let text = "Agent is already processing. Wait for agent_settled before continuing.";
            let hint = "steer and follow_up queue a message for the active run.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text).hint(hint));
        }
        if let Err(failure) = self.check_message("", &[]) {
            return self.refuse(request, failure);
        }
        match self.where_to_continue() {
            Ok(beginning) => {
                self.going_on.give_up();
                self.start(beginning, Some(request));
            }
            Err(text) => {
                let hint = "Send a prompt, or queue a message with steer or follow_up first.";
                self.refuse(request, Failure::new(ErrorCode::Unsupported, text).hint(hint));
            }
        }
    }

    /// The beginning of a run without a prompt.
    fn where_to_continue(&self) -> Result<RunBeginning, &'static str> {
        let messages = self.journal.messages().iter().rev().filter_map(|message| message.get());
        let last = messages.into_iter().find(|message| !matches!(message, Message::System(_)));
        match last {
            Some(Message::Assistant(_)) | None if self.queues.len() > 0 => Ok(RunBeginning::Queued),
            Some(Message::Assistant(_)) => Err("Cannot continue from message role: assistant"),
            None => Err("Cannot continue: no messages in context"),
            Some(_) => Ok(RunBeginning::Context),
        }
    }

    /// Lets a message wait, once the intent log knows of it.
    pub(super) async fn take_queued(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<Image>,
        request: PendingRequest,
    ) {
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        if let Err(failure) = self.check_waiting(&text, &images) {
            return self.refuse(request, failure);
        }
        let images: Vec<ImageContent> = images.into_iter().map(Into::into).collect();
        let about = self.queues.about(kind, &text, &images, request.key());
        if let Err(error) = self.journal.intent_log().intend(vec![IntentRecord::Queued(about)]).await {
            return self.refuse(request, store_failure(&error));
        }
        let ticket = self.queues.push(kind, text, images, request.key().cloned(), &self.feed);
        self.context.job_news.message_came();
        self.tell_extensions();
        self.accept_in_queue(request, Disposition::Queued, Some(ticket));
        if kind == QueueKind::Steering && self.interrupt_mode == InterruptMode::Immediate {
            self.interrupt_tools();
        }
    }

    /// Takes all messages back. Nothing comes of them, so that their keys are free again.
    pub(super) async fn clear_queue(&mut self, reply: Reply) {
        if self.held_back.forget() {
            self.journal.intent_log().note(IntentRecord::Unqueued).await;
        } else {
            self.forget_waiting().await;
        }
        let (cleared, keys) = self.queues.clear(&self.feed);
        self.tell_extensions();
        for key in keys {
            self.requests.forget(&key);
        }
        reply.data(&self.feed, cleared);
        self.tell_taken_back();
    }

    /// Drops queued messages from the intent log, so that they do not wait again after a crash.
    pub(super) async fn forget_waiting(&self) {
        if self.queues.len() > 0 {
            self.journal.intent_log().note(IntentRecord::Unqueued).await;
        }
    }

    /// Messages that waited when the daemon was killed wait again; who sends them once more is answered as before.
    pub(super) fn let_wait(&mut self, messages: Vec<QueuedRecord>) {
        for key in self.queues.restore(messages) {
            // Nobody waits for an answer yet.
            let _ = self.requests.answer(key, CachedAnswer::Accepted(Disposition::Queued));
        }
    }

    /// Whether the session takes a message at all.
    ///
    /// # Errors
    /// `limit_reached`; `io` where the session's file can only be read.
    pub(super) fn check_message(&self, text: &str, images: &[Image]) -> Result<(), Failure> {
        self.journal.check_writable().map_err(|error| store_failure(&error))?;
        let limits = self.context.services.limits.intake;
        limits.check_message(message_bytes(text, images))?;
        limits.check_session(self.journal.bytes())
    }

    /// Whether a message may wait.
    ///
    /// # Errors
    /// `limit_reached`.
    fn check_waiting(&mut self, text: &str, images: &[Image]) -> Result<(), Failure> {
        let (queued, prompts) = (self.queues.waiting(), self.run.waiting());
        let waiting =
            WaitingSize { messages: queued.messages + prompts.messages, bytes: queued.bytes + prompts.bytes };
        let bytes = message_bytes(text, images);
        self.context.services.limits.intake.check_queue(bytes, waiting)?;
        self.queues.room_for(waiting.bytes.saturating_add(bytes))
    }

    /// Puts the text in the place of a message that calls a skill or a prompt template; with the shell commands of a slash command that have to
    /// run first. The session waits for the files, so that messages keep their order.
    ///
    /// # Errors
    /// The failure that answers the message.
    async fn expand(&self, message: &mut String) -> Result<Option<TemplateCommands>, Failure> {
        if !message.starts_with('/') {
            return Ok(None);
        }
        let (context, text) = (Arc::clone(&self.context), std::mem::take(message));
        let work = spawn_blocking(move || {
            let expanded = context
                .with_resources(&mut Vec::new(), |query, discovered| expand(&text, query, discovered))?;
            let expansion = expanded.unwrap_or(Expansion { text, commands: None });
            let kept = expansion.commands.as_ref().and_then(|commands| context.keeps_as_text(commands));
            Ok::<_, ExpandError>((expansion, kept))
        });
        let (Expansion { text, commands }, kept) =
            work.await.map_err(|error| broken(&error))?.map_err(|error| expand_failure(&error))?;
        *message = text;
        if let (Some(why), Some(commands)) = (kept, &commands) {
            let text = format!("The shell commands of {} are not run: {why}.", commands.file.display());
            self.tell_user(Notice::notify(text, NotifyType::Warning));
        }
        Ok(commands.filter(|_| kept.is_none()))
    }

    /// The skills, prompt templates and prompts of MCP servers that a message can begin with.
    pub(super) async fn get_commands(&mut self, reply: Reply) {
        if self.context.extensions.is_none() {
            return self.list_commands(reply).await;
        }
        // Handlers of `session_start` may add some, as in pi; and it is answered after what extensions have shown.
        let (started, requests) = (self.extensions_started.clone(), self.extension_requests.0.clone());
        let cancel = self.server_prompts.cancel.clone();
        self.tasks.spawn(async move {
            if cancel.run_until_cancelled(started.cancelled()).await.is_some() {
                // The actor holds the other end while it runs.
                let _ = requests.send(ExtensionRequest::ListCommands(Box::new(reply)));
            }
        });
    }

    /// Answers with the commands that there are now.
    pub(super) async fn list_commands(&self, reply: Reply) {
        reply.result(&self.feed, self.command_list().await.map(|commands| SlashCommands { commands }));
    }

    /// What a message can begin with: commands of extensions, prompt templates, skills, prompts of MCP servers.
    ///
    /// # Errors
    /// The files could not be read.
    pub(super) async fn command_list(&self) -> Result<Vec<SlashCommand>, Failure> {
        let context = Arc::clone(&self.context);
        let with_skills = context.settings.enable_skill_commands.unwrap_or(true);
        let work = spawn_blocking(move || {
            context.with_resources(&mut Vec::new(), load_resources).commands(with_skills)
        });
        let of_servers = self.server_prompt_commands();
        let of_files = work.await.map_err(|error| broken(&error))?;
        let of_extensions = self.context.extensions.iter().flat_map(|extensions| extensions.commands());
        let of_extensions = of_extensions.map(|command| SlashCommand {
            name: command.name,
            description: command.description,
            argument_hint: None,
            source: CommandSource::Extension,
            source_info: command.source_info,
        });
        Ok(of_extensions.chain(of_files).chain(of_servers).collect())
    }
}

fn prompt(params: PromptParams) -> Prompt {
    let images = params.images.into_iter().map(Into::into).collect();
    Prompt {
        text: params.message,
        images,
        also: Vec::new(),
        budget: params.budget,
        traceparent: params.traceparent,
    }
}

fn broken(error: &JoinError) -> Failure {
    Failure::new(ErrorCode::Internal, format!("skills and prompt templates were not read: {error}"))
}
