//! The editor's files: texts that are typed there and not saved, and changes that it makes.

use std::path::Path;

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::state::{Agent, ClientCall, Effects};
use crate::{rpc::write_request, terminals::TerminalCall};

/// Why the editor is not asked: it said that it cannot, its session is closed, or it has left.
pub(super) const NOT_OFFERED: &str = "the editor does not offer it";

impl Agent {
    /// Whether the editor gives its texts, and whether it takes some.
    #[must_use]
    pub fn has_files(&self) -> (bool, bool) {
        (self.client.fs.read_text_file, self.client.fs.write_text_file)
    }

    /// Asks the editor for its text of a file. The answer comes in [`Effects::texts`] with `number`.
    pub fn text_wanted(&mut self, number: u64, session: &str, path: &Path, effects: &mut Effects) {
        let params = json!({"sessionId": session, "path": path});
        self.ask_for_text(number, session, "fs/read_text_file", &params, true, effects);
    }

    /// Has the editor write a text. The answer comes in [`Effects::texts`] with `number`.
    pub fn text_written(
        &mut self,
        number: u64,
        session: &str,
        path: &Path,
        text: &str,
        effects: &mut Effects,
    ) {
        let params = json!({"sessionId": session, "path": path, "content": text});
        self.ask_for_text(number, session, "fs/write_text_file", &params, false, effects);
    }

    fn ask_for_text(
        &mut self,
        number: u64,
        session: &str,
        method: &str,
        params: &serde_json::Value,
        is_read: bool,
        effects: &mut Effects,
    ) {
        let (reads, writes) = self.has_files();
        let is_offered = if is_read { reads } else { writes };
        if !is_offered || !self.sessions.contains_key(session) {
            return effects.texts.push((number, Err(NOT_OFFERED.to_owned())));
        }
        self.last_client_call += 1;
        write_request(self.last_client_call, method, params, &mut effects.to_client);
        let call = ClientCall::Text { session: session.to_owned(), number, is_read };
        self.client_calls.insert(self.last_client_call, call);
    }
}

impl Agent {
    /// Gives up what tools want of the editor, in a session or in all, and tells them why. Terminals that it still makes are released.
    pub(super) fn give_up_editor(&mut self, session: Option<&str>, reason: &str, effects: &mut Effects) {
        self.client_calls.retain(|_, call| {
            let is_meant = session.is_none_or(|session| session == call.session());
            match call {
                ClientCall::Text { number, .. } if is_meant => {
                    effects.texts.push((*number, Err(reason.to_owned())));
                    false
                }
                ClientCall::Terminal { number, call, .. } if is_meant => {
                    effects.terminals.push((*number, Err(reason.to_owned())));
                    let is_new = matches!(call, TerminalCall::Create { .. } | TerminalCall::Unwanted);
                    *call = TerminalCall::Unwanted;
                    is_new
                }
                _ => true,
            }
        });
    }
}

/// Pure. The editor's answer about a file.
pub(super) fn text(is_read: bool, given: &Result<&RawValue, String>) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Content {
        content: String,
    }
    let answer = given.as_ref().map_err(Clone::clone)?;
    if !is_read {
        return Ok(String::new());
    }
    serde_json::from_str(answer.get()).map(|Content { content }| content).map_err(|error| error.to_string())
}
