//! Messages that call a prompt of an MCP server: the server is asked by a task, since it may take its time, and the message goes on when it
//! has answered. Other commands are taken meanwhile.

use agentd_config::resources::is_space;
use agentd_mcp::{PromptCommand, PromptError};
use agentd_protocol::{
    command::QueueParams,
    error::{ErrorCode, Failure},
    resources::{CommandSource, SlashCommand, SourceInfo, SourceOrigin, SourceScope},
};

use super::session_actor::Actor;
use crate::{
    requests::PendingRequest,
    run::RunMessage,
    server_prompts::{ExpandedMessage, MessageCommand},
};

impl Actor {
    /// Goes on with a command whose message is what the user meant, or asks a server for the prompt that it calls.
    pub(super) async fn take_message(&mut self, command: MessageCommand, request: PendingRequest) {
        let called = command.message().strip_prefix('/');
        let name = called.map(|called| called.split(is_space).next().unwrap_or_default().to_owned());
        let mcp = self.context.mcp.clone().zip(name).filter(|(mcp, name)| mcp.is_prompt(name));
        let Some((mcp, name)) = mcp.filter(|_| !self.closing) else {
            return self.take_expanded(command, request).await;
        };
        let typed = command.message()[1 + name.len()..].trim_matches(is_space).to_owned();
        let (cancel, to_actor) = (self.server_prompts.cancel.clone(), self.to_actor.clone());
        self.server_prompts.count += 1;
        self.tasks.spawn(async move {
            let outcome = mcp.expand_prompt(&name, &typed, &cancel).await;
            let expanded = ExpandedMessage { command, request, outcome };
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::Expanded(Box::new(expanded))).await;
        });
    }

    /// A server has given its prompt, or not.
    pub(super) async fn on_expanded(&mut self, expanded: ExpandedMessage) {
        let ExpandedMessage { mut command, request, outcome } = expanded;
        self.server_prompts.count -= 1;
        let failure = match outcome {
            Ok(text) => {
                command.set(text);
                match self.check_message(command.message(), command.images()) {
                    Ok(()) => return self.take_expanded(command, request).await,
                    Err(failure) => failure,
                }
            }
            Err(error) => {
                let code = match error {
                    PromptError::Unknown { .. } => ErrorCode::NotFound,
                    PromptError::Arguments { .. } => ErrorCode::InvalidField,
                    PromptError::Failed { .. } => ErrorCode::Unsupported,
                    PromptError::Cancelled { .. } => ErrorCode::Aborted,
                };
                Failure::new(code, error.to_string())
            }
        };
        self.refuse(request, failure);
        self.tell_idle();
    }

    /// Takes a message in which nothing is left to be expanded.
    pub(super) async fn take_expanded(&mut self, command: MessageCommand, request: PendingRequest) {
        match command {
            MessageCommand::Prompt(params) => self.take_prompt(params, request).await,
            MessageCommand::AbortAndPrompt(params) => self.take_place(params, request).await,
            MessageCommand::Queue(kind, QueueParams { message, images, .. }) => {
                self.take_queued(kind, message, images, request).await;
            }
        }
    }

    /// The prompts of the session's MCP servers, as commands.
    pub(super) fn server_prompt_commands(&self) -> Vec<SlashCommand> {
        let agent_dir = self.context.agent_dir.path();
        let command =
            |PromptCommand { name, description, argument_hint, path }: PromptCommand| SlashCommand {
                name,
                description,
                argument_hint,
                source: CommandSource::Prompt,
                source_info: SourceInfo {
                    scope: match path.parent() {
                        None => SourceScope::Temporary,
                        Some(folder) if folder == agent_dir => SourceScope::User,
                        Some(_) => SourceScope::Project,
                    },
                    path: path.display().to_string(),
                    source: "mcp".to_owned(),
                    origin: SourceOrigin::TopLevel,
                    base_dir: None,
                },
            };
        let prompts = self.context.mcp.as_ref().map(|mcp| mcp.prompts()).unwrap_or_default();
        prompts.into_iter().map(command).collect()
    }
}
