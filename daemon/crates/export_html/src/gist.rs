//! What a branch or a session is about, in a line.

use agentd_protocol::{entry::EntryBody, message::Message, parse_json, prompt_text::typed_words};
use agentd_store::{Entry, EntryKind, Role, SessionTree};

use crate::{figures::first_line, outline::Outline};

/// How long a line is, in characters.
const LENGTH: usize = 90;

/// How many entries of a branch are looked at.
const LOOKED_AT: usize = 12;

/// What an entry holds. Nothing of it is kept in the tree.
pub(crate) fn body(entry: &Entry) -> Option<EntryBody> {
    match entry.message() {
        Some(message) => {
            message.with_text(|text| parse_json(text).ok()).map(|message| EntryBody::Message { message })
        }
        None => entry.body(),
    }
}

/// The title of a session: its name, else its first prompt.
pub(crate) fn of_session(tree: &SessionTree, outline: &Outline) -> String {
    let path = outline.pieces[..outline.current].iter().flat_map(|piece| &piece.entries);
    let prompts = path.filter_map(|at| tree.entries().get(*at as usize)).filter(|entry| is_prompt(entry));
    let named = tree.name().map(|name| first_line(name, LENGTH));
    let title = named.or_else(|| prompts.take(LOOKED_AT).find_map(said));
    title.unwrap_or_else(|| format!("Session {}", tree.header().id()))
}

/// What a branch that begins with a piece is about: its first prompt, else the first thing that was said.
pub(crate) fn of_branch(tree: &SessionTree, outline: &Outline, piece: usize) -> String {
    let pieces = std::iter::successors(Some(piece), |at| outline.pieces[*at].next);
    let places = pieces.flat_map(|at| &outline.pieces[at].entries);
    let entries: Vec<&Entry> =
        places.filter_map(|at| tree.entries().get(*at as usize)).take(LOOKED_AT).collect();
    let prompt = entries.iter().copied().filter(|entry| is_prompt(entry)).find_map(said);
    let first = prompt.or_else(|| entries.iter().copied().find_map(said));
    first.unwrap_or_else(|| "changes without a message".into())
}

fn is_prompt(entry: &Entry) -> bool {
    entry.kind() == EntryKind::Message(Role::User)
}

fn said(entry: &Entry) -> Option<String> {
    let text = match body(entry)? {
        EntryBody::Message { message: Message::User(user) } => typed_words(&user.content.text()),
        EntryBody::Message { message: Message::Assistant(answer) } => answer.text(),
        EntryBody::Message { message: Message::BashExecution(bash) } => format!("$ {}", bash.command),
        EntryBody::CustomMessage { content, display: true, .. } => content.text(),
        EntryBody::Compaction { summary, .. } | EntryBody::BranchSummary { summary, .. } => summary,
        _ => return None,
    };
    Some(first_line(&text, LENGTH)).filter(|line| !line.is_empty())
}
