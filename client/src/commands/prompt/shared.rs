//! Following one session of a daemon without losing a line or seeing one twice.

use agentd_protocol::{
    command::NoParams,
    daemon::{AttachSessionParams, Position},
    event::Event,
    message::{AssistantMessage, Message},
};
use serde::Deserialize;

use crate::rpc::{AttachSession, CallError, Client, EventLine, GetMessages};

/// A session that is followed, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    id: String,
    epoch: String,
    /// The last event that was seen.
    seq: u64,
}

/// What a line means for a follower.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// An event of the session, as a client of this session alone would get it.
    Event(EventLine),
    /// Events from here on were not sent.
    Lagged,
    /// Another client closed the session.
    Closed,
    /// Nothing that concerns the session.
    Other,
}

/// What attaching again came to.
#[derive(Debug)]
pub(crate) enum Resumed {
    /// Every event that was missed follows.
    Whole,
    /// So many events are no longer kept. Work goes on, or has ended with this answer.
    Missed {
        /// How many.
        events: u64,
        /// `Some` when nothing is under way any more: the last answer, if there is one.
        ended: Option<Option<Box<AssistantMessage>>>,
    },
}

impl Followed {
    pub(crate) fn from(id: String, epoch: String, seq: u64) -> Self {
        Self { id, epoch, seq }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Takes a line, and the name of the session and the number off it again.
    pub(crate) fn take(&mut self, line: EventLine) -> Seen {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Of {
            session_id: Option<String>,
            seq: Option<u64>,
        }
        // What cannot be read is of no session.
        let Ok(of) = serde_json::from_str::<Of>(&line.text) else { return Seen::Other };
        if of.session_id.as_deref() != Some(self.id.as_str()) {
            return Seen::Other;
        }
        let Some(seq) = of.seq else {
            return match line.event() {
                Some(Event::Lagged(_)) => Seen::Lagged,
                Some(Event::SessionClosed(_)) => Seen::Closed,
                _ => Seen::Other,
            };
        };
        if seq <= self.seq {
            return Seen::Other;
        }
        self.seq = seq;
        if line.kind == "lagged" {
            // Another program has changed the session's file: events before this one no longer add up to what it says.
            return Seen::Lagged;
        }
        let tail = format!(",\"sessionId\":\"{}\",\"seq\":{seq}}}", self.id);
        let text = match line.text.strip_suffix(&tail) {
            Some(rest) => format!("{rest}}}"),
            None => line.text,
        };
        Seen::Event(EventLine { kind: line.kind, text })
    }

    /// Attaches again after a lag.
    ///
    /// # Errors
    /// When the daemon refuses or is gone.
    pub(crate) async fn resume(&mut self, client: &Client) -> Result<Resumed, CallError> {
        let since = Some(Position { epoch: self.epoch.clone(), seq: self.seq });
        let params = AttachSessionParams { session_id: self.id.clone(), since };
        let attached = client.call::<AttachSession>(&params).await?;
        if attached.replayed {
            return Ok(Resumed::Whole);
        }
        let events = attached.seq.saturating_sub(self.seq);
        self.seq = attached.seq;
        let ended = if attached.state.is_streaming {
            None
        } else {
            let messages = client.call::<GetMessages>(&NoParams {}).await?.messages;
            Some(messages.iter().rev().find_map(|message| match message.get() {
                Some(Message::Assistant(answer)) => Some(Box::new(answer.clone())),
                _ => None,
            }))
        };
        Ok(Resumed::Missed { events, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> EventLine {
        let kind: serde_json::Value = serde_json::from_str(text).unwrap();
        EventLine { kind: kind["type"].as_str().unwrap().to_owned(), text: text.to_owned() }
    }

    #[test]
    fn lines_are_those_of_a_session_of_our_own_and_come_once() {
        let mut followed = Followed::from("s".into(), "e".into(), 4);
        let event = line(r#"{"type":"agent_start","sessionId":"s","seq":5}"#);
        assert_eq!(followed.take(event.clone()), Seen::Event(line(r#"{"type":"agent_start"}"#)));
        assert_eq!(followed.take(event), Seen::Other);
        assert_eq!(followed.take(line(r#"{"type":"agent_start","sessionId":"other","seq":9}"#)), Seen::Other);
        assert_eq!(followed.take(line(r#"{"type":"lagged","sessionId":"s","fromSeq":6}"#)), Seen::Lagged);
        let started_over = line(r#"{"type":"lagged","fromSeq":6,"sessionId":"s","seq":6}"#);
        assert_eq!(Followed::from("s".into(), "e".into(), 5).take(started_over), Seen::Lagged);
        assert_eq!(followed.take(line(r#"{"type":"session_closed","sessionId":"s"}"#)), Seen::Closed);
        assert_eq!(followed.take(line(r#"{"type":"session_closed","sessionId":"t"}"#)), Seen::Other);
        assert_eq!(followed, Followed::from("s".into(), "e".into(), 5));
    }
}
