//! The session's background processes: telling of their ends, and what they are in lists of work.

use std::time::Duration;

use agentd_process::{BackgroundProcess, EndedBy};
use agentd_protocol::{
    Json,
    command::{Work, WorkKind},
    event::{Event, ProcessEnd, ProcessEndedBy},
};
use agentd_store::{EntryKind, OpenSession, Role};

use crate::actor::Actor;

/// How long the ends of killed processes are waited for: their output is read to its end first.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Actor {
    /// Tells those who said hello.
    pub(crate) fn on_process_end(&self, process: &BackgroundProcess) {
        let Some(end) = process.end() else { return };
        let event = Event::from(ProcessEnd {
            process_id: process.id().to_owned(),
            command: process.label().to_owned(),
            exit_code: end.exit.code,
            signal: end.exit.signal,
            ended_by: end.by.map(|by| match by {
                EndedBy::Timeout => ProcessEndedBy::Timeout,
                EndedBy::Request => ProcessEndedBy::Model,
            }),
            duration_ms: u64::try_from(end.wall_time.as_millis()).unwrap_or(u64::MAX),
            output_bytes: process.total_bytes(),
        });
        self.publish_to_introduced(&event);
    }

    /// Tells of the processes that ended with the session, once they were killed.
    pub(crate) async fn tell_last_ends(&self) {
        let background = &self.context.background;
        background.settled(LAST_WORDS).await;
        while let Some(process) = background.take_end() {
            self.on_process_end(&process);
        }
    }

    /// The background processes that run.
    pub(crate) fn background_works(&self) -> Vec<Work> {
        let processes = self.context.background.list();
        let running = processes.iter().filter(|process| process.end().is_none());
        let work = |process: &std::sync::Arc<BackgroundProcess>| Work {
            kind: WorkKind::Background,
            id: Some(process.id().into()),
            name: Some(process.label().to_owned()),
        };
        running.map(work).collect()
    }

    /// How many other commands have ended and left something running.
    pub(crate) fn left_by_others(&self) -> usize {
        self.context.processes.background_of(|work| work.kind != WorkKind::Background)
    }
}

/// The number in the name of the last background process that the transcript knows of: names are not given twice, also
/// after the daemon was started anew.
pub(crate) fn last_background(session: &OpenSession) -> u64 {
    const MARK: &str = "\"process_id\":\"bg-";
    let results =
        session.tree.entries().iter().filter(|it| it.kind() == EntryKind::Message(Role::ToolResult));
    let texts = results.filter_map(|entry| entry.message().map(Json::text));
    let numbers = texts.flat_map(|text| {
        let number = |(at, _): (usize, &str)| text[at + MARK.len()..].split('"').next()?.parse::<u64>().ok();
        text.match_indices(MARK).filter_map(number)
    });
    numbers.max().unwrap_or(0)
}
