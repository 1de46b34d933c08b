//! The sessions of the table: what the daemon tells of them, in the order that is wanted.

use std::{cmp::Reverse, collections::HashMap};

use agentd_protocol::{
    daemon::{ActivityState, SessionActivity, SessionInfo},
    event::Event,
};
use serde::Serialize;

use crate::cli::TopSort;

/// An answer that has just begun has no rate yet: so many milliseconds have to pass.
const MIN_RATE_MS: i64 = 200;

/// A session in memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TopSession {
    pub(super) session: SessionInfo,
    /// `None` until the daemon has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) activity: Option<SessionActivity>,
    /// Tokens per second of the answer that streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens_per_second: Option<f64>,
}

/// What became of the table by an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TopChange {
    /// This session is new or different.
    Session(String),
    /// This session is not in memory any more.
    Left(String),
}

/// The sessions in memory.
#[derive(Debug, Default)]
pub(super) struct TopSessions(HashMap<String, TopSession>);

impl TopSession {
    /// Whether something works for it.
    pub(super) fn is_at_work(&self) -> bool {
        self.session.is_streaming
            || self.activity.as_ref().is_some_and(|activity| activity.state != ActivityState::Idle)
    }

    /// The full part of the context window, from 0 to 1.
    pub(super) fn context_share(&self) -> Option<f64> {
        let activity = self.activity.as_ref()?;
        let window = activity.context_window.filter(|window| *window > 0)?;
        Some(activity.context_tokens? as f64 / window as f64)
    }

    /// All tokens, those of the answer that streams included.
    pub(super) fn tokens(&self) -> u64 {
        self.activity.as_ref().map_or(0, |activity| activity.tokens + activity.answer_tokens.unwrap_or(0))
    }

    pub(super) fn cost(&self) -> f64 {
        self.activity.as_ref().map_or(0.0, |activity| activity.cost)
    }
}

impl TopSessions {
    /// Takes the sessions of a list, and what they do. `now_ms` is the Unix time in milliseconds.
    pub(super) fn new(sessions: Vec<SessionInfo>, activities: Vec<SessionActivity>, now_ms: i64) -> Self {
        let rows = sessions.into_iter().map(|session| {
            (session.id.clone(), TopSession { session, activity: None, tokens_per_second: None })
        });
        let mut all = Self(rows.collect());
        for activity in activities {
            all.tell(activity, now_ms);
        }
        all
    }

    /// Takes an event; `None` where it changes nothing.
    pub(super) fn apply(&mut self, event: Event, now_ms: i64) -> Option<TopChange> {
        match event {
            Event::SessionOpened(opened) => Some(self.put(opened.session)),
            Event::SessionChanged(changed) => Some(self.put(changed.session)),
            Event::SessionClosed(closed) => {
                self.0.remove(&closed.session_id).map(|_| TopChange::Left(closed.session_id))
            }
            Event::SessionActivity(activity) => self.tell(activity, now_ms),
            _ => None,
        }
    }

    fn put(&mut self, session: SessionInfo) -> TopChange {
        let id = session.id.clone();
        if !session.live {
            self.0.remove(&id);
            return TopChange::Left(id);
        }
        match self.0.get_mut(&id) {
            Some(row) => row.session = session,
            None => {
                let row = TopSession { session, activity: None, tokens_per_second: None };
                self.0.insert(id.clone(), row);
            }
        }
        TopChange::Session(id)
    }

    /// An activity of a session that is not in the list comes before its `session_opened`, and again.
    fn tell(&mut self, activity: SessionActivity, now_ms: i64) -> Option<TopChange> {
        let row = self.0.get_mut(&activity.session_id)?;
        row.tokens_per_second = rate(&activity, now_ms);
        let id = activity.session_id.clone();
        row.activity = Some(activity);
        Some(TopChange::Session(id))
    }

    pub(super) fn get(&self, id: &str) -> Option<&TopSession> {
        self.0.get(id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &TopSession> {
        self.0.values()
    }

    /// The sessions in an order; equal ones by their id.
    pub(super) fn sorted(&self, by: TopSort) -> Vec<&TopSession> {
        let mut rows: Vec<&TopSession> = self.0.values().collect();
        rows.sort_by(|one, other| one.session.id.cmp(&other.session.id));
        let descending = |key: fn(&TopSession) -> f64, rows: &mut Vec<&TopSession>| {
            rows.sort_by(|one, other| key(other).total_cmp(&key(one)));
        };
        match by {
            TopSort::State => {
                rows.sort_by_key(|row| Reverse((row.is_at_work(), row.session.modified.clone())));
            }
            TopSort::Rate => descending(|row| row.tokens_per_second.unwrap_or(-1.0), &mut rows),
            TopSort::Context => descending(|row| row.context_share().unwrap_or(-1.0), &mut rows),
            TopSort::Tokens => rows.sort_by_key(|row| Reverse(row.tokens())),
            TopSort::Cost => descending(TopSession::cost, &mut rows),
            TopSort::Title => rows.sort_by_cached_key(|row| {
                let title = row.session.name.clone().unwrap_or_else(|| row.session.first_message.clone());
                (row.session.cwd.clone(), title)
            }),
        }
        rows
    }
}

/// The mean rate of the answer since its beginning.
fn rate(activity: &SessionActivity, now_ms: i64) -> Option<f64> {
    let passed = now_ms.saturating_sub(activity.since_ms?);
    let tokens = activity.answer_tokens.filter(|tokens| *tokens > 0)?;
    (passed >= MIN_RATE_MS).then(|| tokens as f64 * 1e3 / passed as f64)
}

#[cfg(test)]
mod tests {
    use agentd_protocol::daemon::{SessionChanged, SessionClosed, SessionOpened};

    use super::*;
    use crate::render::{example_activity, example_session};

    fn live(id: &str) -> SessionInfo {
        SessionInfo { live: true, ..example_session(id) }
    }

    fn ids(sessions: &TopSessions, by: TopSort) -> Vec<&str> {
        sessions.sorted(by).into_iter().map(|row| row.session.id.as_str()).collect()
    }

    #[test]
    fn sessions_come_change_and_leave() {
        let mut all = TopSessions::new(vec![live("a")], vec![example_activity("a")], 0);
        assert_eq!(all.get("a").unwrap().tokens(), 1_234);
        let opened = all.apply(SessionOpened { session: live("b") }.into(), 0);
        assert_eq!(opened, Some(TopChange::Session("b".into())));
        let answering = SessionActivity {
            state: ActivityState::Answering,
            since_ms: Some(1_000),
            answer_tokens: Some(50),
            ..example_activity("b")
        };
        assert!(all.apply(answering.clone().into(), 2_000).is_some());
        let row = all.get("b").unwrap();
        assert_eq!((row.tokens_per_second, row.tokens()), (Some(50.0), 1_284));
        assert!(row.is_at_work());
        // The first moment of an answer says nothing about its rate.
        all.apply(answering.into(), 1_100);
        assert_eq!(all.get("b").unwrap().tokens_per_second, None);
        // A session that is not in memory is not in the table, whichever way it left.
        let unloaded = all.apply(SessionChanged { session: example_session("b") }.into(), 0);
        assert_eq!(unloaded, Some(TopChange::Left("b".into())));
        assert_eq!(all.apply(example_activity("b").into(), 0), None);
        let closed = SessionClosed { session_id: "a".into() };
        assert_eq!(all.apply(closed.clone().into(), 0), Some(TopChange::Left("a".into())));
        assert_eq!(all.apply(closed.into(), 0), None);
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn orders() {
        let activity = |id: &str, cost, tokens, context| SessionActivity {
            cost,
            tokens,
            context_tokens: context,
            ..example_activity(id)
        };
        let busy = SessionInfo { is_streaming: true, ..live("c") };
        let all = TopSessions::new(
            vec![live("a"), live("b"), busy],
            vec![
                activity("a", 0.5, 10, Some(1)),
                activity("b", 0.1, 30, None),
                activity("c", 0.2, 20, Some(9)),
            ],
            0,
        );
        for (by, expected) in [
            (TopSort::State, ["c", "a", "b"]),
            (TopSort::Rate, ["a", "b", "c"]),
            (TopSort::Context, ["c", "a", "b"]),
            (TopSort::Tokens, ["b", "c", "a"]),
            (TopSort::Cost, ["a", "c", "b"]),
            (TopSort::Title, ["a", "b", "c"]),
        ] {
            assert_eq!(ids(&all, by), expected, "{by:?}");
        }
        let mut sort = TopSort::default();
        for _ in 0..6 {
            sort = sort.next();
        }
        assert_eq!(sort, TopSort::default());
    }
}
