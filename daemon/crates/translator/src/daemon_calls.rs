//! Pure. Commands to the daemon, until it answers them.

use std::collections::{HashMap, VecDeque};

use agentd_protocol::error::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The data of a response, or why there is none.
pub type Answer<'a> = Result<Option<&'a RawValue>, Failure>;

/// Our commands that the daemon has not answered. `C` is what is kept with each until then.
#[derive(Debug)]
pub struct DaemonCalls<C> {
    open: HashMap<u64, C>,
    last: u64,
}

/// A line of the daemon.
#[derive(Debug)]
pub enum DaemonLine<'a, C> {
    /// The answer to a command of ours.
    Answer(C, Answer<'a>),
    /// An event of a session.
    Event {
        /// The session.
        session: String,
        /// The kind of event.
        kind: &'a str,
        /// Its number.
        seq: u64,
    },
    /// The daemon takes no more clients, and why.
    Unusable(String),
    /// Nothing that concerns us.
    Other,
}

/// A response of the daemon.
#[derive(Deserialize)]
struct Reply<'a> {
    id: u64,
    success: bool,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    code: Option<ErrorCode>,
    #[serde(default)]
    hint: Option<String>,
}

impl<C> Default for DaemonCalls<C> {
    fn default() -> Self {
        Self { open: HashMap::new(), last: 0 }
    }
}

impl<C> DaemonCalls<C> {
    /// Appends a command to the lines for the daemon, and keeps `call` until it is answered.
    pub fn ask(
        &mut self,
        call: C,
        command: &str,
        session: Option<&str>,
        params: &impl Serialize,
        to_daemon: &mut VecDeque<String>,
    ) {
        #[derive(Serialize)]
        struct Command<'a, T> {
            id: u64,
            #[serde(rename = "type")]
            kind: &'a str,
            #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
            session: Option<&'a str>,
            #[serde(flatten)]
            params: &'a T,
        }
        self.last += 1;
        let id = self.last;
        // The parameters are our own types, which JSON can represent.
        if let Ok(line) = serde_json::to_string(&Command { id, kind: command, session, params }) {
            self.open.insert(id, call);
            to_daemon.push_back(line);
        }
    }

    /// Reads a line of the daemon.
    pub fn read<'a>(&mut self, line: &'a str) -> DaemonLine<'a, C> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            #[serde(rename = "sessionId", default)]
            session: Option<String>,
            #[serde(default)]
            seq: u64,
        }
        let Ok(Head { kind, session, seq }) = serde_json::from_str::<Head<'_>>(line) else {
            return DaemonLine::Other;
        };
        if kind != "response" {
            return session.map_or(DaemonLine::Other, |session| DaemonLine::Event { session, kind, seq });
        }
        let Ok(reply) = serde_json::from_str::<Reply<'_>>(line) else { return refused_connection(line) };
        let Some(call) = self.open.remove(&reply.id) else { return DaemonLine::Other };
        let answer = if reply.success {
            Ok(reply.data)
        } else {
            let code = reply.code.unwrap_or(ErrorCode::Internal);
            let error = reply.error.unwrap_or_else(|| "agentd refused, and did not say why".to_owned());
            Err(Failure { error, code, hint: reply.hint })
        };
        DaemonLine::Answer(call, answer)
    }

    /// The number of the last command.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether everything is answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// What is kept with the commands that are not answered, in any order.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.open.values()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.open.values_mut()
    }

    /// Forgets all commands, and gives what was kept with them.
    pub fn drain(&mut self) -> impl Iterator<Item = C> {
        self.open.drain().map(|(_, call)| call)
    }
}

/// A response without an id of ours: the daemon takes no more clients.
fn refused_connection<'a, C>(line: &str) -> DaemonLine<'a, C> {
    match serde_json::from_str::<Failure>(line) {
        Ok(failure) if failure.code == ErrorCode::LimitReached => DaemonLine::Unusable(with_hint(&failure)),
        _ => DaemonLine::Other,
    }
}

/// The failure, and what to do about it.
#[must_use]
pub fn with_hint(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{} {hint}", failure.error),
        None => failure.error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_finds_its_command_once() {
        let (mut calls, mut lines) = (DaemonCalls::default(), VecDeque::new());
        calls.ask("a", "abort", Some("s"), &json!({"scope": "all"}), &mut lines);
        calls.ask("b", "hello", None, &json!({}), &mut lines);
        assert_eq!(lines[0], r#"{"id":1,"type":"abort","sessionId":"s","scope":"all"}"#);
        assert_eq!(lines[1], r#"{"id":2,"type":"hello"}"#);
        let line = r#"{"id":1,"type":"response","command":"abort","success":true,"data":{"x":1}}"#;
        assert!(
            matches!(calls.read(line), DaemonLine::Answer("a", Ok(Some(data))) if data.get() == r#"{"x":1}"#)
        );
        assert!(matches!(calls.read(line), DaemonLine::Other));
        let line = r#"{"id":2,"type":"response","command":"hello","success":false,"error":"no","code":"busy","hint":"wait"}"#;
        let DaemonLine::Answer("b", Err(failure)) = calls.read(line) else { panic!("no answer") };
        assert_eq!((with_hint(&failure).as_str(), failure.code), ("no wait", ErrorCode::Busy));
        assert!(calls.is_empty());
    }

    #[test]
    fn other_lines_are_told_apart() {
        let mut calls = DaemonCalls::<()>::default();
        let line = r#"{"type":"agent_settled","aborted":false,"sessionId":"s","seq":4}"#;
        let DaemonLine::Event { session, kind, seq } = calls.read(line) else { panic!("no event") };
        assert_eq!((session.as_str(), kind, seq), ("s", "agent_settled", 4));
        let line = r#"{"type":"response","command":"parse","success":false,"error":"too many","code":"limit_reached"}"#;
        assert!(matches!(calls.read(line), DaemonLine::Unusable(why) if why == "too many"));
        for line in ["", "{", r#"{"type":"agent_settled"}"#, r#"{"type":"response"}"#] {
            assert!(matches!(calls.read(line), DaemonLine::Other), "{line}");
        }
    }
}
