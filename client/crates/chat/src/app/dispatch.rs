//! Messages as changes of the state.

use crate::{
    app::{
        chat::{Activity, Chat, Connection},
        completing, events, keys,
        messages::{Call, Effect, Message, Opened},
        replies, sending,
        showing::{ask, notice},
    },
    transcript::{Entry, NoticeLevel, ToolCall, ToolState},
};
use agentd_protocol::{
    Json,
    event::ToolExecutionStart,
    message::{ContentBlock, Message as SessionMessage},
};
use std::time::Instant;

/// Takes a message; gives what is to be done outside.
pub(crate) fn update(chat: &mut Chat, message: Message) -> Vec<Effect> {
    match message {
        Message::Key(key) => keys::key(chat, key),
        Message::Paste(text) => keys::paste(chat, &text),
        Message::Wheel(rows) => {
            chat.transcript.scroll(rows);
            Vec::new()
        }
        Message::Resize | Message::Tick => Vec::new(),
        Message::Opened(opened) => open(chat, *opened),
        Message::Event(event) => events::event(chat, &event),
        Message::Lost(how) => {
            chat.activity = None;
            chat.connection = Connection::Lost(how);
            chat.question = None;
            chat.questions.clear();
            Vec::new()
        }
        Message::Closed => {
            chat.connection = Connection::Closed;
            chat.activity = None;
            notice(chat, NoticeLevel::Warning, "Another client closed the session. R opens it again.");
            Vec::new()
        }
        Message::Reply(reply) => replies::reply(chat, *reply),
        Message::Files { query, files } => {
            completing::files(chat, &query, files);
            Vec::new()
        }
        Message::Edited(Ok(text)) => {
            chat.editor.set(text.trim_end_matches('\n'));
            vec![Effect::Redraw]
        }
        Message::Edited(Err(why)) => {
            chat.flash = Some(why);
            vec![Effect::Redraw]
        }
        Message::Trouble(text) => {
            notice(chat, NoticeLevel::Warning, text);
            Vec::new()
        }
        Message::History(prompts) => {
            chat.history.extend_front(prompts);
            Vec::new()
        }
    }
}

fn open(chat: &mut Chat, opened: Opened) -> Vec<Effect> {
    let is_new = !opened.is_again;
    chat.connection = Connection::Up;
    chat.branch = opened.branch;
    if let Some(cwd) = &opened.state.cwd {
        chat.folder = cwd.into();
    }
    let (width, height) = (chat.transcript_width(), chat.height);
    chat.transcript.replace(opened.messages);
    chat.transcript.resize(width, height);
    chat.blocks.clear();
    chat.bash = None;
    chat.panel = None;
    chat.question = None;
    chat.questions.clear();
    chat.steering.clear();
    chat.follow_ups.clear();
    chat.commands = opened.commands;
    chat.stats = opened.stats;
    chat.statuses.clear();
    chat.activity = (opened.state.is_streaming || opened.state.is_compacting)
        .then(|| Activity { since: Instant::now(), what: "at work".to_owned() });
    let prompts: Vec<String> = chat.transcript.prompts().map(str::to_owned).collect();
    chat.history.extend_front(prompts);
    chat.session = opened.state;
    for warning in opened.warnings {
        notice(chat, NoticeLevel::Warning, warning);
    }
    if is_new && chat.transcript.is_empty() {
        welcome(chat, opened.is_unconfigured);
    }
    if let Some(in_flight) = opened.in_flight {
        if let Some(SessionMessage::Assistant(answer)) = in_flight.message.as_ref().and_then(Json::get) {
            for block in &answer.content {
                let entry = match block {
                    ContentBlock::Text { text, .. } => {
                        Entry::Answer { text: text.clone(), is_complete: false }
                    }
                    ContentBlock::Thinking { thinking, .. } => {
                        Entry::Thinking { text: thinking.clone(), is_complete: false }
                    }
                    ContentBlock::ToolCall(_) | ContentBlock::Image(_) => {
                        chat.blocks.push(None);
                        continue;
                    }
                };
                let number = chat.transcript.push(entry);
                chat.blocks.push(Some(number));
            }
        }
        for tool in in_flight.tools {
            let running = ToolState::Running(Instant::now());
            let number = match chat.transcript.tool(&tool.tool_call_id) {
                Some(number) => number,
                None => {
                    let args = tool.args.as_object().cloned().unwrap_or_default();
                    let Ok(args) = Json::new(args) else { continue };
                    let (tool_call_id, tool_name) = (tool.tool_call_id, tool.tool_name);
                    let started =
                        ToolExecutionStart { tool_call_id, tool_name, args, parent_tool_call_id: None };
                    chat.transcript.push(Entry::Tool(ToolCall::of(&started, running.clone())))
                }
            };
            chat.transcript.change(number, |entry| {
                if let Entry::Tool(call) = entry {
                    call.state = running;
                }
            });
        }
    }
    for request in opened.pending_ui {
        ask(chat, request);
    }
    let mut effects = sending::again(chat);
    if !std::mem::replace(&mut chat.has_history, true) {
        effects.push(Effect::Call(Box::new(Call::History)));
    }
    effects
}

/// The first screen of a new session.
fn welcome(chat: &mut Chat, is_unconfigured: bool) {
    let model = &chat.session.model;
    let told = if model.is_placeholder() {
        let how = "No usable model. Leave with Ctrl-D, then: `agentctl login anthropic` stores a key, `export ANTHROPIC_API_KEY=…` \
                   sets one, `agentctl setup local` uses a server on this machine; `agentctl doctor` says what is missing.";
        if is_unconfigured {
            format!(
                "{how}\n/model demo/demo tries it out with the built-in demo model, which only looks at the folder."
            )
        } else {
            how.to_owned()
        }
    } else if model.provider == "demo" && model.id == "demo" && model.base_url.is_empty() {
        "Model: the built-in demo model, which needs no key and only looks at the folder. `agentctl login anthropic`, or the \
         variable of a provider's key, gives a real one."
            .to_owned()
    } else {
        format!("Model: {}/{} (/model chooses another)", model.provider, model.id)
    };
    let level = if model.is_placeholder() { NoticeLevel::Warning } else { NoticeLevel::Info };
    notice(chat, level, told);
    let folder = format!("Folder: {}", chat.folder.display());
    notice(chat, NoticeLevel::Info, folder);
    let keys = "Keys: Enter sends, Ctrl-J begins a new line, @ names a file, / a command, /help shows all; Ctrl-D leaves.";
    notice(chat, NoticeLevel::Info, keys);
}
