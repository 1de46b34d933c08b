//! Answers of the daemon.

use agentd_client_text::{counted, money, one_line, short_count};
use agentd_protocol::{
    checkpoints::{RestoreStep, RestoredCheckpoint},
    model::Model,
    model_list::ModelList,
    session::SessionStats,
};

use crate::{
    app::{
        chat::{Chat, Panel},
        messages::{Call, CallFailure, Effect, Reply},
        showing::notice,
    },
    panels::{PickItem, Picker, TreePanel},
    transcript::{Entry, NoticeLevel, ToolState},
};

/// Takes an answer.
pub(super) fn reply(chat: &mut Chat, reply: Reply) -> Vec<Effect> {
    match reply {
        Reply::Accepted(key) => chat.unanswered.retain(|waiting| waiting.request_key != key),
        Reply::PromptFailed(params, failure) => {
            if failure.is_lost {
                // It is sent again on the next connection.
                return Vec::new();
            }
            chat.unanswered.retain(|waiting| waiting.request_key != params.request_key);
            chat.sent.retain(|sent| *sent != params.message);
            failed(chat, &failure);
            // What was typed is not lost.
            if chat.editor.is_empty() {
                chat.editor.set(&params.message);
            }
        }
        Reply::Failed(failure) if failure.is_lost => {}
        Reply::Failed(failure) => {
            if chat.bash.is_some() && !chat.is_working() {
                finish_bash(chat, ToolState::Failed(one_line(&failure.error)), None);
            }
            failed(chat, &failure);
        }
        Reply::NotSwitched(failure) => failed(chat, &failure),
        Reply::Aborted(receipt) => {
            if let Some(survivor) = receipt.iter().flat_map(|receipt| &receipt.survives).next() {
                let name = one_line(survivor.name.as_deref().unwrap_or("a process"));
                notice(chat, NoticeLevel::Warning, format!("It is stopped, but {name} has not ended yet."));
            }
        }
        Reply::Cleared(cleared) => {
            let texts: Vec<String> = cleared.steering.into_iter().chain(cleared.follow_up).collect();
            if texts.is_empty() {
                chat.flash = Some("Nothing waits.".to_owned());
            } else {
                let typed = chat.editor.whole_text();
                let parts = texts.into_iter().chain((!typed.is_empty()).then_some(typed));
                chat.editor.set(&parts.collect::<Vec<_>>().join("\n\n"));
                chat.sent.clear();
            }
        }
        Reply::Models(list) => models(chat, list),
        Reply::ModelSet(model) => {
            if chat.session.model.name() != model.name() {
                let told = format!("Model: {}/{}", one_line(&model.provider), one_line(&model.id));
                notice(chat, NoticeLevel::Info, told);
            }
            chat.session.model = *model;
            return vec![Effect::Call(Box::new(Call::Stats))];
        }
        Reply::Levels(levels) => {
            let items = levels.into_iter().map(|level| PickItem {
                value: level,
                label: level.as_str().to_owned(),
                detail: String::new(),
                is_dim: false,
                is_marked: level == chat.session.thinking_level,
            });
            chat.panel = Some(Panel::Levels(Picker::new("Thinking level", items.collect())));
        }
        Reply::LevelSet(level) => chat.flash = Some(format!("Thinking: {}", level.as_str())),
        Reply::Compacted | Reply::Answered => {}
        Reply::Renamed(name) => chat.flash = Some(format!("The session is named {}.", one_line(&name))),
        Reply::Stats(stats) => chat.stats = Some(stats),
        Reply::Commands(commands) => chat.commands = commands,
        Reply::History(prompts) => chat.history.extend_front(prompts),
        Reply::Usage(stats) => {
            notice(chat, NoticeLevel::Info, usage(&stats));
            chat.stats = Some(stats);
        }
        Reply::Tree(entries) => chat.panel = Some(Panel::Tree(TreePanel::of(&entries))),
        Reply::Navigated(navigated, messages) => {
            if navigated.cancelled {
                chat.flash = Some("It was stopped: nothing has moved.".to_owned());
                return Vec::new();
            }
            chat.transcript.replace(messages);
            chat.blocks.clear();
            if let Some(text) = navigated.editor_text {
                chat.editor.set(&text);
            }
            return vec![Effect::Call(Box::new(Call::Stats))];
        }
        Reply::Tools(list) => {
            let items = list.tools.into_iter().map(|tool| PickItem {
                label: tool.name.clone(),
                detail: one_line(tool.description.lines().next().unwrap_or_default()),
                is_dim: false,
                is_marked: tool.active,
                value: tool.name,
            });
            chat.panel =
                Some(Panel::Tools(Picker::of_marks("Tools that the model may call", items.collect())));
        }
        Reply::ToolsSet(active) => {
            chat.flash = Some(format!("{} from the next turn on.", counted(active.tools.len(), "tool")));
        }
        Reply::Permissions(state) => chat.session.permissions = state,
        Reply::Mode(mode) => chat.session.mode = mode,
        Reply::Diff(diff) => {
            if diff.files.is_empty() {
                chat.flash = Some("Nothing is changed.".to_owned());
            }
            for file in diff.files {
                chat.transcript.push(Entry::Diff(file.diff));
            }
            for skipped in diff.skipped {
                let text = format!("Not kept: {}: {}", one_line(&skipped.path), one_line(&skipped.why));
                notice(chat, NoticeLevel::Warning, text);
            }
            chat.transcript.follow();
        }
        Reply::Restored(step, restored) => restored_files(chat, step, &restored),
        Reply::Exported(path) => notice(chat, NoticeLevel::Info, format!("Written: {path}")),
        Reply::Sessions { sessions, of_folder } => sessions_list(chat, sessions, of_folder),
        Reply::Ran(output) => {
            let state = match output.exit_code {
                Some(0) => ToolState::Done("ok".to_owned()),
                Some(code) => ToolState::Failed(format!("exit code {code}")),
                None => ToolState::Failed("stopped".to_owned()),
            };
            finish_bash(chat, state, Some(output.output));
        }
        Reply::ForkText(text) => {
            chat.editor.set(&text);
            chat.flash = Some("This is a session of its own now; the other one stays as it is.".to_owned());
        }
    }
    Vec::new()
}

/// Shows why something was not done, and what can be done about it.
fn failed(chat: &mut Chat, failure: &CallFailure) {
    notice(chat, NoticeLevel::Error, failure.error.clone());
    if let Some(hint) = &failure.hint {
        notice(chat, NoticeLevel::Warning, hint.clone());
    }
    chat.transcript.follow();
}

fn finish_bash(chat: &mut Chat, end: ToolState, whole: Option<String>) {
    let Some(number) = chat.bash.take() else { return };
    chat.transcript.change(number, |entry| {
        if let Entry::Bash { output, state, .. } = entry {
            *state = end;
            if let Some(whole) = whole {
                *output = whole;
            }
        }
    });
}

fn models(chat: &mut Chat, list: ModelList) {
    let current = chat.session.model.name();
    let keys = |provider: &str| list.providers.iter().find(|known| known.id == provider)?.variable.clone();
    let items = list.models.iter().cloned().map(|listed| {
        let is_marked = listed.model.name() == current;
        let label = format!("{}/{}", one_line(&listed.model.provider), one_line(&listed.model.id));
        PickItem {
            detail: detail(&listed.model, listed.has_key, keys(&listed.model.provider)),
            label,
            is_dim: !listed.has_key,
            is_marked,
            value: listed.model,
        }
    });
    let mut items: Vec<PickItem<Model>> = items.collect();
    items.sort_by_key(|item| item.is_dim);
    // The demo model is in no list; a session that has it shows it all the same.
    if !chat.session.model.is_placeholder() && !items.iter().any(|item| item.is_marked) {
        let value = chat.session.model.clone();
        let label = format!("{}/{}", one_line(&value.provider), one_line(&value.id));
        items.insert(0, PickItem { value, label, detail: String::new(), is_dim: false, is_marked: true });
    }
    let mut picker = Picker::new("Model", items);
    if let Some(filter) = chat.filter_models.take() {
        picker.set_filter(&filter);
    }
    chat.panel = Some(Panel::Models(picker));
}

/// The window of a model and its price; or which key is missing for it.
fn detail(model: &Model, has_key: bool, variable: Option<String>) -> String {
    if !has_key {
        return variable
            .map_or_else(|| "no key".to_owned(), |variable| format!("no key: {}", one_line(&variable)));
    }
    let window = if model.context_window == 0 { String::new() } else { short_count(model.context_window) };
    if model.cost.input == 0.0 && model.cost.output == 0.0 {
        return window;
    }
    format!("{window} ${} in ${} out", model.cost.input, model.cost.output)
}

fn sessions_list(chat: &mut Chat, sessions: Vec<agentd_protocol::daemon::SessionInfo>, of_folder: bool) {
    let now = jiff::Timestamp::now();
    let current = chat.session.session_id.clone();
    let items = sessions.into_iter().filter(|session| session.message_count > 0 || session.id == current);
    let items = items.map(|session| {
        let text = session.name.as_deref().unwrap_or(&session.first_message);
        let state = if session.is_streaming { "at work, " } else { "" };
        PickItem {
            label: if of_folder { one_line(text) } else { agentd_client_text::session_title(&session) },
            detail: format!(
                "{state}{}, {}",
                counted(usize::try_from(session.message_count).unwrap_or(usize::MAX), "message"),
                agentd_client_text::ago(&session.modified, now)
            ),
            is_dim: false,
            is_marked: session.id == current,
            value: session.id,
        }
    });
    let title = if of_folder { "Sessions of this folder" } else { "All sessions" };
    chat.panel = Some(Panel::Sessions(Picker::new(title, items.collect())));
}

fn restored_files(chat: &mut Chat, step: RestoreStep, restored: &RestoredCheckpoint) {
    let word = if step == RestoreStep::Undo { "Undone" } else { "Redone" };
    let count = counted(restored.restored.len(), "file");
    notice(chat, NoticeLevel::Info, format!("{word}: {count}."));
    for conflict in restored.conflicts.iter().chain(&restored.skipped) {
        let text = format!("Left as it is: {}: {}", one_line(&conflict.path), one_line(&conflict.why));
        notice(chat, NoticeLevel::Warning, text);
    }
    chat.transcript.follow();
}

fn usage(stats: &SessionStats) -> String {
    let tokens = &stats.tokens;
    let context = stats.context_usage.as_ref().and_then(|context| {
        Some(format!(
            "\nContext: {} of {} tokens",
            short_count(context.tokens?),
            short_count(context.context_window)
        ))
    });
    format!(
        "{}, {}, {}\nTokens: {} in, {} out, {} read from caches, {} written to caches\nCost: {}{}",
        counted(usize::try_from(stats.user_messages).unwrap_or(usize::MAX), "prompt"),
        counted(usize::try_from(stats.assistant_messages).unwrap_or(usize::MAX), "answer"),
        counted(usize::try_from(stats.tool_calls).unwrap_or(usize::MAX), "tool call"),
        short_count(tokens.input),
        short_count(tokens.output),
        short_count(tokens.cache_read),
        short_count(tokens.cache_write),
        money(stats.cost),
        context.unwrap_or_default()
    )
}
