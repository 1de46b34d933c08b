//! Sending what was typed.

use agentd_protocol::command::{BashParams, PromptParams, StreamingBehavior};

use crate::{
    app::{
        chat::{Chat, Connection},
        commands,
        messages::{Call, Effect},
    },
    transcript::{Entry, ToolState},
};

/// How many own messages are remembered until their events come.
const REMEMBERED: usize = 64;

/// Sends what is typed: a command of this program, a shell command, or a message.
pub(super) fn submit(chat: &mut Chat, behavior: StreamingBehavior) -> Vec<Effect> {
    let shown = chat.editor.text().trim().to_owned();
    if shown.is_empty() {
        return Vec::new();
    }
    if chat.connection != Connection::Up {
        chat.flash = Some("There is no connection: what is typed stays here. R connects again.".to_owned());
        return Vec::new();
    }
    if let Some(effects) = commands::run(chat, &shown) {
        return effects;
    }
    let text = chat.editor.take().trim_end().to_owned();
    chat.completions.clear();
    chat.history.add(&text);
    chat.transcript.follow();
    if let Some(command) = shown.strip_prefix('!') {
        return shell(chat, command, text);
    }
    let params = PromptParams {
        message: text.clone(),
        streaming_behavior: chat.is_working().then_some(behavior),
        request_key: Some(uuid::Uuid::new_v4().to_string()),
        ..PromptParams::default()
    };
    chat.unanswered.push_back(params.clone());
    if chat.sent.len() == REMEMBERED {
        chat.sent.pop_front();
    }
    chat.sent.push_back(text);
    // The daemon keeps it.
    vec![Effect::Call(Box::new(Call::Prompt(params)))]
}

/// Runs a shell command of the user: `!command`, and `!!command` for one that the model does not see.
fn shell(chat: &mut Chat, command: &str, text: String) -> Vec<Effect> {
    let (command, exclude_from_context) = match command.strip_prefix('!') {
        Some(command) => (command.trim(), true),
        None => (command.trim(), false),
    };
    if command.is_empty() {
        return Vec::new();
    }
    if chat.bash.is_some() {
        chat.editor.set(&text);
        chat.flash = Some("A command runs already; Esc stops it.".to_owned());
        return Vec::new();
    }
    let entry = Entry::Bash {
        command: command.to_owned(),
        output: String::new(),
        state: ToolState::Running(std::time::Instant::now()),
    };
    chat.bash = Some(chat.transcript.push(entry));
    let params = BashParams { command: command.to_owned(), exclude_from_context, request_key: None };
    vec![Effect::Remember(text), Effect::Call(Box::new(Call::Bash(params)))]
}

/// Sends prompts again whose answer was lost with the connection. Their keys keep them from being run twice.
pub(super) fn again(chat: &mut Chat) -> Vec<Effect> {
    let prompts = chat.unanswered.iter().cloned();
    prompts.map(|params| Effect::Call(Box::new(Call::Prompt(params)))).collect()
}

/// Whether a message of the session was sent from here. Each counts once.
pub(super) fn is_ours(chat: &mut Chat, message: &str) -> bool {
    // Files that were sent along stand before the text.
    let place = chat
        .sent
        .iter()
        .position(|sent| message.trim_end().ends_with(sent.as_str()) || sent.starts_with('/'));
    place.is_some_and(|place| chat.sent.remove(place).is_some())
}
