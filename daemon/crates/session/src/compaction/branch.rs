//! Summaries of branches that the conversation leaves.

use agentd_protocol::{
    Json,
    entry::EntryBody,
    event::SummarizationRetryAttemptStart,
    message::{BranchSummaryMessage, CompactionSummaryMessage, Message},
};
use agentd_store::{Entry, EntryKind, SessionTree, estimate_tokens};

use super::{
    error::CompactionError,
    files::{FileOperations, with_lists},
    summarise::SummarySubject,
    work::{check_model, conversation_prompt, read},
    worker::CompactionWorker,
};
use crate::models::Choice;

const BRANCH: &str = include_str!("prompts/branch.md");

/// The text before every summary of a branch.
const PREAMBLE: &str = "The user explored another branch of this conversation and then came back here.\n\
                        This is a summary of what happened on that branch:";

/// A branch that is to be summarised.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BranchPlan {
    /// The leaf that is left.
    from_id: String,
    messages: Vec<Json<Message>>,
    files: FileOperations,
}

/// What the summary of a branch is to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BranchFocus {
    /// Instructions for the summary.
    pub(crate) instructions: Option<String>,
    /// Whether they take the place of the built-in ones instead of being added.
    pub(crate) replaces: bool,
}

/// The branch that a move of the leaf to `target` (`None`: before the first entry) leaves behind: the messages from
/// where the two paths part to the leaf, the newest up to `budget` tokens. `None` when that is nothing.
pub(crate) fn plan_branch(tree: &SessionTree, target: Option<&str>, budget: u64) -> Option<BranchPlan> {
    let from_id = tree.leaf_id()?.to_owned();
    let stays = target.and_then(|target| tree.branch_to(target).ok()).unwrap_or_default();
    let path = tree.branch();
    let common = path.iter().zip(&stays).take_while(|(one, two)| one.id() == two.id()).count();
    let left = &path[common..];
    let mut files = FileOperations::default();
    left.iter().for_each(|entry| add_details(entry, &mut files));
    let (mut messages, mut sum) = (Vec::new(), 0);
    for entry in left.iter().rev() {
        let Some(message) = message(entry) else { continue };
        let tokens = message.get().map_or(0, estimate_tokens);
        if sum + tokens > budget {
            // A summary stands for much; a little too much of it is better than nothing.
            let is_summary = matches!(entry.kind(), EntryKind::Compaction | EntryKind::BranchSummary);
            if is_summary && sum * 10 < budget * 9 {
                messages.push(message);
            }
            break;
        }
        sum += tokens;
        messages.push(message);
    }
    messages.reverse();
    (!messages.is_empty()).then_some(BranchPlan { from_id, messages, files })
}

/// Summarises a branch: the entry to be added after the leaf has moved.
///
/// # Errors
/// [`CompactionError::NoSummary`], [`CompactionError::NoModel`], [`CompactionError::Cancelled`] when the token of `worker`
/// fires.
pub(super) async fn summarize_branch(
    worker: &CompactionWorker,
    plan: BranchPlan,
    choice: &Choice,
    focus: &BranchFocus,
) -> Result<EntryBody, CompactionError> {
    let BranchPlan { from_id, messages, files } = plan;
    let (text, files) = read(messages, files).await?;
    let instructions = focus.instructions.as_deref();
    let prompt = match instructions.filter(|text| focus.replaces && !text.trim().is_empty()) {
        Some(instead) => conversation_prompt(&text, None, instead, None),
        None => conversation_prompt(&text, None, BRANCH, instructions),
    };
    let source = SummarizationRetryAttemptStart::BranchSummary;
    let summary = worker.summarise(choice, SummarySubject::Branch, &source, prompt).await?;
    let details = files.details();
    let value = serde_json::to_value(&details).map_err(|error| CompactionError::Broken(error.to_string()))?;
    Ok(EntryBody::BranchSummary {
        from_id,
        summary: with_lists(format!("{PREAMBLE}\n\n{}", summary.text), &details),
        details: Some(value),
        usage: Some(summary.usage),
        from_hook: Some(false),
    })
}

/// Adds the files that a summary of ours on the branch lists.
fn add_details(entry: &Entry, files: &mut FileOperations) {
    let (EntryKind::Compaction | EntryKind::BranchSummary) = entry.kind() else { return };
    if let Some(
        EntryBody::Compaction { details: Some(details), from_hook, .. }
        | EntryBody::BranchSummary { details: Some(details), from_hook, .. },
    ) = entry.body()
        && from_hook != Some(true)
    {
        files.add_details(&details);
    }
}

/// An entry as a message. Tool results are left out: the calls stand for them.
fn message(entry: &Entry) -> Option<Json<Message>> {
    let timestamp = entry.timestamp_ms().unwrap_or_default();
    match entry.kind() {
        EntryKind::Message(_) => entry.message().cloned().filter(|message| {
            !matches!(message.get(), None | Some(Message::System(_) | Message::ToolResult(_)))
        }),
        EntryKind::CustomMessage | EntryKind::Compaction | EntryKind::BranchSummary => {
            let message = match entry.body()? {
                EntryBody::CustomMessage { custom_type, content, display, details } => {
                    let custom = agentd_protocol::message::CustomMessage {
                        custom_type,
                        content,
                        display,
                        details,
                        timestamp,
                    };
                    Message::Custom(custom)
                }
                EntryBody::Compaction { summary, tokens_before, .. } => {
                    Message::CompactionSummary(CompactionSummaryMessage { summary, tokens_before, timestamp })
                }
                EntryBody::BranchSummary { summary, from_id, .. } => {
                    Message::BranchSummary(BranchSummaryMessage { summary, from_id, timestamp })
                }
                _ => return None,
            };
            Json::new(message).ok()
        }
        _ => None,
    }
}

pub(crate) async fn summarise_branch(
    worker: &CompactionWorker,
    branch: BranchPlan,
    choice: &Choice,
    focus: &BranchFocus,
) -> Result<EntryBody, CompactionError> {
    check_model(worker, choice).await?;
    let body = summarize_branch(worker, branch, choice, focus).await?;
    if worker.cancel.is_cancelled() { Err(CompactionError::Cancelled) } else { Ok(body) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::testing::{say, tree};

    fn ids(tree: &SessionTree, target: Option<&str>, budget: u64) -> Option<Vec<String>> {
        let plan = plan_branch(tree, target, budget)?;
        let text = |message: &Json<Message>| match message.get() {
            Some(Message::User(user)) => user.content.text(),
            Some(Message::Assistant(answer)) => answer.text(),
            Some(Message::BranchSummary(branch)) => branch.summary.clone(),
            other => panic!("{other:?}"),
        };
        Some(plan.messages.iter().map(text).collect())
    }

    #[test]
    fn what_is_left_is_behind_the_fork() {
        let lines = [
            say("a", "", "user", "1234"),
            say("b", "a", "assistant", "1234"),
            say("c", "b", "user", "left"),
            say("d", "c", "toolResult", "not this"),
            say("e", "d", "assistant", "too"),
        ];
        let mut tree = tree(&lines);
        assert_eq!(ids(&tree, Some("b"), 100), Some(vec!["left".into(), "too".into()]));
        assert_eq!(ids(&tree, None, 100).map(|ids| ids.len()), Some(4));
        assert_eq!(ids(&tree, Some("e"), 100), None);
        assert_eq!(plan_branch(&tree, Some("b"), 100).unwrap().from_id, "e");
        // Moving up and down one path leaves nothing behind.
        tree.set_leaf(Some("b")).unwrap();
        assert_eq!(ids(&tree, Some("e"), 100), None);
        tree.set_leaf(None).unwrap();
        assert_eq!(ids(&tree, Some("e"), 100), None);
    }

    #[test]
    fn the_newest_count_and_a_summary_may_be_a_little_too_much() {
        let summary = |id: &str, parent: &str| {
            format!(
                r#"{{"type":"branch_summary","id":"{id}","parentId":"{parent}","summary":"{}","fromId":"x","details":{{"readFiles":["f"],"modifiedFiles":[]}}}}"#,
                "s".repeat(40)
            )
        };
        let lines = [
            say("a", "", "user", "1234"),
            say("b", "a", "user", "5678"),
            summary("c", "b"),
            say("d", "c", "user", "90"),
        ];
        let tree = tree(&lines);
        assert_eq!(ids(&tree, None, 100).unwrap().len(), 4);
        assert_eq!(ids(&tree, None, 11).unwrap().len(), 2);
        // One token is used of five: the summary of ten is taken. Of one: it is not.
        assert_eq!(ids(&tree, None, 5).unwrap().len(), 2);
        assert_eq!(ids(&tree, None, 1).unwrap(), ["90"]);
        assert_eq!(ids(&tree, None, 0), None);
        // Its files count either way.
        assert_eq!(plan_branch(&tree, None, 1).unwrap().files.details().read_files, ["f"]);
    }
}
