//! A command that runs, whose changes are kept.

use std::sync::Arc;

use crate::{records::NewRecord, session::SessionCheckpoints, shared_folder::CommandNumber};

impl SessionCheckpoints {
    /// A command is about to start: of the agent, or of the user. Its changes are those until the guard is told of the end, or
    /// dropped.
    pub fn begin_command(
        self: &Arc<Self>,
        call_id: Option<String>,
        tool: &str,
        is_agent: bool,
    ) -> CommandGuard {
        let _using = self.kept.using();
        CommandGuard {
            number: Some(self.folder.begin(is_agent)),
            session: Arc::clone(self),
            call_id,
            tool: tool.to_owned(),
        }
    }
}

/// A command that runs.
pub struct CommandGuard {
    session: Arc<SessionCheckpoints>,
    /// `None` once the end was told.
    number: Option<CommandNumber>,
    call_id: Option<String>,
    tool: String,
}

impl CommandGuard {
    /// The command ended: stores a checkpoint of what it changed.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        let Some(number) = self.number.take() else { return };
        let using = self.session.kept.using();
        let found = self.session.folder.end(number);
        self.session.record(NewRecord {
            call_id: self.call_id.take(),
            tool: Some(std::mem::take(&mut self.tool)),
            shared: found.shared,
            skipped: found.skipped,
            changes: found.changes,
            ..NewRecord::default()
        });
        drop(using);
        self.session.kept.tidy();
    }
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        if self.number.is_some() {
            // Dropped where nothing may block: the end is told on a thread of its own.
            let mut rest = Self {
                session: Arc::clone(&self.session),
                number: self.number.take(),
                call_id: self.call_id.take(),
                tool: std::mem::take(&mut self.tool),
            };
            std::thread::spawn(move || rest.finish());
        }
    }
}
