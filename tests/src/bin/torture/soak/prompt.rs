//! Prompts of good clients, and the pool of sessions that they work in.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, TryLockError},
};

use agentd_e2e::Random;
use serde_json::{Value, json};

use crate::{
    peer::{Peer, Trouble, refusal},
    tally::Tally,
};

/// The most prompts of a session, so that sessions have the same average length throughout a run.
const LIFE: u64 = 8;

/// A session of the pool. Only its holder sends prompts.
pub(crate) struct Slot {
    pub(crate) id: String,
    /// Answered prompts: their answers have to be in the file.
    pub(crate) answered: Vec<String>,
    /// The number of remaining prompts.
    pub(crate) left: u64,
}

/// The sessions.
pub(crate) struct Pool {
    slots: Vec<Mutex<Option<Slot>>>,
    /// The ids, for clients that only follow.
    ids: Vec<Mutex<String>>,
    project: PathBuf,
}

impl Pool {
    /// A pool of so many sessions.
    pub(crate) fn new(count: usize, project: &Path) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            ids: (0..count).map(|_| Mutex::default()).collect(),
            project: project.to_owned(),
        }
    }

    /// The folder that sessions work in.
    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Any session without a holder.
    pub(crate) fn take(&self, random: &mut Random) -> (usize, MutexGuard<'_, Option<Slot>>) {
        loop {
            let index = random.index(self.slots.len());
            match self.slots[index].try_lock() {
                Ok(slot) => return (index, slot),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(error)) => return (index, error.into_inner()),
            }
        }
    }

    /// The session at an index; waits while it is held.
    pub(crate) fn at(&self, index: usize) -> MutexGuard<'_, Option<Slot>> {
        self.slots[index].lock().unwrap()
    }

    /// The id of any session, which may be deleted at any time.
    pub(crate) fn any_id(&self, random: &mut Random) -> String {
        random.pick(&self.ids).lock().unwrap().clone()
    }

    /// Replaces the session.
    pub(crate) fn put(&self, index: usize, slot: &mut Option<Slot>, id: &str, random: &mut Random) {
        id.clone_into(&mut self.ids[index].lock().unwrap());
        *slot = Some(Slot { id: id.to_owned(), answered: Vec::new(), left: random.below(1..LIFE) });
    }

    /// Opens a new session in its place.
    pub(crate) fn open(
        &self,
        index: usize,
        slot: &mut Option<Slot>,
        peer: &mut Peer,
        random: &mut Random,
    ) -> Result<(), Trouble> {
        let opened = peer.done(json!({"type": "open_session", "cwd": self.project, "attach": false}))?;
        let id = opened["sessionId"].as_str().unwrap_or_default();
        if id.is_empty() {
            return Err(Trouble::Wrong(format!("open_session answers without an id: {opened}")));
        }
        self.put(index, slot, id, random);
        Ok(())
    }
}

/// Words of a long answer. A debug build of the daemon takes a tenth of a millisecond and more for each.
const LONG: u64 = if cfg!(debug_assertions) { 600 } else { 3_000 };

/// The task of the model.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    id: String,
    text: String,
    /// The prompt ends with a documented error.
    fails: bool,
    /// The model fails at first.
    may_fail: bool,
}

impl Task {
    /// A task of this kind; it fails when the model fails more often than it is asked.
    pub(crate) fn new(kind: &str, number: u64, random: &mut Random) -> Self {
        const TRIES: u64 = 3;
        let id = format!("{:016x}", random.bits());
        let may_pass = matches!(kind, "busy" | "broken" | "cut" | "hang");
        let fails = matches!(kind, "refused" | "garbage") || (may_pass && number >= TRIES);
        Self { text: format!("soak {id} {kind} {number}"), id, fails, may_fail: may_pass }
    }

    /// Any task.
    pub(crate) fn any(random: &mut Random) -> Self {
        let number = random.below(1..5);
        match random.below(0..100) {
            0..=44 => Self::new("text", random.below(1..60), random),
            45..=54 => Self::new("paced", random.below(10..200), random),
            55..=74 => Self::new("tools", 1, random),
            75..=78 => Self::new("busy", number, random),
            79..=82 => Self::new("broken", number, random),
            83..=87 => Self::new("cut", number, random),
            88..=91 => Self::new("hang", number, random),
            92..=95 => Self::new("garbage", number, random),
            96..=97 => Self::new("refused", 1, random),
            _ => Self::new("text", LONG, random),
        }
    }

    /// The words of the prompt.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The end of a prompt's run, as its client saw it.
#[derive(Default)]
struct Seen {
    last_text: String,
    last_error: Option<String>,
    /// A try ended with a timeout, which may happen on a loaded machine.
    was_late: bool,
    was_lagged: bool,
    /// The received lines without updates, for the message of a finding.
    trail: Vec<String>,
}

/// The number of lines in a finding.
const TRAIL: usize = 40;

/// Prompts the session, which the client follows, and waits for the end of the run.
pub(crate) fn run(peer: &mut Peer, slot: &mut Slot, task: &Task, tally: &Tally) -> Result<(), Trouble> {
    let asked = peer.send(json!({"type": "prompt", "message": task.text(), "sessionId": slot.id}))?;
    slot.left = slot.left.saturating_sub(1);
    let mut seen = Seen::default();
    match follow(peer, &slot.id, asked, &mut seen) {
        Err(Trouble::Wrong(text)) => {
            let trail = seen.trail.join(" ");
            return Err(Trouble::Wrong(format!("\"{}\" in {}: {text}, after {trail}", task.text, slot.id)));
        }
        other => other?,
    }
    if seen.was_lagged {
        tally.note("lagged");
        settle(peer, &slot.id)?;
        return Ok(());
    }
    check(slot, task, &seen)?;
    tally.note(if task.fails { "prompt: error as documented" } else { "prompt: answered" });
    Ok(())
}

/// Compares the result with the task.
fn check(slot: &mut Slot, task: &Task, seen: &Seen) -> Result<(), Trouble> {
    let done = format!("done {}", task.id);
    match (&seen.last_error, task.fails) {
        (None, false) if seen.last_text.ends_with(&done) => {
            slot.answered.push(done);
            Ok(())
        }
        (Some(error), true) if !error.is_empty() => Ok(()),
        // A try was lost to the machine, so the model failed too often.
        (Some(_), false) if seen.was_late && task.may_fail => Ok(()),
        (error, _) => Err(Trouble::Wrong(format!(
            "\"{}\" in {} ended with {error:?} and …{:?} after {}",
            task.text,
            slot.id,
            seen.last_text.chars().rev().take(60).collect::<Vec<_>>().iter().rev().collect::<String>(),
            seen.trail.join(" ")
        ))),
    }
}

/// Reads to the end of the prompt's run.
fn follow(peer: &mut Peer, session: &str, asked: u64, seen: &mut Seen) -> Result<(), Trouble> {
    peer.until("agent_settled", |line| {
        let kind = line["type"].as_str().unwrap_or_default();
        if seen.trail.len() < TRAIL && !kind.ends_with("_update") {
            seen.trail.push(format!("{kind}{}", line["message"]["role"].as_str().unwrap_or_default()));
        }
        match kind {
            "response" if line["id"] == asked && line["success"] != true => return Err(refusal(&line)),
            _ if line["sessionId"] != session => {}
            "message_end" if line["message"]["role"] == "assistant" => {
                let message = &line["message"];
                let failed = message["stopReason"] == "error";
                seen.last_error =
                    failed.then(|| message["errorMessage"].as_str().unwrap_or_default().to_owned());
                seen.was_late |= seen.last_error.as_ref().is_some_and(|error| error.contains("timed out"));
                seen.last_text = text_of(message);
            }
            "lagged" => {
                seen.was_lagged = true;
                return Ok(Some(()));
            }
            "agent_settled" => return Ok(Some(())),
            "session_closed" => return Err(Trouble::Wrong(format!("{session} was closed while it worked"))),
            _ => {}
        }
        Ok(None)
    })
}

/// Waits until a session is idle: attaches, and stays to the end of its run.
pub(crate) fn settle(peer: &mut Peer, session: &str) -> Result<(), Trouble> {
    loop {
        let attached = peer.done(json!({"type": "attach_session", "sessionId": session}))?;
        if attached["state"]["isStreaming"] == false {
            return Ok(());
        }
        let ended = peer.until("agent_settled", |line| {
            let of_it = line["sessionId"] == session;
            Ok(match line["type"].as_str().unwrap_or_default() {
                "agent_settled" if of_it => Some(true),
                "lagged" if of_it => Some(false),
                _ => None,
            })
        })?;
        if ended {
            return Ok(());
        }
    }
}

fn text_of(message: &Value) -> String {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
