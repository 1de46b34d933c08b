//! Events of the session.

use std::time::Instant;

use agentd_client_text::{
    compacted, decided, ended_process, extension_failed, fell_back, left_to_do, mode_changed, one_line,
    permissions_changed, proposed_plan, question_ended, retried, rules_matched, slow_provider, subagent_news,
    unkept,
};
use agentd_protocol::{
    Json,
    entry::EntryBody,
    event::{AssistantMessageEvent, Event, MessageUpdate},
    message::{AssistantMessage, ContentBlock, Message as SessionMessage, StopReason},
    ui::{ExtensionUiRequest, NotifyType, UiMethod, UiRequestResolved},
};

use crate::{
    app::{
        chat::Chat,
        messages::{Call, Effect},
        sending::is_ours,
        showing::{ask, at_work, notice, show_question},
    },
    transcript::{Entry, NoticeLevel, ToolCall, ToolState, ended_tool, entries_of, images},
};

/// Takes an event.
pub(super) fn event(chat: &mut Chat, event: &Event) -> Vec<Effect> {
    match event {
        Event::AgentStart(_) | Event::TurnStart(_) => {
            chat.session.is_streaming = true;
            at_work(chat, "waiting for the answer");
        }
        Event::AgentSettled(_) => {
            chat.session.is_streaming = false;
            chat.activity = None;
            chat.blocks.clear();
            return vec![Effect::Call(Box::new(Call::Stats))];
        }
        Event::MessageStart(start) if matches!(start.message.get(), Some(SessionMessage::Assistant(_))) => {
            chat.blocks.clear();
        }
        Event::MessageUpdate(update) => grow(chat, update),
        Event::MessageEnd(end) => message(chat, &end.message),
        Event::ToolExecutionStart(call) => {
            let state = ToolState::Running(Instant::now());
            chat.transcript.push(Entry::Tool(ToolCall::of(call, state)));
            at_work(chat, &one_line(&call.tool_name));
        }
        Event::ToolExecutionUpdate(update) => {
            let text = update.partial_result.content.iter().filter_map(ContentBlock::as_text);
            let text = text.collect::<Vec<_>>().join("\n");
            if let Some(plan) = proposed_plan(update) {
                notice(chat, NoticeLevel::Info, plan);
            }
            change_tool(chat, &update.tool_call_id, |call| call.output = text);
        }
        Event::ToolExecutionEnd(end) => {
            change_tool(chat, &end.tool_call_id, |call| ended_tool(call, end));
            for image in images(&end.result.content) {
                chat.transcript.push(image);
            }
            at_work(chat, "waiting for the answer");
        }
        Event::QueueUpdate(queue) => {
            chat.steering.clone_from(&queue.steering);
            chat.follow_ups.clone_from(&queue.follow_up);
        }
        Event::AutoRetryStart(retry) => {
            notice(chat, NoticeLevel::Warning, retried(retry));
            at_work(chat, "waiting to ask again");
        }
        Event::ProviderStalled(stalled) => notice(chat, NoticeLevel::Warning, slow_provider(stalled)),
        Event::ExtensionError(failed) => notice(chat, NoticeLevel::Error, extension_failed(failed)),
        Event::ModelFallback(fallback) => notice(chat, NoticeLevel::Warning, fell_back(fallback)),
        Event::ProcessEnd(end) => notice(chat, NoticeLevel::Info, ended_process(end)),
        Event::CompactionStart(_) => at_work(chat, "compacting"),
        Event::CompactionEnd(end) => {
            let level = if end.error_message.is_some() { NoticeLevel::Error } else { NoticeLevel::Info };
            notice(chat, level, compacted(end));
            if !chat.session.is_streaming {
                chat.activity = None;
            }
            return vec![Effect::Call(Box::new(Call::Stats))];
        }
        Event::SummarizationRetryScheduled(retry) => {
            let text =
                format!("The summary failed ({}). It is asked for again.", one_line(&retry.error_message));
            notice(chat, NoticeLevel::Warning, text);
        }
        Event::PermissionDecision(decision) => {
            notice(chat, NoticeLevel::Info, decided(decision));
        }
        Event::PermissionsChanged(changed) => {
            notice(chat, NoticeLevel::Info, permissions_changed(changed));
            chat.session.permissions = Some(changed.permissions.clone());
        }
        Event::SubagentLifecycle(news) => {
            if let Some(line) = subagent_news(&news.subagent) {
                notice(chat, NoticeLevel::Info, line);
            }
        }
        Event::ModeChanged(changed) => {
            notice(chat, NoticeLevel::Info, mode_changed(changed));
            chat.session.mode = changed.mode;
        }
        Event::TtsrTriggered(triggered) => notice(chat, NoticeLevel::Info, rules_matched(triggered)),
        Event::TodoReminder(reminder) => notice(chat, NoticeLevel::Info, left_to_do(reminder)),
        Event::BudgetReached(reached) => {
            let what = serde_json::to_value(reached).unwrap_or_default();
            let word = |key: &str| what[key].as_str().map(one_line).unwrap_or_default();
            let text = format!(
                "The budget of the {} is used up: {} is {} of {}.",
                word("scope"),
                word("what"),
                what["used"],
                what["limit"]
            );
            notice(chat, NoticeLevel::Warning, text);
        }
        Event::CheckpointCreated(created) => {
            if let Some(text) = unkept(&created.checkpoint) {
                notice(chat, NoticeLevel::Warning, text);
            }
        }
        Event::ThinkingLevelChanged(changed) => {
            chat.session.thinking_level = changed.level;
        }
        Event::McpServersChange(change) => {
            let prompts: Vec<_> =
                change.servers.iter().map(|it| (it.name.clone(), it.prompts.clone())).collect();
            if prompts != chat.server_prompts {
                chat.server_prompts = prompts;
                return vec![Effect::Call(Box::new(Call::Commands))];
            }
        }
        Event::SessionInfoChanged(changed) => chat.session.session_name.clone_from(&changed.name),
        Event::EntryAppended(appended) => {
            if let Some(EntryBody::ModelChange { provider, model_id }) =
                appended.entry.get().map(|entry| &entry.body)
            {
                notice(
                    chat,
                    NoticeLevel::Info,
                    format!("Model: {}/{}", one_line(provider), one_line(model_id)),
                );
                chat.session.model.provider.clone_from(provider);
                chat.session.model.id.clone_from(model_id);
            }
        }
        Event::BashExecutionUpdate(update) => {
            if let Some(number) = chat.bash {
                chat.transcript.change(number, |entry| {
                    if let Entry::Bash { output, .. } = entry {
                        output.push_str(&update.delta);
                    }
                });
            }
        }
        Event::ExtensionUiRequest(request) => return ui(chat, request),
        Event::UiRequestResolved(resolved) => resolved_elsewhere(chat, resolved),
        _ => {}
    }
    Vec::new()
}

fn change_tool(chat: &mut Chat, id: &str, change: impl FnOnce(&mut ToolCall)) {
    let Some(number) = chat.transcript.tool(id) else { return };
    chat.transcript.change(number, |entry| {
        if let Entry::Tool(call) = entry {
            change(call);
        }
    });
}

/// Adds to the answer that streams.
fn grow(chat: &mut Chat, update: &MessageUpdate) {
    use AssistantMessageEvent as Part;
    match &update.assistant_message_event {
        Part::TextStart { content_index } => {
            block(chat, *content_index, || Entry::Answer { text: String::new(), is_complete: false });
            at_work(chat, "answering");
        }
        Part::TextDelta { content_index, delta } => {
            let new = || Entry::Answer { text: String::new(), is_complete: false };
            let number = block(chat, *content_index, new);
            chat.transcript.append(number, delta);
        }
        Part::ThinkingStart { content_index } => {
            block(chat, *content_index, || Entry::Thinking { text: String::new(), is_complete: false });
            at_work(chat, "thinking");
        }
        Part::ThinkingDelta { content_index, delta } => {
            let new = || Entry::Thinking { text: String::new(), is_complete: false };
            let number = block(chat, *content_index, new);
            chat.transcript.append(number, delta);
        }
        Part::TextEnd { content_index, .. } | Part::ThinkingEnd { content_index, .. } => {
            complete(chat, *content_index);
        }
        Part::ToolcallStart { tool_name, .. } => {
            at_work(chat, &format!("writing a call of {}", one_line(tool_name)))
        }
        Part::ToolcallDelta { .. } | Part::ToolcallEnd { .. } => {}
    }
}

/// The entry of a block of the answer; a new one where there is none.
fn block(chat: &mut Chat, index: usize, new: impl FnOnce() -> Entry) -> i64 {
    if let Some(Some(number)) = chat.blocks.get(index) {
        return *number;
    }
    let number = chat.transcript.push(new());
    if chat.blocks.len() <= index {
        chat.blocks.resize(index + 1, None);
    }
    chat.blocks[index] = Some(number);
    number
}

fn complete(chat: &mut Chat, index: usize) {
    let Some(Some(number)) = chat.blocks.get(index).copied() else { return };
    chat.transcript.change(number, |entry| {
        if let Entry::Answer { is_complete, .. } | Entry::Thinking { is_complete, .. } = entry {
            *is_complete = true;
        }
    });
}

/// Takes a message that is complete.
fn message(chat: &mut Chat, message: &Json<SessionMessage>) {
    match message.get() {
        Some(SessionMessage::User(_)) => {
            for entry in entries_of(std::slice::from_ref(message)) {
                let entry = match entry {
                    Entry::User { text, .. } => {
                        let is_from_another = !is_ours(chat, &text);
                        Entry::User { text, is_from_another }
                    }
                    image => image,
                };
                chat.transcript.push(entry);
            }
        }
        Some(SessionMessage::Assistant(answer)) => answered(chat, answer),
        Some(SessionMessage::BashExecution(_)) if chat.bash.is_none() => {
            for entry in entries_of(std::slice::from_ref(message)) {
                chat.transcript.push(entry);
            }
        }
        Some(SessionMessage::Custom(custom)) if custom.display => {
            notice(chat, NoticeLevel::Info, custom.content.text());
        }
        _ => {}
    }
}

fn answered(chat: &mut Chat, answer: &AssistantMessage) {
    // An answer that came whole has no updates.
    if chat.blocks.is_empty() {
        for (index, part) in answer.content.iter().enumerate() {
            match part {
                ContentBlock::Text { text, .. } => {
                    let text = text.clone();
                    block(chat, index, || Entry::Answer { text, is_complete: true });
                }
                ContentBlock::Thinking { thinking, .. } => {
                    let text = thinking.clone();
                    block(chat, index, || Entry::Thinking { text, is_complete: true });
                }
                ContentBlock::ToolCall(_) | ContentBlock::Image(_) => {}
            }
        }
    }
    for index in 0..chat.blocks.len() {
        complete(chat, index);
    }
    chat.blocks.clear();
    // Another client may have chosen another model.
    let model = &mut chat.session.model;
    if chat.session.fallback_model.is_none()
        && (&model.provider, &model.id) != (&answer.provider, &answer.model)
    {
        model.provider.clone_from(&answer.provider);
        model.id.clone_from(&answer.model);
    }
    match (answer.stop_reason, &answer.error_message) {
        (StopReason::Aborted, _) => notice(chat, NoticeLevel::Info, "Stopped."),
        (StopReason::Length, _) => {
            notice(
                chat,
                NoticeLevel::Warning,
                "The answer was cut off at the model's limit of output tokens.",
            );
        }
        (_, Some(error)) => {
            notice(chat, NoticeLevel::Error, error.clone());
            if answer.code == Some(agentd_protocol::error::ErrorCode::NoCredentials) {
                let provider = one_line(&answer.provider);
                let hint = format!(
                    "{provider} did not accept the key. `agentctl login {provider}` stores another one; `agentctl auth status` \
                     shows where keys come from."
                );
                notice(chat, NoticeLevel::Warning, hint);
            }
        }
        _ => {}
    }
}

/// Shows a notice of the session, or asks a question.
fn ui(chat: &mut Chat, request: &ExtensionUiRequest) -> Vec<Effect> {
    match &request.method {
        method if method.is_dialog() => {
            ask(chat, request.clone());
            return vec![Effect::Bell];
        }
        UiMethod::Notify { message, notify_type } => {
            let level = match notify_type {
                Some(NotifyType::Error) => NoticeLevel::Error,
                Some(NotifyType::Warning) => NoticeLevel::Warning,
                Some(NotifyType::Info) | None => NoticeLevel::Info,
            };
            notice(chat, level, message.clone());
        }
        UiMethod::SetStatus { status_key, status_text } => {
            chat.statuses.retain(|(key, _)| key != status_key);
            if let Some(text) = status_text {
                chat.statuses.push((status_key.clone(), one_line(text)));
            }
        }
        _ => {}
    }
    Vec::new()
}

fn resolved_elsewhere(chat: &mut Chat, resolved: &UiRequestResolved) {
    let was_known = chat.questions.iter().any(|waiting| waiting.id == resolved.id);
    chat.questions.retain(|waiting| waiting.id != resolved.id);
    if was_known && chat.answered.as_deref() != Some(resolved.id.as_str()) {
        notice(chat, NoticeLevel::Info, question_ended(resolved));
    }
    show_question(chat);
}
