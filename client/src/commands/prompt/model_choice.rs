//! The built-in demo model: when it answers unasked, and the texts about it.

use agentd_protocol::{
    command::{NoParams, SetModelParams},
    exit_code::PromptExit,
    model::{Model, ModelName},
};

use super::{
    conversation::{Conversation, ConversationEnd},
    request::PromptRequest,
};
use crate::{
    output::OutputChunk,
    rpc::{Client, GetAvailableModels, GetDiagnostics, SetModel},
};

/// The demo model's provider, and its id.
const DEMO: &str = "demo";

/// The note that the demo model answers, and how to use a real one.
const DEMO_NOTE: &str = "\
No model is configured, so the built-in demo model answers: it only looks at the folder.
To use a real one, do one of these (`agentctl doctor` says what is there and what is missing):
  export ANTHROPIC_API_KEY=...    or OPENAI_API_KEY, or the variable of another provider
  agentctl login anthropic        stores a key
  agentctl setup local            uses a model server on this machine, such as Ollama or llama.cpp
";

/// Lets the demo model answer unasked only at a terminal where nothing is configured, and tells the user how to change
/// that. Everywhere else a script would take its words for an answer. Gives the model that is asked; `None` for none.
pub(super) async fn choose_model(
    conversation: &mut Conversation,
    client: &Client,
    request: &PromptRequest,
    model: &Model,
) -> Result<Option<ModelName>, ConversationEnd> {
    if request.model_named || !(model.is_placeholder() || is_demo(model)) {
        return Ok(Some(model.name()));
    }
    if request.at_terminal
        && conversation.unless_stopped(client.call::<GetDiagnostics>(&NoParams {})).await??.unconfigured
    {
        if model.is_placeholder() {
            let demo = SetModelParams { provider: Some(DEMO.into()), model_id: Some(DEMO.into()) };
            conversation.unless_stopped(client.call::<SetModel>(&demo)).await??;
        }
        let note = OutputChunk::Err(DEMO_NOTE.as_bytes().to_vec());
        conversation.print(note).await?;
        return Ok(Some(ModelName { provider: DEMO.into(), id: DEMO.into() }));
    }
    if is_demo(model) {
        let configured =
            conversation.unless_stopped(client.call::<GetAvailableModels>(&NoParams {})).await??.models;
        return Err(ConversationEnd::Finished(PromptExit::failed(of_demo_session(&configured))));
    }
    // The daemon refuses the prompt and says what is missing.
    Ok(None)
}

/// Whether it is the built-in demo model. A user's provider of that name has an address.
fn is_demo(model: &Model) -> bool {
    model.provider == DEMO && model.id == DEMO && model.base_url.is_empty()
}

/// The text for a session that was begun with the demo model.
fn of_demo_session(configured: &[Model]) -> String {
    let names: Vec<String> =
        configured.iter().take(5).map(|model| format!("{}/{}", model.provider, model.id)).collect();
    let others = if names.is_empty() {
        "`agentctl doctor` says what a real one needs.".to_owned()
    } else {
        format!("--model chooses another: {}.", names.join(", "))
    };
    format!(
        "Error: the model of this session is the built-in demo model, which answers only when asked for. --demo goes on with \
         it. {others}"
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_it_names_is_there() {
        let cli = Cli::command();
        let commands: Vec<Vec<&str>> = DEMO_NOTE
            .split("agentctl ")
            .skip(1)
            .map(|rest| rest.split([' ', '`']).filter(|word| !word.is_empty()).take(2).collect())
            .collect();
        assert_eq!(commands.len(), 3);
        for words in commands {
            let command = cli.find_subcommand(words[0]).unwrap_or_else(|| panic!("{words:?}"));
            if command.has_subcommands() {
                assert!(command.find_subcommand(words[1]).is_some(), "{words:?}");
            }
        }
    }
}
