//! The built-in demo: no language model and no network, but the real loop with the real tools. It looks at the folder,
//! reads one file, and says what it saw; always the same for the same folder.

mod answer;
mod listing;

use agentd_protocol::message::StopReason;
use serde_json::{Value, json};

use self::listing::Listing;
use super::facts::{Facts, result_text};
use crate::{BlockKind, BlockSeal, Delta, Request};

/// Lists the folder: a name a line, folders with a slash.
const LIST_COMMAND: &str = "ls -1Ap";

/// How many lines of the file are asked for.
const READ_LINES: u64 = 40;

/// What the demo does next.
enum Move {
    /// Calls a tool, after saying why.
    Call { why: String, tool: &'static str, arguments: Value },
    /// Says what it saw.
    Answer(String),
}

/// All deltas of the demo's answer to `request`.
pub(super) fn answer(request: &Request) -> Vec<Delta> {
    let facts = Facts::of(request);
    let mut deltas = vec![Delta::Started];
    let (text, call) = match next(&facts) {
        Move::Answer(text) => (text, None),
        Move::Call { why, tool, arguments } => (why, Some((tool, arguments))),
    };
    let mut add = |index: usize, kind: BlockKind, pieces: Vec<String>| {
        deltas.push(Delta::Open { index, kind });
        deltas.extend(pieces.into_iter().map(|delta| Delta::Extend { index, delta }));
        deltas.push(Delta::Seal { index, seal: BlockSeal::default() });
    };
    add(0, BlockKind::Text, text.split_inclusive(' ').map(str::to_owned).collect());
    let stop_reason = match call {
        Some((tool, arguments)) => {
            let id = format!("demo_{}", facts.calls().count() + 1);
            add(1, BlockKind::ToolCall { id, name: tool.into() }, vec![arguments.to_string()]);
            StopReason::ToolUse
        }
        None => StopReason::Stop,
    };
    deltas.push(Delta::Done { stop_reason, raw_stop_reason: None });
    deltas
}

/// Goes on from what the tools have said since the prompt: list, read, answer.
fn next(facts: &Facts<'_>) -> Move {
    let mut results = facts.results();
    let Some(listed) = results.next() else {
        return match list(facts) {
            Some(call) => call,
            None => Move::Answer(answer::without_tools(&facts.prompt())),
        };
    };
    let listing = (!listed.is_error).then(|| Listing::parse(&result_text(listed)));
    let Some(read) = results.next() else {
        return match listing.as_ref().and_then(|listing| read(facts, listing)) {
            Some(call) => call,
            None => Move::Answer(answer::seen(facts, listed, listing.as_ref(), None)),
        };
    };
    Move::Answer(answer::seen(facts, listed, listing.as_ref(), Some(read)))
}

fn list(facts: &Facts<'_>) -> Option<Move> {
    let (tool, arguments) = if facts.offers("bash") {
        ("bash", json!({ "command": LIST_COMMAND }))
    } else if facts.offers("ls") {
        ("ls", json!({ "path": "." }))
    } else {
        return None;
    };
    let why = "I am the built-in demo model of agentd. First I look at what is in this folder.";
    Some(Move::Call { why: why.into(), tool, arguments })
}

fn read(facts: &Facts<'_>, listing: &Listing) -> Option<Move> {
    if !facts.offers("read") {
        return None;
    }
    let was_read = |name: &str| {
        facts.calls().any(|call| call.name == "read" && call.arguments.get("path") == Some(&json!(name)))
    };
    let name = listing.promising().find(|name| !was_read(name)).or_else(|| listing.promising().next())?;
    let why = format!("Now I read the beginning of {name}.");
    Some(Move::Call { why, tool: "read", arguments: json!({ "path": name, "limit": READ_LINES }) })
}

#[cfg(test)]
mod tests;
