//! Messages that call a slash command with shell commands in its text: a task runs them, and the message goes on when they have ended. Other
//! commands are taken meanwhile.

use std::sync::Arc;

use agentd_config::resources::TemplateCommands;

use super::session_actor::Actor;
use crate::{
    requests::PendingRequest,
    run::RunMessage,
    server_prompts::MessageCommand,
    template_commands::{COMMAND_TOOL, FilledTemplate, TemplateRun},
};

impl Actor {
    /// Runs the shell commands of the slash command that a message calls.
    pub(super) fn run_template_commands(
        &mut self,
        commands: TemplateCommands,
        command: MessageCommand,
        request: PendingRequest,
    ) {
        let (cancel, to_actor) = (self.server_prompts.cancel.clone(), self.to_actor.clone());
        let context = Arc::clone(&self.context);
        let has_tool = self.tools.current(&context.tools).get(COMMAND_TOOL).is_some();
        let (id, base) = (request.id().cloned(), self.environment_of(Some(&request)));
        self.server_prompts.count += 1;
        self.tell_extensions();
        self.tasks.spawn(async move {
            let run = TemplateRun { context: &context, has_tool, id, base, cancel: &cancel };
            let outcome = run.fill(&commands).await;
            let filled = FilledTemplate { command, request, outcome };
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::TemplateFilled(Box::new(filled))).await;
        });
    }

    /// The shell commands of a message have ended. Nothing of what they printed is expanded.
    pub(super) async fn on_template_filled(&mut self, filled: FilledTemplate) {
        let FilledTemplate { mut command, request, outcome } = filled;
        self.server_prompts.count -= 1;
        let checked = outcome.and_then(|text| {
            *command.message_mut() = text;
            self.check_message(command.message(), command.images())
        });
        match checked {
            Ok(()) => self.take_expanded(command, request).await,
            Err(failure) => self.refuse(request, failure),
        }
        self.tell_idle();
    }
}
