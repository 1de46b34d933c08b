//! The sessions that a daemon waits for when it ends.

use agentd_protocol::daemon::{
    ActivityState, ListSessionsParams, SessionActivity, SessionInfo, WatchSessionsParams,
};
use jiff::Timestamp;

use crate::{
    render::{activity_text, columns, counted, cut, padded, session_title, short_id},
    rpc::{CallError, Client, ListSessions, WatchSessions},
};

/// How many sessions are listed.
const LISTED: usize = 10;

/// The columns of a session's title.
const TITLE: usize = 50;

/// The sessions in memory with what each is doing, from one moment of watching on.
pub(crate) struct LiveSessions {
    pub(crate) sessions: Vec<SessionInfo>,
    pub(crate) activities: Vec<SessionActivity>,
}

/// Begins to watch, and asks for the sessions in memory.
///
/// # Errors
/// When the daemon ends or refuses.
pub(crate) async fn live_sessions(client: &Client) -> Result<LiveSessions, CallError> {
    let watched = client.call::<WatchSessions>(&WatchSessionsParams { activity: true }).await?;
    let mut params =
        ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
    let mut sessions = Vec::new();
    loop {
        let list = client.call::<ListSessions>(&params).await?;
        sessions.extend(list.sessions);
        params.cursor = list.cursor;
        if params.cursor.is_none() {
            return Ok(LiveSessions { sessions, activities: watched.activities.unwrap_or_default() });
        }
    }
}

impl LiveSessions {
    /// The sessions that a daemon finishes before it ends: those with a run, a compaction or a command of the user. Background
    /// processes are not among them.
    pub(crate) fn at_work(&self) -> Vec<&SessionActivity> {
        let works = |activity: &&SessionActivity| {
            matches!(activity.state, ActivityState::Running | ActivityState::Compacting)
                || self.info(&activity.session_id).is_some_and(|session| session.is_streaming)
        };
        self.activities.iter().filter(works).collect()
    }

    fn info(&self, id: &str) -> Option<&SessionInfo> {
        self.sessions.iter().find(|session| session.id == id)
    }

    /// A paragraph about those at work; empty when none is.
    pub(crate) fn text(&self, now: Timestamp) -> String {
        let at_work = self.at_work();
        let rows: Vec<(String, String)> = at_work
            .iter()
            .take(LISTED)
            .map(|activity| {
                let title = self.info(&activity.session_id).map(session_title).unwrap_or_default();
                (activity_text(activity, now.as_millisecond()), cut(&title, TITLE))
            })
            .collect();
        let Some(width) = rows.iter().map(|(state, _)| columns(state)).max() else { return String::new() };
        let mut text = format!("It waits for {}:\n", counted(at_work.len(), "session"));
        for (activity, (state, title)) in at_work.iter().zip(&rows) {
            let line =
                format!("  {}  {}  {title}", short_id(&activity.session_id), padded(state, width, false));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if at_work.len() > LISTED {
            text.push_str("  …\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{example_activity, example_session};

    #[test]
    fn those_at_work_are_listed_and_idle_ones_are_not() {
        let working = SessionInfo { is_streaming: true, ..example_session("aaaa") };
        let activity = |id: &str, state| SessionActivity { state, ..example_activity(id) };
        let live = LiveSessions {
            sessions: vec![working, example_session("bbbb"), example_session("cccc")],
            activities: vec![
                activity("aaaa", ActivityState::Asking),
                // The project's trust is asked for while nothing works.
                activity("bbbb", ActivityState::Asking),
                activity("cccc", ActivityState::Compacting),
            ],
        };
        assert_eq!(
            live.text(Timestamp::UNIX_EPOCH),
            "It waits for 2 sessions:\n  aaaa  waits for the user  project: What is this?\n  \
             cccc  compacting          project: What is this?\n"
        );
        let idle = LiveSessions { sessions: Vec::new(), activities: vec![example_activity("a")] };
        assert_eq!(idle.text(Timestamp::UNIX_EPOCH), "");
    }
}
