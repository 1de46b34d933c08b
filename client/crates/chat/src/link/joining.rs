//! Joining a session: opening it where need be, its state, and what was said in it.

use std::{collections::VecDeque, path::Path};

use agentd_protocol::{
    command::{NoParams, SetModelParams},
    daemon::{AttachSessionParams, OpenSessionParams},
    event::Event,
};
use agentd_rpc as rpc;
use agentd_rpc::{CallError, Client, EventLine};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::{app::Opened, git};

/// The session to join.
#[derive(Debug, Clone)]
pub(crate) enum ChatTarget {
    /// One that `open_session` names, or a new one.
    Open(Box<OpenSessionParams>),
    /// One that the daemon lists.
    Listed(String),
    /// One that was joined before: it is opened under its id where it has no file yet.
    Again { id: String, open: Box<OpenSessionParams> },
}

/// A session that is followed.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) id: String,
    /// The number of the last event that counts.
    pub(super) seq: u64,
    /// Events that came meanwhile.
    pub(super) early: VecDeque<EventLine>,
}

/// Joins a session, and takes the events that come meanwhile.
///
/// # Errors
/// When the daemon refuses, or ends.
pub(super) async fn join(
    client: &Client,
    events: &mut mpsc::Receiver<EventLine>,
    target: &ChatTarget,
) -> Result<(Joined, Opened), CallError> {
    let mut early = VecDeque::new();
    let joining = enter(client, target);
    tokio::pin!(joining);
    let (id, seq, opened) = loop {
        tokio::select! {
            joined = &mut joining => break joined?,
            Some(event) = events.recv() => early.push_back(event),
        }
    };
    Ok((Joined { id, seq, early }, opened))
}

async fn enter(client: &Client, target: &ChatTarget) -> Result<(String, u64, Opened), CallError> {
    let mut warnings = Vec::new();
    let id = match target {
        ChatTarget::Listed(id) | ChatTarget::Again { id, .. } => id.clone(),
        ChatTarget::Open(params) => {
            let params = OpenSessionParams { attach: Some(false), ..(**params).clone() };
            let opened = client.call::<rpc::OpenSession>(&params).await?;
            warnings = opened.warnings;
            opened.state.session_id
        }
    };
    let attach = AttachSessionParams { session_id: id.clone(), since: None };
    let attached = match (client.call::<rpc::AttachSession>(&attach).await, target) {
        (Err(CallError::Refused { code: Some(code), .. }), ChatTarget::Again { id, open })
            if code == "not_found" =>
        {
            let session_id = Some(id.clone());
            let params = OpenSessionParams {
                session_id,
                path: None,
                continue_last: None,
                attach: Some(false),
                ..(**open).clone()
            };
            warnings = client.call::<rpc::OpenSession>(&params).await?.warnings;
            client.call::<rpc::AttachSession>(&attach).await?
        }
        (attached, _) => attached?,
    };
    let mut state = attached.state;
    let none = NoParams {};
    let mut messages = client.call_in::<rpc::GetMessages>(&id, &none).await?.messages;
    // Messages that came after we attached come again as events.
    messages.truncate(usize::try_from(state.message_count).unwrap_or(usize::MAX));
    let commands = client.call_in::<rpc::GetCommands>(&id, &none).await?.commands;
    let stats = client.call_in::<rpc::GetSessionStats>(&id, &none).await?;
    let mut is_unconfigured = false;
    if state.model.is_placeholder() {
        is_unconfigured = client.call_in::<rpc::GetDiagnostics>(&id, &none).await?.unconfigured;
        if is_unconfigured {
            // Somebody sits at this terminal, and nothing at all is configured: the demo model answers, and says so.
            let demo = SetModelParams { provider: Some("demo".into()), model_id: Some("demo".into()) };
            state.model = client.call_in::<rpc::SetModel>(&id, &demo).await?;
        }
    }
    let branch = state.cwd.as_deref().and_then(|cwd| git::branch(Path::new(cwd)));
    let opened = Opened {
        messages,
        in_flight: attached.in_flight,
        pending_ui: attached.pending_ui,
        warnings,
        commands,
        stats: Some(stats),
        is_unconfigured,
        branch,
        is_again: matches!(target, ChatTarget::Again { .. }),
        state,
    };
    Ok((id, attached.seq, opened))
}

/// What a line of the daemon is to a session that is followed.
#[derive(Debug)]
pub(super) enum Followed {
    Event(Box<Event>),
    /// Events were left out: the session is to be joined again.
    Lagged,
    Closed,
    Other,
}

impl Joined {
    /// Takes a line.
    pub(super) fn take(&mut self, line: &EventLine) -> Followed {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            #[serde(default)]
            session_id: Option<String>,
            #[serde(default)]
            seq: Option<u64>,
        }
        let Ok(head) = serde_json::from_str::<Head>(&line.text) else { return Followed::Other };
        if head.session_id.as_deref() != Some(self.id.as_str()) {
            return Followed::Other;
        }
        match line.kind.as_str() {
            "lagged" => return Followed::Lagged,
            "session_closed" => return Followed::Closed,
            _ => {}
        }
        match head.seq {
            Some(seq) if seq > self.seq => self.seq = seq,
            _ => return Followed::Other,
        }
        line.event().map_or(Followed::Other, |event| Followed::Event(Box::new(event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_count_once_and_for_their_session() {
        let mut joined = Joined { id: "s".into(), seq: 4, early: VecDeque::new() };
        let mut take = |kind: &str, session: &str, seq: u64| {
            let text = format!(r#"{{"type":"{kind}","sessionId":"{session}","seq":{seq},"fromSeq":1}}"#);
            joined.take(&EventLine { kind: kind.into(), text })
        };
        assert!(matches!(take("agent_start", "s", 4), Followed::Other));
        assert!(matches!(take("agent_start", "other", 9), Followed::Other));
        assert!(matches!(take("agent_start", "s", 5), Followed::Event(_)));
        assert!(matches!(take("agent_start", "s", 5), Followed::Other));
        assert!(matches!(take("of_the_future", "s", 6), Followed::Other));
        assert!(matches!(take("lagged", "s", 7), Followed::Lagged));
        assert!(matches!(take("session_closed", "s", 0), Followed::Closed));
    }
}
