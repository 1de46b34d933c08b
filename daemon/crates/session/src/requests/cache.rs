//! The keys that a session knows, and what their commands were answered. Pure: no file, no feed.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::Arc,
};

use agentd_protocol::{
    Json,
    command::{Disposition, MAX_REQUEST_KEY_BYTES},
    message::Message,
};
use agentd_store::{Entry as StoredEntry, EntryKind, Role, SessionTree};

/// Answered keys that a session keeps; the oldest is evicted first.
const KEYS: usize = 1000;

/// Repetitions that may wait for commands that still work, in all.
const WAITING: usize = 1000;

/// The entry's field with the key.
pub(crate) const KEY_FIELD: &str = agentd_store::intent_log::REQUEST_KEY_FIELD;

/// The entry's field with what became of the message; absent means that a run started with it.
pub(crate) const DISPOSITION_FIELD: &str = "requestDisposition";

/// The key that a client gives a command.
pub(crate) type RequestKey = Arc<str>;

/// The fields of a user's message entry about its command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRecord {
    pub(crate) key: RequestKey,
    pub(crate) disposition: Disposition,
}

/// The kind of command that a key belongs to. Answers of the two have different shapes, so that one key cannot serve
/// both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandKind {
    /// A message: `prompt`, `steer`, `follow_up`.
    Message,
    /// A `bash` command.
    Bash,
}

/// The answer to the first command of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CachedAnswer {
    /// A message was accepted.
    Accepted(Disposition),
    /// A `bash` command ended; the message that its entry holds, shared with the entry.
    Bash(Json<Message>),
}

impl CachedAnswer {
    fn means(&self) -> CommandKind {
        match self {
            Self::Accepted(_) => CommandKind::Message,
            Self::Bash(_) => CommandKind::Bash,
        }
    }
}

/// The keys of a session. `W` is a waiter for an answer.
#[derive(Debug)]
pub(crate) struct IdempotencyCache<W> {
    /// The most answered keys.
    limit: usize,
    answered: HashMap<RequestKey, CachedAnswer>,
    /// The answered keys, oldest first.
    order: VecDeque<RequestKey>,
    /// Keys whose first command still works. There are as many as there are such commands, whatever the limit.
    working: HashMap<RequestKey, Working<W>>,
    /// Waiters over all of `working`.
    waiting: usize,
}

#[derive(Debug)]
struct Working<W> {
    means: CommandKind,
    waiting: Vec<W>,
}

/// The outcome of looking up a command's key.
#[derive(Debug, PartialEq)]
pub(crate) enum Admission<W> {
    /// The first of that key: it is to be done, and the cache to be told how it was answered.
    First(W),
    /// A repetition whose first still works. Who sent it is kept until that is answered.
    Waits,
    /// A repetition, and its answer.
    Answered(W, CachedAnswer),
    /// The key belongs to a command with another kind of answer.
    OtherKind(W, CommandKind),
    /// So many wait that no more can.
    TooMany(W),
}

impl<W> Default for IdempotencyCache<W> {
    fn default() -> Self {
        Self::with_limit(KEYS)
    }
}

impl<W> IdempotencyCache<W> {
    fn with_limit(limit: usize) -> Self {
        Self { limit, answered: HashMap::new(), order: VecDeque::new(), working: HashMap::new(), waiting: 0 }
    }

    /// The last keys that the entries of a session name, on whatever branch.
    pub(crate) fn of(tree: &SessionTree) -> Self {
        let mut cache = Self::default();
        let mut found = Vec::new();
        for (key, answer) in tree.entries().iter().rev().filter_map(recorded) {
            if found.len() == cache.limit {
                break;
            }
            // Of entries with one key the last counts: the key had been forgotten before.
            if let Entry::Vacant(place) = cache.answered.entry(Arc::clone(&key)) {
                place.insert(answer);
                found.push(key);
            }
        }
        cache.order = found.into_iter().rev().collect();
        cache
    }

    /// Finds out whether a command is a repetition.
    pub(crate) fn admit(&mut self, key: &RequestKey, means: CommandKind, who: W) -> Admission<W> {
        if let Some(answer) = self.answered.get(key) {
            return match answer.means() {
                known if known == means => Admission::Answered(who, answer.clone()),
                other => Admission::OtherKind(who, other),
            };
        }
        match self.working.get_mut(key) {
            Some(working) if working.means != means => Admission::OtherKind(who, working.means),
            Some(_) if self.waiting == WAITING => Admission::TooMany(who),
            Some(working) => {
                working.waiting.push(who);
                self.waiting += 1;
                Admission::Waits
            }
            None => {
                self.working.insert(Arc::clone(key), Working { means, waiting: Vec::new() });
                Admission::First(who)
            }
        }
    }

    /// The first command of a key was answered; gives who waits for the same answer.
    pub(crate) fn answer(&mut self, key: RequestKey, answer: CachedAnswer) -> Vec<W> {
        let waiting = self.refuse(&key);
        if self.answered.insert(Arc::clone(&key), answer).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.answered.remove(&oldest);
        }
        waiting
    }

    /// The first command of a key was refused: the key is as if it had never come. Gives who waits for that answer.
    pub(crate) fn refuse(&mut self, key: &str) -> Vec<W> {
        let waiting = self.working.remove(key).map(|working| working.waiting).unwrap_or_default();
        self.waiting -= waiting.len();
        waiting
    }

    /// Nothing came of a command that was answered: a repetition is to be done.
    pub(crate) fn forget(&mut self, key: &str) {
        if self.answered.remove(key).is_some() {
            self.order.retain(|known| **known != *key);
        }
    }

    /// Gives up all commands that still work, and gives who waits for them.
    pub(crate) fn give_up(&mut self) -> Vec<W> {
        self.waiting = 0;
        self.working.drain().flat_map(|(_, working)| working.waiting).collect()
    }
}

/// The key of the command that caused an entry, and what it was answered.
fn recorded(entry: &StoredEntry) -> Option<(RequestKey, CachedAnswer)> {
    let EntryKind::Message(role @ (Role::User | Role::BashExecution)) = entry.kind() else { return None };
    let key = entry.extra(KEY_FIELD).filter(|key| (1..=MAX_REQUEST_KEY_BYTES).contains(&key.len()))?;
    let answer = if role == Role::BashExecution {
        CachedAnswer::Bash(entry.message()?.clone())
    } else {
        CachedAnswer::Accepted(match entry.extra(DISPOSITION_FIELD).as_deref() {
            Some("queued") => Disposition::Queued,
            _ => Disposition::Started,
        })
    };
    Some((key.into(), answer))
}

#[cfg(test)]
mod tests;
