//! Messages that extensions see, take or send: commands of extensions, input of the user, custom messages.

use agentd_agent::queue::QueueKind;
use agentd_extensions::{EventKind, HostFailure, InputVerdict};
use agentd_protocol::{
    Json,
    command::{Disposition, Image, PromptParams, QueueParams, StreamingBehavior},
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::{Event, MessageEnd, MessageStart},
    message::{CustomMessage, ImageContent, Message},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::session_actor::Actor;
use crate::{
    event_log::SubscriberId,
    extensions::{CustomDelivery, RunningCommand, SeenInput},
    queues::{behavior_of, queue_of},
    reply::Reply,
    requests::PendingRequest,
    run::{Prompt, RunBeginning, RunMessage},
    server_prompts::MessageCommand,
};

/// Where a message in the user's name comes from.
#[derive(Clone, Copy)]
enum InputSource {
    /// A client: skills, prompt templates and prompts of servers that it calls are expanded.
    Client,
    /// An extension.
    Extension {
        /// Whether it asked for the same.
        expands: bool,
    },
}

impl InputSource {
    /// The word that handlers of `input` are told.
    fn name(self) -> &'static str {
        match self {
            Self::Client => "rpc",
            Self::Extension { .. } => "extension",
        }
    }

    fn expands(self) -> bool {
        matches!(self, Self::Client | Self::Extension { expands: true })
    }
}

/// The disposition of a message, for extensions.
fn disposition(text: &str) -> Result<Value, HostFailure> {
    Ok(json!({"disposition": text}))
}

impl Actor {
    /// Hands a message to the extensions, if it is for one of their commands or they look at input. Gives it back where nobody of them has to
    /// do with it.
    pub(super) fn hand_to_extensions(
        &mut self,
        command: MessageCommand,
        request: PendingRequest,
    ) -> Option<(MessageCommand, PendingRequest)> {
        let Some(extensions) = self.context.extensions.clone() else { return Some((command, request)) };
        if self.closing {
            return Some((command, request));
        }
        // Only a space ends the name, as in pi.
        let called = command.message().strip_prefix('/');
        let called = called.map(|called| called.split_once(' ').unwrap_or((called, "")));
        if let Some((name, args)) = called.filter(|(name, _)| extensions.has_command(name)) {
            let (name, args) = (name.to_owned(), args.to_owned());
            if matches!(command, MessageCommand::Queue(..)) {
                let text = format!(
                    "Extension command \"/{name}\" cannot be queued. Use prompt() or execute the command when not streaming."
                );
                self.refuse(request, Failure::new(ErrorCode::Unsupported, text));
                return None;
            }
            self.tell_extensions();
            self.run_command((name, args), request);
            return None;
        }
        if !extensions.listens(EventKind::Input) {
            return Some((command, request));
        }
        self.see_input(command, request, InputSource::Client);
        None
    }

    /// Runs a command of an extension, beside everything else.
    fn run_command(&mut self, (name, args): (String, String), request: PendingRequest) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        let [ended, cancel, moved] = std::array::from_fn(|_| CancellationToken::new());
        let running = RunningCommand { request, ended: ended.clone(), cancel: cancel.clone(), moved };
        let number = self.command_runs.begin(running);
        let started = self.extensions_started.clone();
        // Not a task of the session's own: where a command goes on to another session, this one does not wait for it.
        self.context.services.tasks.spawn(async move {
            let _ended = ended.drop_guard();
            let running = async {
                started.cancelled().await;
                extensions.run_command(&name, &args, number).await;
            };
            cancel.run_until_cancelled(running).await;
        });
        self.await_command(number);
    }

    /// Answers for a command once it has ended.
    pub(super) fn await_command(&mut self, number: u64) {
        let Some(running) = self.command_runs.get(number) else { return };
        let (ended, moved, to_actor) = (running.ended.clone(), running.moved.clone(), self.to_actor.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {
                    // The actor takes what its tasks send until they have ended.
                    let _ = to_actor.send(RunMessage::CommandRan(number)).await;
                }
                () = moved.cancelled() => {}
            }
        });
    }

    /// Lets the extensions see a message of the user, or of one of them in the user's name.
    fn see_input(&mut self, command: MessageCommand, request: PendingRequest, source: InputSource) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        let streaming = match &command {
            MessageCommand::Prompt(params) => params.streaming_behavior,
            MessageCommand::Queue(kind, _) => Some(behavior_of(*kind)),
            MessageCommand::AbortAndPrompt(_) => None,
        };
        let streaming = streaming.filter(|_| self.run.is_active());
        let (cancel, to_actor) = (self.server_prompts.cancel.clone(), self.to_actor.clone());
        let started = self.extensions_started.clone();
        self.server_prompts.count += 1;
        self.tell_extensions();
        self.tasks.spawn(async move {
            let images: Vec<Value> = command.images().iter().map(|image| json!(image)).collect();
            let streaming = streaming.map(|streaming| match streaming {
                StreamingBehavior::Steer => "steer",
                StreamingBehavior::FollowUp => "followUp",
            });
            let asked = async {
                started.cancelled().await;
                extensions.input(command.message(), &images, source.name(), streaming).await
            };
            let verdict = cancel.run_until_cancelled(asked).await;
            let seen = SeenInput { command, request, verdict, expands: source.expands() };
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::InputSeen(Box::new(seen))).await;
        });
    }

    /// The extensions have seen a message.
    pub(super) async fn on_input_seen(&mut self, seen: SeenInput) {
        let SeenInput { mut command, request, verdict, expands } = seen;
        self.server_prompts.count -= 1;
        match verdict {
            Some(InputVerdict::Handled) => self.accept(request, Disposition::Handled),
            Some(InputVerdict::Goes { text, images }) => {
                let images = images.map(|images| {
                    images
                        .into_iter()
                        .filter_map(|image| serde_json::from_value::<Image>(image).ok())
                        .collect()
                });
                command.replace(text, images);
                if expands {
                    self.take_unseen(command, request).await;
                } else {
                    self.take_expanded(command, request).await;
                }
            }
            None => {
                let text = "The message was aborted before the extensions had seen it.";
                self.refuse(request, Failure::new(ErrorCode::Aborted, text));
            }
        }
        self.tell_idle();
    }

    /// A message of an extension in the user's name.
    pub(super) async fn take_extension_prompt(
        &mut self,
        text: String,
        images: Vec<ImageContent>,
        behavior: Option<StreamingBehavior>,
        expands: bool,
    ) -> Result<Value, HostFailure> {
        if self.closing {
            return Err(HostFailure::new("gone", "The session is closing and takes no new work."));
        }
        let images: Vec<Image> = images
            .into_iter()
            .map(|ImageContent { data, mime_type }| Image { kind: "image".to_owned(), data, mime_type })
            .collect();
        if self.run.is_active() && !self.run.is_ending() {
            let Some(behavior) = behavior else {
                let text = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";
                return Err(HostFailure::new("busy", text));
            };
            let params = QueueParams { message: text, images, ..QueueParams::default() };
            let command = MessageCommand::Queue(queue_of(behavior), params);
            if self.has_input_handlers() {
                self.see_input(command, nobody(), InputSource::Extension { expands });
            } else if expands {
                self.take_unseen(command, nobody()).await;
            } else {
                self.take_expanded(command, nobody()).await;
            }
            return disposition("queued");
        }
        let params =
            PromptParams { message: text, images, streaming_behavior: behavior, ..PromptParams::default() };
        let command = MessageCommand::Prompt(params);
        match (expands, self.has_input_handlers()) {
            // What the handlers of `agent_settled` begin comes after the last of them.
            (true, _) if self.settling => self.command_runs.after_run.push((command, nobody())),
            (true, _) => {
                if let Some((command, request)) = self.hand_to_extensions(command, nobody()) {
                    self.take_unseen(command, request).await;
                }
            }
            (false, true) => self.see_input(command, nobody(), InputSource::Extension { expands }),
            (false, false) => self.take_expanded(command, nobody()).await,
        }
        disposition("started")
    }

    fn has_input_handlers(&self) -> bool {
        self.context.extensions.as_ref().is_some_and(|extensions| extensions.listens(EventKind::Input))
    }

    /// A message of an extension: stored now, queued, or the beginning of a run.
    pub(super) async fn take_custom(
        &mut self,
        message: CustomMessage,
        trigger: Option<bool>,
        deliver_as: Option<&str>,
    ) -> Result<Value, HostFailure> {
        let at_work = self.run.is_active() || self.compacting.is_active();
        let delivery = match (deliver_as, at_work, trigger) {
            (Some("nextTurn"), ..) => Some(CustomDelivery::NextRun),
            (_, true, Some(false)) => Some(CustomDelivery::TurnEnd),
            (Some("followUp"), true, _) => Some(CustomDelivery::Queued(QueueKind::FollowUp)),
            (_, true, _) => Some(CustomDelivery::Queued(QueueKind::Steering)),
            (_, false, _) => None,
        };
        if let Some(delivery) = delivery {
            let is_taken = self.custom.push(delivery, message);
            return if is_taken {
                disposition(if delivery == CustomDelivery::NextRun { "kept" } else { "queued" })
            } else {
                Err(HostFailure::new("too_large", "Too many messages of extensions wait."))
            };
        }
        if trigger == Some(true) && !self.closing {
            self.going_on.give_up();
            self.start(RunBeginning::Custom(Box::new(message)), None);
            return disposition("started");
        }
        self.store_custom(message).await.map_err(|failure| HostFailure::new("failed", failure.error))?;
        disposition("appended")
    }

    /// Stores the messages of extensions that waited for the end of a turn.
    pub(super) async fn store_custom_of_turn(&mut self) {
        for message in self.custom.take(CustomDelivery::TurnEnd) {
            if let Err(failure) = self.store_custom(message).await {
                tracing::error!(error = failure.error, "a message of an extension could not be stored");
            }
        }
    }

    /// Stores a message of an extension or a hook, and tells it.
    ///
    /// # Errors
    /// The disk did not take it.
    pub(super) async fn store_custom(&mut self, message: CustomMessage) -> Result<(), Failure> {
        let CustomMessage { custom_type, content, display, details, .. } = message.clone();
        let body = EntryBody::CustomMessage { custom_type, content, display, details };
        self.journal.append(&body).await?;
        let message = Json::new(Message::Custom(message));
        let message = message.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
        self.publish(&Event::from(MessageStart { message: message.clone() }));
        self.publish(&Event::from(MessageEnd { message }));
        Ok(())
    }

    /// What extensions have kept for the next run.
    pub(super) fn with_custom(&mut self, prompt: Prompt) -> Prompt {
        Prompt { also: self.custom.take(CustomDelivery::NextRun), ..prompt }
    }
}

/// A request that nobody waits for.
fn nobody() -> PendingRequest {
    let reply = Reply {
        subscriber: SubscriberId::NOBODY,
        id: None,
        command: "prompt",
        environment: None,
        is_of_user: false,
        hears_results: false,
        memory: None,
    };
    PendingRequest { reply, key: None, typed: None }
}
