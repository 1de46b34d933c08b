//! Plans which part of a context a compaction summarises, and which it keeps. Pure.

use agentd_ai::system_state;
use agentd_protocol::{
    Json,
    entry::EntryBody,
    message::{Message, MessageContent, SystemMessage},
};
use agentd_store::{Context, Contribution, EntryKind, SessionTree, estimate_tokens};
use serde_json::Value;

use super::{
    cut::{ContextPiece, Cut, cut},
    error::CompactionError,
    files::{FileOperations, with_lists},
    trigger::OverflowRetry,
};

/// The request for a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanRequest {
    /// Tokens at the end of the context that are to stay, about.
    pub(crate) keep_recent: u64,
    /// With it, the failed answer at the end does not count: it is left out of the context before the compaction.
    pub(crate) overflow_retry: Option<OverflowRetry>,
}

/// A compaction that can be done.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The first entry that stays as it is.
    pub(crate) first_kept: String,
    /// The messages to summarise, up to the turn that the cut goes through.
    pub(super) history: Vec<Json<Message>>,
    /// The beginning of that turn; empty when the cut goes through none.
    pub(super) turn_prefix: Vec<Json<Message>>,
    /// The summary of the last compaction, without its lists of files.
    pub(super) previous: Option<String>,
    /// The files that the last compaction lists.
    pub(super) files: FileOperations,
    /// The tokens of the context.
    pub(super) tokens_before: u64,
    /// The whole system state.
    pub(super) system: Option<SystemMessage>,
}

/// Plans a compaction at the leaf. `tokens` is what the context has; `left_out` are the entries of the failed answer that is
/// to be left out of it.
///
/// # Errors
/// [`CompactionError::AlreadyCompacted`], [`CompactionError::NothingToCompact`].
pub(crate) fn plan_compaction(
    tree: &SessionTree,
    context: &Context,
    tokens: u64,
    keep_recent: u64,
    left_out: &[String],
) -> Result<Plan, CompactionError> {
    if tree.leaf().is_some_and(|leaf| leaf.kind() == EntryKind::Compaction) {
        return Err(CompactionError::AlreadyCompacted);
    }
    let mut entries = context.contributions(tree);
    for entry in &mut entries {
        if left_out.iter().any(|id| id == entry.entry.id()) {
            entry.messages = &[];
        }
    }
    let pieces: Vec<ContextPiece> = entries.iter().map(piece).collect();
    let begin = usize::from(pieces.first() == Some(&ContextPiece::Compaction));
    let tokens_of = |at: usize| estimate(entries[at].messages);
    let Cut { first_kept, turn_start } =
        cut(&pieces, begin, keep_recent, tokens_of).ok_or(CompactionError::NothingToCompact)?;
    let conversation = |range: &[Contribution<'_>]| -> Vec<Json<Message>> {
        let counts = range.iter().filter(|entry| entry.entry.kind() != EntryKind::Compaction);
        let messages = counts.flat_map(|entry| entry.messages);
        messages
            .filter(|message| !matches!(message.get(), None | Some(Message::System(_))))
            .cloned()
            .collect()
    };
    let history = conversation(&entries[begin..turn_start.unwrap_or(first_kept)]);
    let turn_prefix = turn_start.map_or_else(Vec::new, |start| conversation(&entries[start..first_kept]));
    if history.is_empty() && turn_prefix.is_empty() {
        return Err(CompactionError::NothingToCompact);
    }
    let (previous, files) = if begin == 1 { previous(&entries[0]) } else { Default::default() };
    let system = system(context.messages());
    let tokens_before = if left_out.is_empty() {
        tokens
    } else {
        let all = entries.iter().flat_map(|entry| entry.messages).filter_map(Json::get);
        let others = all.filter(|message| !matches!(message, Message::System(_))).map(estimate_tokens);
        let system = system.clone().map_or(0, |system| estimate_tokens(&Message::System(system)));
        others.sum::<u64>() + system
    };
    Ok(Plan {
        first_kept: entries[first_kept].entry.id().to_owned(),
        history,
        turn_prefix,
        previous,
        files,
        tokens_before,
        system,
    })
}

fn piece(entry: &Contribution<'_>) -> ContextPiece {
    if entry.entry.kind() == EntryKind::Compaction {
        return ContextPiece::Compaction;
    }
    match entry.messages.first() {
        None if entry.is_omitted() => {
            let message = entry.entry.message().and_then(Json::get);
            ContextPiece::Omitted { is_answer: matches!(message, Some(Message::Assistant(_))) }
        }
        None => ContextPiece::Silent,
        Some(message) => match message.get() {
            Some(Message::Assistant(_)) => ContextPiece::Answer,
            Some(Message::ToolResult(_) | Message::System(_)) | None => ContextPiece::Bound,
            Some(_) => ContextPiece::Starter,
        },
    }
}

fn estimate(messages: &[Json<Message>]) -> u64 {
    messages.iter().filter_map(Json::get).map(estimate_tokens).sum()
}

/// Summary and files of the compaction at the front of a context. Of one that an extension made, only the summary.
fn previous(compaction: &Contribution<'_>) -> (Option<String>, FileOperations) {
    let mut files = FileOperations::default();
    let Some(EntryBody::Compaction { summary, details, from_hook, .. }) = compaction.entry.body() else {
        return (None, files);
    };
    if from_hook != Some(true)
        && let Some(details) = details
    {
        files.add_details(&details);
    }
    // They come again at the end of the new summary.
    let lists = with_lists(String::new(), &files.details());
    let text = summary.strip_suffix(&lists).unwrap_or(&summary);
    (Some(text.to_owned()).filter(|text| !text.is_empty()), files)
}

/// All system messages as one; `None` where there are none.
fn system(messages: &[Json<Message>]) -> Option<SystemMessage> {
    let last = messages.iter().rev().find_map(|message| match message.get() {
        Some(Message::System(system)) => Some(system),
        _ => None,
    })?;
    let state = system_state(messages);
    Some(SystemMessage {
        content: MessageContent::Text(state.content),
        sections: Some(state.sections).filter(|sections| !sections.is_empty()),
        tools_added: Some(state.tools).filter(|tools| !tools.is_empty()),
        timestamp: last.timestamp,
        ..SystemMessage::default()
    })
}

/// The system state as the entry holds it.
pub(super) fn system_value(system: SystemMessage) -> Result<Value, CompactionError> {
    serde_json::to_value(Message::System(system)).map_err(|error| CompactionError::Broken(error.to_string()))
}

#[cfg(test)]
mod tests;
