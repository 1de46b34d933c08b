//! Tool calls: from the first word of their arguments to their result.

use agentd_protocol::{
    event::{ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate},
    message::{AssistantMessage, ToolCall},
    todo::{TODO_TOOL, phases_of},
};

use super::{
    calls::tell,
    events::Addition,
    state::{Agent, Effects, FileRead, Session, StreamingWrite, ToolState},
};
use crate::{
    plan::plan,
    tool_calls::{Arguments, OldText, changes, content, in_terminal, locations, raw_output},
    updates::{ToolCallFields, ToolStatus, Update},
};

/// The tool whose result does not say what was there before.
const WRITE: &str = "write";

/// How much of the arguments of `write` is kept until its path is known, in bytes.
const MOST_ARGUMENTS: usize = 8 << 10;

impl Agent {
    /// The model writes a call.
    pub(super) fn call_streams(&mut self, id: &str, addition: &Addition<'_>, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match (&*addition.kind, &addition.id, &addition.tool) {
            ("toolcall_start", Some(call), Some(tool)) => {
                session.announce(id, call, tool, tool, ToolStatus::Pending, effects);
                if tool == WRITE && self.options.local_files {
                    let write = StreamingWrite { call: call.clone(), arguments: String::new() };
                    session.streaming_writes.insert(addition.index, write);
                }
            }
            ("toolcall_delta", ..) => session.path_streams(id, addition, effects),
            ("toolcall_end", ..) => {
                session.streaming_writes.remove(&addition.index);
                let call = addition.call.and_then(|call| serde_json::from_str(call.get()).ok());
                if let Some(ToolCall { id: call, name, arguments, .. }) = call {
                    session.arguments_known(id, &call, &name, arguments, ToolStatus::Pending, effects);
                    self.read_before(id, &call, effects);
                }
            }
            _ => {}
        }
    }

    pub(super) fn call_began(&mut self, id: &str, event: ToolExecutionStart, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let ToolExecutionStart { tool_call_id: call, tool_name, args, .. } = event;
        let is_known = session.tools.get(&call).is_some_and(|tool| tool.arguments.is_some());
        if is_known {
            let status = Some(ToolStatus::InProgress);
            let fields = ToolCallFields { tool_call_id: call.clone(), status, ..ToolCallFields::default() };
            tell(id, &Update::ToolCallUpdate(fields), effects);
        } else {
            let arguments = args.get().cloned().unwrap_or_default();
            session.arguments_known(id, &call, &tool_name, arguments, ToolStatus::InProgress, effects);
        }
        if let Some(tool) = session.tools.get_mut(&call) {
            tool.is_running = true;
        }
        self.read_before(id, &call, effects);
    }

    pub(super) fn call_went_on(&mut self, id: &str, event: &ToolExecutionUpdate, effects: &mut Effects) {
        let tool = self.sessions.get(id).and_then(|session| session.tools.get(&event.tool_call_id));
        let shown = content(&event.tool_name, &event.partial_result.content);
        // A terminal shows the output itself.
        if shown.is_empty() || tool.is_some_and(|tool| tool.terminal.is_some()) {
            return;
        }
        let fields = ToolCallFields {
            tool_call_id: event.tool_call_id.clone(),
            status: Some(ToolStatus::InProgress),
            content: Some(shown),
            ..ToolCallFields::default()
        };
        tell(id, &Update::ToolCallUpdate(fields), effects);
    }

    pub(super) fn call_ended(&mut self, id: &str, event: &ToolExecutionEnd, effects: &mut Effects) {
        self.call_needs_no_terminal(&event.tool_call_id, effects);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let ToolExecutionEnd { tool_call_id: call, tool_name, result, is_error, .. } = event;
        let ToolState { arguments, old, terminal, .. } = session.tools.remove(call).unwrap_or_default();
        let arguments = arguments.unwrap_or_default();
        let folders = &session.folders;
        let changed =
            if *is_error { None } else { changes(tool_name, &arguments, result, old.as_ref(), folders) };
        let places = Some(locations(tool_name, &arguments, Some(result), folders));
        let fields = ToolCallFields {
            tool_call_id: call.clone(),
            status: Some(if *is_error { ToolStatus::Failed } else { ToolStatus::Completed }),
            content: Some(match (changed, terminal) {
                (Some(changed), _) => changed,
                (None, Some(terminal)) => in_terminal(terminal, tool_name, result),
                (None, None) => content(tool_name, &result.content),
            }),
            locations: places.filter(|places| !places.is_empty()),
            raw_output: raw_output(result),
            ..ToolCallFields::default()
        };
        tell(id, &Update::ToolCallUpdate(fields), effects);
        let phases =
            result.details.as_ref().filter(|_| tool_name == TODO_TOOL && !is_error).and_then(phases_of);
        if let Some(phases) = phases {
            tell(id, &plan(&phases), effects);
        }
    }

    /// Wants the text of the file that a call is about to write.
    fn read_before(&self, id: &str, call: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get(id).filter(|_| self.options.local_files) else { return };
        let Some(tool) = session.tools.get(call).filter(|tool| tool.name == WRITE) else { return };
        let path = tool.arguments.as_ref().and_then(|arguments| arguments.get("path")?.as_str());
        if let Some(path) = path {
            effects.reads.push(session.file_read(id, call, path));
        }
    }

    /// Takes the text of a file that was wanted: `None` where it was not there.
    pub fn file_read(&mut self, read: &FileRead, text: Option<String>) {
        let Some(session) = self.sessions.get_mut(&read.session) else { return };
        let Some(tool) = session.tools.get_mut(&read.call) else { return };
        // A text that is the new one may have been read after the call wrote it.
        let new = tool.arguments.as_ref().and_then(|arguments| arguments.get("content")?.as_str());
        if text.is_some() && text.as_deref() == new && tool.old.is_some() {
            return;
        }
        tool.old = Some(OldText(text));
    }
}

impl Session {
    /// Tells a call whose arguments are not known yet, unless it is told.
    pub(super) fn announce(
        &mut self,
        id: &str,
        call: &str,
        tool: &str,
        title: &str,
        status: ToolStatus,
        effects: &mut Effects,
    ) {
        if self.tools.contains_key(call) {
            return;
        }
        let state = ToolState { name: tool.to_owned(), ..ToolState::default() };
        self.tools.insert(call.to_owned(), state);
        let fields = ToolCallFields {
            tool_call_id: call.to_owned(),
            title: Some(if title == tool { self.server_tools.name(tool) } else { title.to_owned() }),
            name: Some(tool.to_owned()),
            kind: Some(self.server_tools.kind(tool)),
            status: Some(status),
            ..ToolCallFields::default()
        };
        tell(id, &Update::ToolCall(fields), effects);
    }

    /// Tells the arguments of a call, which may not have been told at all.
    pub(super) fn arguments_known(
        &mut self,
        id: &str,
        call: &str,
        tool: &str,
        arguments: Arguments,
        status: ToolStatus,
        effects: &mut Effects,
    ) {
        let is_new = !self.tools.contains_key(call);
        let fields = ToolCallFields {
            tool_call_id: call.to_owned(),
            title: Some(self.server_tools.title(tool, &arguments, &self.folders)),
            name: is_new.then(|| tool.to_owned()),
            kind: Some(self.server_tools.kind(tool)),
            status: Some(status),
            locations: Some(locations(tool, &arguments, None, &self.folders)),
            raw_input: Some(arguments.clone().into()),
            ..ToolCallFields::default()
        };
        tell(id, &if is_new { Update::ToolCall(fields) } else { Update::ToolCallUpdate(fields) }, effects);
        let state = self.tools.entry(call.to_owned()).or_default();
        state.name = tool.to_owned();
        state.arguments = Some(arguments);
    }

    /// Looks for the path in the arguments of a `write` call, which most often stands before the text.
    fn path_streams(&mut self, id: &str, addition: &Addition<'_>, effects: &mut Effects) {
        let Some(write) = self.streaming_writes.get_mut(&addition.index) else { return };
        let Some(delta) = addition.delta.and_then(|delta| serde_json::from_str::<String>(delta.get()).ok())
        else {
            return;
        };
        write.arguments.push_str(&delta);
        let path = path_in(&write.arguments);
        if path.is_none() && write.arguments.len() < MOST_ARGUMENTS {
            return;
        }
        let call = std::mem::take(&mut write.call);
        self.streaming_writes.remove(&addition.index);
        if let Some(path) = path {
            effects.reads.push(self.file_read(id, &call, &path));
        }
    }

    fn file_read(&self, id: &str, call: &str, path: &str) -> FileRead {
        FileRead { session: id.to_owned(), call: call.to_owned(), path: self.folders.absolute(path) }
    }

    /// Tells that the calls of an answer that failed do not run.
    pub(super) fn give_up_calls_of(&mut self, id: &str, answer: &AssistantMessage, effects: &mut Effects) {
        for call in answer.tool_calls() {
            if self.tools.get(&call.id).is_some_and(|tool| !tool.is_running) {
                self.tools.remove(&call.id);
                let status = Some(ToolStatus::Failed);
                let fields =
                    ToolCallFields { tool_call_id: call.id.clone(), status, ..ToolCallFields::default() };
                tell(id, &Update::ToolCallUpdate(fields), effects);
            }
        }
    }
}

/// Pure. The path in arguments that are not complete. A quotation mark within a text is always escaped, so that `"path"` is a key.
fn path_in(arguments: &str) -> Option<String> {
    let (_, rest) = arguments.split_once("\"path\"")?;
    let text = rest.trim_start().strip_prefix(':')?.trim_start();
    let mut is_escaped = false;
    let end = text.strip_prefix('"')?.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })?;
    serde_json::from_str(&text[..end + 2]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_once_it_is_complete() {
        for (arguments, path) in [
            (r#"{"path": "a.rs", "cont"#, Some("a.rs")),
            (r#"{"path":"a\"b\\","#, Some("a\"b\\")),
            (r#"{"path":"a.r"#, None),
            (r#"{"path""#, None),
            ("{", None),
            (r#"{"content":"\"path\":\"x\"","path":"y""#, Some("y")),
        ] {
            assert_eq!(path_in(arguments).as_deref(), path, "{arguments}");
        }
    }
}
