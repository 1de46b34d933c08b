//! Clients that work: all commands of a session in random order.

use std::{path::Path, sync::atomic::Ordering, thread, time::Duration};

use agentd_e2e::Random;
use serde_json::{Value, json};

use super::prompt::{self, Pool, Slot, Task};
use crate::{
    peer::{Peer, Trouble},
    tally::Tally,
};

/// The tools of a working client.
pub(crate) struct Shift<'a> {
    pub(crate) socket: &'a Path,
    pub(crate) pool: &'a Pool,
    pub(crate) tally: &'a Tally,
    pub(crate) random: Random,
    /// The longest pause between two pieces of work.
    pub(crate) pause: Duration,
}

impl Shift<'_> {
    /// Works until the run is over, on any number of connections.
    pub(crate) fn work(mut self) {
        let mut peer = None;
        while !self.tally.is_over() {
            let result = self.piece(&mut peer);
            if let Err(trouble) = result {
                peer = None;
                self.tell(&trouble);
            }
            self.rest();
        }
    }

    /// Pauses like a person who thinks.
    pub(crate) fn rest(&mut self) {
        let longest = u64::try_from(self.pause.as_millis()).unwrap_or(u64::MAX).max(1);
        thread::sleep(Duration::from_millis(self.random.below(0..longest)));
    }

    /// Counts errors that the protocol allows, and reports others.
    pub(crate) fn tell(&self, trouble: &Trouble) {
        match trouble {
            Trouble::Refused(code, text) => match &**code {
                "internal" | "parse" | "unknown_command" | "invalid_field" | "session_locked"
                | "too_large" => {
                    self.tally.find(&trouble.to_string());
                }
                // The session was deleted by another client, closed before it had a file, or has nothing for this command.
                "session_not_found" | "no_session" | "busy" | "unsupported" | "not_found" | "aborted"
                | "model_failed" | "forbidden" => self.tally.note(&format!("refused: {code}")),
                _ => self.tally.find(&format!("{code}: {text}")),
            },
            other => self.tally.find(&other.to_string()),
        }
    }

    fn piece(&mut self, connection: &mut Option<Peer>) -> Result<(), Trouble> {
        // A new connection now and then.
        if self.random.chance(2) {
            *connection = None;
        }
        if connection.is_none() {
            *connection = Some(Peer::counting(self.socket)?);
        }
        let Some(peer) = connection else { return Ok(()) };
        let (index, mut held) = self.pool.take(&mut self.random);
        if held.is_none() {
            self.pool.open(index, &mut held, peer, &mut self.random)?;
        }
        let Some(slot) = held.as_mut() else { return Ok(()) };
        let attached = match peer.done(json!({"type": "attach_session", "sessionId": slot.id})) {
            Err(Trouble::Refused(code, _)) if code == "session_not_found" && slot.answered.is_empty() => {
                // It was closed without messages, so it has no file.
                self.tally.note("closed before anything was said");
                *held = None;
                return Ok(());
            }
            other => other?,
        };
        if attached["state"]["isStreaming"] == true {
            // A client died in the middle of its run.
            self.tally.note("abort of another's run");
            peer.done(json!({"type": "abort", "sessionId": slot.id}))?;
        }
        if slot.left == 0 || self.random.chance(1) {
            let id = slot.id.clone();
            *held = None;
            self.replace(peer, &id)?;
            return self.pool.open(index, &mut held, peer, &mut self.random);
        }
        for _ in 0..self.random.below(1..4) {
            self.act(peer, slot)?;
        }
        let id = slot.id.clone();
        match self.random.below(0..20) {
            0 => {
                peer.done(json!({"type": "close_session", "sessionId": id}))?;
                self.tally.note("close_session");
            }
            1 => {
                let new = self.copy(slot)?;
                if let Some(new) = new {
                    *held = None;
                    self.replace(peer, &id)?;
                    self.pool.put(index, &mut held, &new, &mut self.random);
                }
            }
            _ => drop(peer.done(json!({"type": "detach_session", "sessionId": id}))?),
        }
        Ok(())
    }

    /// Closes and deletes a session that has lived long enough.
    fn replace(&mut self, peer: &mut Peer, id: &str) -> Result<(), Trouble> {
        peer.done(json!({"type": "close_session", "sessionId": id, "mode": "abort"}))?;
        match peer.done(json!({"type": "delete_session", "sessionId": id})) {
            // Another client follows it again, or it never had a file.
            Err(Trouble::Refused(code, _))
                if ["busy", "session_locked", "session_not_found"].contains(&&*code) =>
            {
                self.tally.note("delete_session: refused");
            }
            other => drop(other?),
        }
        self.tally.note("delete_session");
        Ok(())
    }

    /// Forks or clones over a connection of its own, and returns the new session's id.
    fn copy(&mut self, slot: &Slot) -> Result<Option<String>, Trouble> {
        let mut peer = Peer::counting(self.socket)?;
        peer.done(json!({"type": "attach_session", "sessionId": slot.id}))?;
        let command = if self.random.chance(50) {
            json!({"type": "clone"})
        } else {
            let messages = peer.done(json!({"type": "get_fork_messages"}))?["messages"].take();
            let Some(messages) = messages.as_array().filter(|messages| !messages.is_empty()) else {
                return Ok(None);
            };
            json!({"type": "fork", "entryId": self.random.pick(messages)["entryId"]})
        };
        let name = command["type"].as_str().unwrap_or_default().to_owned();
        peer.done(command)?;
        let state = peer.done(json!({"type": "get_state"}))?;
        self.tally.note(&name);
        Ok(state["sessionId"].as_str().filter(|id| *id != slot.id).map(str::to_owned))
    }

    /// Does one thing in a session.
    fn act(&mut self, peer: &mut Peer, slot: &mut Slot) -> Result<(), Trouble> {
        let id = slot.id.clone();
        let ask = |kind: &str| json!({"type": kind, "sessionId": id});
        let kind = match self.random.below(0..100) {
            0..=44 => {
                prompt::run(peer, slot, &Task::any(&mut self.random), self.tally)?;
                self.tally.prompts.fetch_add(1, Ordering::Relaxed);
                "prompt"
            }
            45..=49 => return self.abort_in_the_middle(peer, slot),
            50..=53 => return self.steer(peer, slot),
            54..=58 => {
                let out =
                    peer.done(json!({"type": "bash", "command": "echo a; echo b >&2", "sessionId": id}))?;
                if !out["output"].as_str().is_some_and(|text| text.contains("a\n")) {
                    return Err(Trouble::Wrong(format!("bash answers {out}")));
                }
                "bash"
            }
            59..=60 => return self.refusable(peer, ask("compact")),
            61..=63 => return self.navigate(peer, &id),
            64..=67 => {
                let name = format!("session {}", self.random.below(0..1000));
                self.done(peer, json!({"type": "set_session_name", "name": name, "sessionId": id}))?;
                "set_session_name"
            }
            68 => {
                let file = self.pool.project().join(format!("{}.html", self.random.bits()));
                let export = json!({"type": "export_html", "outputPath": file, "sessionId": id});
                let result = self.refusable(peer, export);
                // The file is missing if the session has nothing to export.
                let _ = std::fs::remove_file(file);
                return result;
            }
            69..=70 => {
                self.done(peer, json!({"type": "list_sessions", "limit": 50}))?;
                "list_sessions"
            }
            71 => {
                self.done(peer, json!({"type": "list_sessions", "limit": 20, "search": "done"}))?;
                "list_sessions with a search"
            }
            72 => {
                self.done(
                    peer,
                    json!({"type": "open_session", "cwd": self.pool.project(), "ephemeral": true}),
                )?;
                let asked = Task::new("text", 3, &mut self.random);
                let state = self.done(peer, json!({"type": "get_state"}))?;
                let mut own = Slot {
                    id: state["sessionId"].as_str().unwrap_or_default().to_owned(),
                    answered: Vec::new(),
                    left: 1,
                };
                prompt::run(peer, &mut own, &asked, self.tally)?;
                self.done(peer, json!({"type": "close_session", "sessionId": own.id}))?;
                "ephemeral session"
            }
            number => {
                // `get_tree` is left out: its response nests as deep as a conversation is long, deeper than this program
                // reads JSON.
                const LOOKS: [&str; 12] = [
                    "get_state",
                    "get_messages",
                    "get_entries",
                    "get_fork_messages",
                    "get_session_stats",
                    "get_tools",
                    "get_diagnostics",
                    "get_commands",
                    "get_last_assistant_text",
                    "list_artifacts",
                    "get_available_models",
                    "list_processes",
                ];
                let kind = LOOKS[usize::try_from(number).unwrap_or(0) % LOOKS.len()];
                self.done(peer, ask(kind))?;
                kind
            }
        };
        self.tally.note(kind);
        self.tally.commands.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn done(&self, peer: &mut Peer, command: Value) -> Result<Value, Trouble> {
        let data = peer.done(command)?;
        self.tally.commands.fetch_add(1, Ordering::Relaxed);
        Ok(data)
    }

    /// Sends a command that may be refused in this state; it is answered in any case.
    fn refusable(&self, peer: &mut Peer, command: Value) -> Result<(), Trouble> {
        let kind = command["type"].as_str().unwrap_or_default().to_owned();
        match self.done(peer, command) {
            Ok(_) => self.tally.note(&kind),
            Err(refused @ Trouble::Refused(..)) => self.tell(&refused),
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn abort_in_the_middle(&mut self, peer: &mut Peer, slot: &mut Slot) -> Result<(), Trouble> {
        let task = Task::new("paced", 30_000, &mut self.random);
        let asked = peer.send(json!({"type": "prompt", "message": task.text(), "sessionId": slot.id}))?;
        slot.left = slot.left.saturating_sub(1);
        let mut words = self.random.below(0..30);
        peer.until("words to abort", |line| {
            if line["type"] == "response" && line["id"] == asked && line["success"] != true {
                return Err(crate::peer::refusal(&line));
            }
            let is_word = line["type"] == "message_update" && line["sessionId"] == slot.id;
            words = words.saturating_sub(u64::from(is_word));
            Ok((words == 0 && is_word || line["type"] == "lagged").then_some(()))
        })?;
        self.done(peer, json!({"type": "abort", "sessionId": slot.id}))?;
        let state = self.done(peer, json!({"type": "get_state", "sessionId": slot.id}))?;
        if state["isStreaming"] != false {
            return Err(Trouble::Wrong(format!("after abort {} still streams", slot.id)));
        }
        self.tally.note("abort");
        Ok(())
    }

    /// Queues a message for the next turn and one for the end.
    fn steer(&mut self, peer: &mut Peer, slot: &mut Slot) -> Result<(), Trouble> {
        let task = Task::new("paced", 100, &mut self.random);
        let last = Task::new("text", 5, &mut self.random);
        peer.done(json!({"type": "prompt", "message": task.text(), "sessionId": slot.id}))?;
        slot.left = slot.left.saturating_sub(1);
        peer.done(json!({"type": "steer", "message": "soak 0 text 2", "sessionId": slot.id}))?;
        self.refusable(peer, json!({"type": "follow_up", "message": last.text(), "sessionId": slot.id}))?;
        // The run may have settled before: then they wait for the next prompt.
        prompt::settle(peer, &slot.id)?;
        self.done(peer, json!({"type": "clear_queue", "sessionId": slot.id}))?;
        self.tally.note("steer");
        Ok(())
    }

    fn navigate(&mut self, peer: &mut Peer, id: &str) -> Result<(), Trouble> {
        let messages =
            self.done(peer, json!({"type": "get_fork_messages", "sessionId": id}))?["messages"].take();
        let Some(messages) = messages.as_array().filter(|messages| !messages.is_empty()) else {
            return Ok(());
        };
        let entry = self.random.pick(messages)["entryId"].clone();
        let summarize = self.random.chance(20);
        let go = json!({"type": "navigate_tree", "entryId": entry, "summarize": summarize, "sessionId": id});
        self.refusable(peer, go)?;
        self.refusable(peer, json!({"type": "set_label", "entryId": entry, "label": "here", "sessionId": id}))
    }
}
