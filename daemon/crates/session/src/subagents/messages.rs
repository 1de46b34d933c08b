//! Messages between agents: `write agent://<id>`.

use std::sync::Arc;

use agentd_protocol::{
    message::{CustomMessage, MessageContent},
    subagent::{AGENT_MESSAGE, SubagentSnapshot},
};
use serde_json::json;

use super::{
    inbox::Posted,
    table::{Subagents, WeakSubagents},
};
use crate::{
    clock::now_ms,
    subagent_place::{MAIN_AGENT, ParentAgents, Sent},
};

/// The longest message, in bytes.
const MAX_BYTES: usize = 100_000;

/// The receiver that stands for all.
const ALL: &str = "all";

impl Subagents {
    /// The id of the session's own agent.
    fn own_id(&self) -> String {
        self.own().map_or_else(|| MAIN_AGENT.to_owned(), |own| own.id.clone())
    }

    /// Sends a message to another agent by its id, or to all that are at work.
    ///
    /// # Errors
    /// A sentence for the model: there is no such agent, with those that there are; it cannot take the message.
    pub(super) async fn send(&self, to: &str, text: &str) -> Result<String, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("The message is empty.".to_owned());
        }
        if text.len() > MAX_BYTES {
            let bytes = text.len();
            return Err(format!(
                "The message has {bytes} bytes, and at most {MAX_BYTES} are sent: write it to a file, and name that."
            ));
        }
        self.restored().await;
        let from = self.own_id();
        let beside = self.own().map(|own| Arc::clone(&own.parent.agents));
        if to == ALL {
            return self.send_to_all(&from, beside.as_deref(), text).await;
        }
        if to == from {
            return Err("A message to yourself goes nowhere.".to_owned());
        }
        if self.is_known(to) {
            return self.send_down(to, &from, text, true).await;
        }
        if let Some(beside) = &beside {
            if beside.id() == to {
                return beside.send_up(&from, text).await;
            }
            if beside.list().iter().any(|known| known.id == to) {
                return beside.send_beside(to, &from, text, true).await;
            }
        }
        let mut known: Vec<String> = beside.iter().map(|beside| beside.id()).collect();
        known.extend(beside.iter().flat_map(|beside| beside.list()).map(|known| known.id));
        known.extend(self.list().into_iter().map(|known| known.id));
        known.retain(|id| *id != from);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(format!("Not found: {to}. There are: {known}"))
    }

    async fn send_to_all(
        &self,
        from: &str,
        beside: Option<&dyn ParentAgents>,
        text: &str,
    ) -> Result<String, String> {
        let at_work = |all: Vec<SubagentSnapshot>| {
            let active = all.into_iter().filter(|one| one.status.is_active() && one.id != from);
            active.map(|one| one.id).collect::<Vec<_>>()
        };
        let (mut reached, mut problems) = (Vec::new(), Vec::new());
        let mut note = |id: String, sent: Result<String, String>| match sent {
            Ok(_) => reached.push(id),
            Err(problem) => problems.push(format!("{id}: {problem}")),
        };
        for id in at_work(self.list()) {
            let sent = self.send_down(&id, from, text, false).await;
            note(id, sent);
        }
        if let Some(beside) = beside {
            note(beside.id(), beside.send_up(from, text).await);
            for id in at_work(beside.list()) {
                let sent = beside.send_beside(&id, from, text, false).await;
                note(id, sent);
            }
        }
        let problems = problems.into_iter().map(|problem| format!("\nNot sent to {problem}"));
        let problems: String = problems.collect();
        match reached.as_slice() {
            [] if problems.is_empty() => Err("No other agent is at work.".to_owned()),
            [] => Err(problems.trim_start().to_owned()),
            reached => Ok(format!("Sent to {}.{problems}", reached.join(", "))),
        }
    }

    /// Sends a message to a subagent of this session. One that has ended goes on with it if `revives`.
    async fn send_down(&self, to: &str, from: &str, text: &str, revives: bool) -> Result<String, String> {
        let message = addressed(from, text);
        match self.inbox(to).map(|inbox| inbox.post(message.clone())) {
            Some(Posted::Taken) => Ok(format!("Sent to {to}, which is at work.")),
            Some(Posted::Full) => {
                Err(format!("As many messages wait for {to} as may. Wait until it has read them."))
            }
            Some(Posted::Closed) if revives => self.revive(to, &message).await,
            Some(Posted::Closed) | None => Err(format!("The subagent {to} is not at work any more.")),
        }
    }

    /// Tells this session's own model of a message.
    async fn take_message(&self, from: &str, text: &str) -> Result<String, String> {
        let message = CustomMessage {
            custom_type: AGENT_MESSAGE.to_owned(),
            content: MessageContent::Text(addressed(from, text)),
            display: true,
            details: Some(json!({ "from": from })),
            timestamp: now_ms(),
        };
        if self.tell_message(message).await {
            Ok(format!("Sent to {}.", self.own_id()))
        } else {
            Err("The session that it works for has ended.".to_owned())
        }
    }
}

/// A message with its sender.
fn addressed(from: &str, text: &str) -> String {
    format!("Message from the agent {from}:\n\n{text}")
}

/// The agents above and beside the subagents of a session. Does not keep the session.
pub(super) struct AgentsOfParent(pub(super) WeakSubagents, pub(super) String);

impl AgentsOfParent {
    /// Those of a session's subagents.
    pub(super) fn of(parent: &Subagents) -> Self {
        Self(parent.downgrade(), parent.own_id())
    }
}

fn not_loaded() -> Result<String, String> {
    Err("The session that this agent works for is not in memory.".to_owned())
}

impl ParentAgents for AgentsOfParent {
    fn id(&self) -> String {
        self.1.clone()
    }

    fn list(&self) -> Vec<SubagentSnapshot> {
        self.0.upgrade().map(|parent| parent.list()).unwrap_or_default()
    }

    fn send_up(&self, from: &str, text: &str) -> Sent {
        let (parent, from, text) = (self.0.upgrade(), from.to_owned(), text.to_owned());
        Box::pin(async move {
            match parent {
                Some(parent) => parent.take_message(&from, &text).await,
                None => not_loaded(),
            }
        })
    }

    fn send_beside(&self, to: &str, from: &str, text: &str, revives: bool) -> Sent {
        let (parent, to, from, text) = (self.0.upgrade(), to.to_owned(), from.to_owned(), text.to_owned());
        Box::pin(async move {
            match parent {
                Some(parent) => parent.send_down(&to, &from, &text, revives).await,
                None => not_loaded(),
            }
        })
    }
}
