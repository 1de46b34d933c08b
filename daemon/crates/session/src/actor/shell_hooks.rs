//! Shell hooks of a session: its beginning and end, messages of the user, questions to the user. Tasks wait for them.

use std::{sync::Arc, time::Duration};

use agentd_agent::{Tool as _, queue::QueueKind};
use agentd_hooks::{HookEvent, HookInput};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    message::CustomMessage,
    tool_list::ToolSource,
    ui::UiMethod,
};
use tokio_util::sync::CancellationToken;

use super::session_actor::Actor;
use crate::{
    extensions::CustomDelivery,
    queues::queue_of,
    requests::PendingRequest,
    run::RunMessage,
    server_prompts::MessageCommand,
    shell_hooks::{JudgedPrompt, SessionHooks, context_message, prompt_refused},
    tool_registry::{RegisteredTool, ToolOwner},
};

/// The time of hooks at the end of a session: its client waits.
const AT_THE_END: Duration = Duration::from_secs(5);

impl Actor {
    /// Connects the hooks with the user. To a session that comes back into memory its beginning is long ago.
    pub(super) fn connect_hooks(&self) {
        if let Some(hooks) = &self.context.hooks {
            hooks.connect(self.ui());
        }
    }

    /// Connects the hooks with the user, and runs those for the beginning of the session; `source` says how it began.
    pub(super) fn start_hooks(&mut self, source: &'static str) {
        let Some(hooks) = self.context.hooks.clone() else { return };
        hooks.connect(self.ui());
        if hooks.has(HookEvent::SessionStart) {
            self.run_start_hooks(hooks, source);
        }
    }

    /// Goes on with the hooks of other surroundings. Those of a project that is trusted by now are told of the beginning.
    pub(super) fn change_hooks(&mut self, before: Option<&Arc<SessionHooks>>) {
        let Some(hooks) = self.context.hooks.clone() else { return };
        if before.is_some_and(|before| Arc::ptr_eq(before, &hooks)) {
            return;
        }
        hooks.connect(self.ui());
        let had_some = before.is_some_and(|before| before.has_of_project());
        if !had_some && let Some(of_project) = hooks.of_project().filter(|it| it.has(HookEvent::SessionStart))
        {
            of_project.connect(self.ui());
            self.run_start_hooks(Arc::new(of_project), "startup");
        }
    }

    fn run_start_hooks(&mut self, hooks: Arc<SessionHooks>, source: &'static str) {
        if self.closing {
            return;
        }
        self.hook_start.started = Some(CancellationToken::new());
        let (cancel, to_actor) = (self.hook_start.cancel(), self.to_actor.clone());
        self.tasks.spawn(async move {
            let outcome = hooks.ask(&HookInput::SessionStart { source }, &cancel).await.unwrap_or_default();
            let context = context_message(HookEvent::SessionStart, &outcome.contexts).map(Box::new);
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::HooksBegan(context)).await;
        });
    }

    /// The hooks for the beginning have ended. A run that waits for them begins with what they say.
    pub(super) async fn on_hooks_began(&mut self, context: Option<Box<CustomMessage>>) {
        if let Some(context) = context
            && let Err(failure) = self.store_custom(*context).await
        {
            tracing::error!(error = failure.error, "what a SessionStart hook says could not be stored");
        }
        if let Some(started) = self.hook_start.started.take() {
            started.cancel();
        }
    }

    /// Lets the hooks see a message of the user. Gives it back where none looks at messages.
    pub(super) fn hand_to_hooks(
        &mut self,
        command: MessageCommand,
        request: PendingRequest,
    ) -> Option<(MessageCommand, PendingRequest)> {
        let hooks = self.context.hooks.clone().filter(|hooks| hooks.has(HookEvent::UserPromptSubmit));
        let Some(hooks) = hooks.filter(|_| !self.closing) else { return Some((command, request)) };
        let (cancel, to_actor) = (self.server_prompts.cancel.clone(), self.to_actor.clone());
        let started = self.hook_start.started.clone();
        self.server_prompts.count += 1;
        self.tasks.spawn(async move {
            let asked = async {
                if let Some(started) = started {
                    started.cancelled().await;
                }
                let input = HookInput::UserPromptSubmit { prompt: command.message() };
                hooks.ask(&input, &cancel).await.unwrap_or_default()
            };
            let outcome = cancel.run_until_cancelled(asked).await;
            let judged = JudgedPrompt { command, request, outcome };
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::PromptJudged(Box::new(judged))).await;
        });
        None
    }

    /// The hooks have seen a message of the user.
    pub(super) async fn on_prompt_judged(&mut self, judged: JudgedPrompt) {
        let JudgedPrompt { command, request, outcome } = judged;
        self.server_prompts.count -= 1;
        match outcome {
            Some(outcome) => match outcome.block.or(outcome.stop) {
                Some(reason) => self.refuse(request, prompt_refused(&reason)),
                None => {
                    let context = context_message(HookEvent::UserPromptSubmit, &outcome.contexts);
                    if let (Some(context), Some(delivery)) = (context, self.delivery_of(&command))
                        && !self.custom.push(delivery, context)
                    {
                        tracing::warn!("too many messages wait: what a hook says of a prompt is dropped");
                    }
                    self.take_seen(command, request).await;
                }
            },
            None => {
                let text = "The message was aborted before the hooks had seen it.";
                self.refuse(request, Failure::new(ErrorCode::Aborted, text));
            }
        }
        self.tell_idle();
    }

    /// When what hooks say of a message is delivered: with it. `None` where the message is about to be refused.
    fn delivery_of(&self, command: &MessageCommand) -> Option<CustomDelivery> {
        if self.closing {
            return None;
        }
        match command {
            MessageCommand::Queue(kind, _) => Some(CustomDelivery::Queued(*kind)),
            MessageCommand::AbortAndPrompt(_) => Some(CustomDelivery::NextRun),
            MessageCommand::Prompt(_) if self.compacting.is_asked_for() => None,
            MessageCommand::Prompt(params) => {
                let queued: Option<QueueKind> = params.streaming_behavior.map(queue_of);
                match (self.run.is_active() && !self.run.is_ending(), queued) {
                    (true, Some(kind)) => Some(CustomDelivery::Queued(kind)),
                    (true, None) => None,
                    (false, _) => Some(CustomDelivery::NextRun),
                }
            }
        }
    }

    /// Makes the tools that files name tools of the session.
    pub(super) fn register_file_tools(&mut self) {
        let tools = &self.context.file_tools;
        if tools.is_empty() && !self.tools.registry().has(ToolSource::File) {
            return;
        }
        let taken: Vec<String> = {
            let (_, registered) = self.tools.registry().registered();
            let of_clients = registered.iter().filter(|registered| registered.owner.is_client());
            of_clients.map(|registered| registered.name().to_owned()).collect()
        };
        // A tool that a client has registered stays.
        let free = tools.iter().filter(|tool| !taken.contains(&tool.spec().name));
        let registered = free.map(|tool| RegisteredTool {
            owner: ToolOwner::File { timeout: tool.timeout() },
            tool: Arc::clone(tool) as _,
            active: true,
        });
        self.tools.registry().replace(ToolSource::File, registered.collect::<Vec<_>>());
    }

    /// Tells the hooks that the user is asked something.
    pub(super) fn notify_hooks(&mut self, method: &UiMethod) {
        let hooks = self.context.hooks.clone().filter(|hooks| hooks.has(HookEvent::Notification));
        let Some(hooks) = hooks else { return };
        let (kind, message) = match method {
            UiMethod::Permission(question) => ("permission_prompt", question.title.clone()),
            UiMethod::Select { title, .. }
            | UiMethod::Confirm { title, .. }
            | UiMethod::Input { title, .. }
            | UiMethod::Editor { title, .. } => ("elicitation_dialog", title.clone()),
            _ => return,
        };
        let cancel = self.hook_start.cancel();
        self.context.services.tasks.spawn(async move {
            hooks.ask(&HookInput::Notification { kind, message: &message }, &cancel).await;
        });
    }

    /// Runs the hooks for the end of the session, and waits for them a while. The user is told nothing any more.
    pub(super) async fn end_hooks(&mut self, reason: Option<&str>) {
        let Some(hooks) = self.context.hooks.clone().filter(|hooks| hooks.has(HookEvent::SessionEnd)) else {
            return;
        };
        let reason = if reason == Some("new") { "clear" } else { "other" };
        hooks.end(&HookInput::SessionEnd { reason }, AT_THE_END).await;
    }
}
