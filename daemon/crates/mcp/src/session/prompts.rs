//! The prompts of a session's servers, as commands that a message can begin with: `/mcp__<server>__<prompt>`.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Inner, McpSession, entry::SessionServer};
use crate::{
    names::may_name,
    prompt::{PromptCommand, PromptDefinition, PromptError, PromptText, message_of},
    result::Spill,
    server::McpServer,
};

/// A prompt with the server that has it.
type FoundPrompt = (Arc<McpServer>, PromptDefinition);

impl McpSession {
    /// The prompts of all servers that the session uses, by name.
    #[must_use]
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let named = self.0.named_prompts().into_iter();
        let command = |(name, (server, prompt)): (String, FoundPrompt)| PromptCommand {
            name,
            argument_hint: prompt.hint(),
            description: prompt.description,
            path: server.config().path.clone(),
        };
        named.map(command).collect()
    }

    /// Whether a command is one of a server that the session uses, whether the server has such a prompt or not.
    #[must_use]
    pub fn is_prompt(&self, command: &str) -> bool {
        !self.0.servers_of(command).is_empty()
    }

    /// The message that a command stands for: `typed` are its arguments. Waits for the server, which has the time of a call.
    ///
    /// # Errors
    /// [`PromptError`].
    pub async fn expand_prompt(
        &self,
        command: &str,
        typed: &str,
        cancel: &CancellationToken,
    ) -> Result<PromptText, PromptError> {
        let name = || command.to_owned();
        let failed = |problem: Option<String>| match problem {
            Some(problem) => PromptError::Failed { name: name(), problem },
            None => PromptError::Cancelled { name: name() },
        };
        let (server, prompt) = match self.0.named_prompts().remove(command) {
            Some(found) => found,
            None => {
                // A server that was connected a moment ago, or not yet, has not listed its prompts.
                for server in self.0.servers_of(command) {
                    server.list_prompts_now(cancel).await.map_err(failed)?;
                }
                let mut named = self.0.named_prompts();
                named.remove(command).ok_or_else(|| self.unknown_prompt(command, &named))?
            }
        };
        let arguments = prompt.arguments_of(typed);
        let arguments = arguments.map_err(|problem| PromptError::Arguments { name: name(), problem })?;
        let mut params = json!({"name": prompt.name});
        if !arguments.is_empty() {
            params["arguments"] = Value::Object(arguments);
        }
        let answer = server.ask("prompts/get", params, Some(cancel)).await.map_err(failed)?;
        let (storage, reads_resources) = (self.0.storage.clone(), server.has_resources());
        let name_of_server = server.config().name.clone();
        let made = server.build(answer, move |answer| {
            let spill =
                Spill { storage: &storage, server: &name_of_server, tool: &prompt.name, reads_resources };
            message_of(&answer, &spill)
        });
        made.await.map_err(|problem| failed(Some(problem.to_string())))
    }

    fn unknown_prompt(&self, command: &str, there: &BTreeMap<String, FoundPrompt>) -> PromptError {
        let servers = self.0.servers_of(command);
        let is_of_these = |server: &Arc<McpServer>| servers.iter().any(|it| Arc::ptr_eq(it, server));
        let names: Vec<String> = there
            .iter()
            .filter(|(_, (server, _))| is_of_these(server))
            .map(|(name, _)| format!("/{name}"))
            .collect();
        let problem = match (names.is_empty(), servers.first()) {
            (true, Some(server)) => format!("the MCP server \"{}\" has no prompts", server.config().name),
            (true, None) => "there is no such MCP server".to_owned(),
            (false, _) => format!("there are {}", names.join(", ")),
        };
        PromptError::Unknown { name: command.to_owned(), problem }
    }
}

impl Inner {
    /// The prompts of all servers that the session uses, by the names of their commands.
    fn named_prompts(&self) -> BTreeMap<String, FoundPrompt> {
        let servers = self.lock();
        let wanted = servers.values().filter(|it| it.is_wanted()).map(|it| Arc::clone(&**it.server));
        let found: Vec<FoundPrompt> = wanted
            .flat_map(|server| {
                let prompts = server.prompts();
                prompts.iter().map(|prompt| (Arc::clone(&server), prompt.clone())).collect::<Vec<_>>()
            })
            .collect();
        let keys: Vec<(&str, &str)> = found
            .iter()
            .map(|(server, prompt)| (server.config().name.as_str(), prompt.name.as_str()))
            .collect();
        let names = self.prompt_names().name(&keys);
        names.into_iter().zip(found).collect()
    }

    /// The servers that a command may belong to, by the beginning of its name.
    fn servers_of(&self, command: &str) -> Vec<Arc<McpServer>> {
        let servers = self.lock();
        let is_of = |it: &&SessionServer| it.is_wanted() && may_name(&it.server.config().name, command);
        servers.values().filter(is_of).map(|it| Arc::clone(&**it.server)).collect()
    }
}
