//! A command that runs, whose changes are kept.

use std::sync::Arc;

use crate::{recording::Gap, records::NewRecord, session::SessionCheckpoints, shared_folder::CommandNumber};

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
            is_agent,
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
    is_agent: bool,
}

impl CommandGuard {
    /// The command ended: stores a checkpoint of what it changed. Says what of that there was no room for.
    pub fn end(mut self) -> Option<Gap> {
        self.finish()
    }

    fn finish(&mut self) -> Option<Gap> {
        let number = self.number.take()?;
        let using = self.session.kept.using();
        let mut found = self.session.folder.end(number);
        if self.is_agent {
            found.skipped.extend(self.session.uncovered_to_tell());
        }
        let gap = self.session.record(NewRecord {
            call_id: self.call_id.take(),
            tool: Some(std::mem::take(&mut self.tool)),
            shared: found.shared,
            skipped: found.skipped,
            changes: found.changes,
            lacks_room: found.lacks_room,
            ..NewRecord::default()
        });
        drop(using);
        self.session.kept.tidy();
        gap
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
                is_agent: self.is_agent,
            };
            // The session's checkpoint says what the gap is.
            std::thread::spawn(move || drop(rest.finish()));
        }
    }
}
