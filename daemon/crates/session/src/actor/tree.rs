//! The commands about a session's tree: looking at it, labels, copies.

use agentd_protocol::{
    Json,
    command::{ForkMessage, ForkMessages, SetLabelParams, Tree},
    entry::EntryBody,
    error::{ErrorCode, Failure},
};
use agentd_store::{ForkError, ForkPoint, NewSession, SessionTree, copy_branch, fork_messages};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{session_actor::Actor, state::LONG_ANSWER_BYTES};
use crate::{
    clock::now_ms,
    event_log::LongContent,
    messages::{BranchCopy, CopyPoint},
    reply::Reply,
    transcript::model_change,
};

impl Actor {
    pub(super) fn get_tree(&self, reply: Reply) {
        let tree = self.journal.tree();
        if tree.bytes() > LONG_ANSWER_BYTES {
            // Entries share their texts with this copy.
            reply.long(&self.feed, LongContent::Tree(Box::new(tree.clone())));
        } else {
            reply.result(&self.feed, tree_answer(tree));
        }
    }

    pub(super) async fn get_fork_messages(&self, reply: Reply) {
        let tree = self.journal.tree().clone();
        self.answer_list(tree.bytes(), reply, move || {
            let messages = fork_messages(&tree).into_iter();
            let message = |message: agentd_store::ForkMessage| ForkMessage {
                entry_id: message.entry_id,
                text: message.text,
            };
            Ok(ForkMessages { messages: messages.map(message).collect() })
        })
        .await;
    }

    /// Writes the answer here, or, with a list so long that it would keep a thread of the runtime busy, on a blocking
    /// thread. The session waits for it either way: long answers come one at a time.
    async fn answer_list<T: Serialize>(
        &self,
        bytes: usize,
        reply: Reply,
        list: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) {
        let feed = self.feed.clone();
        let answer = move || reply.result(&feed, list());
        if bytes <= LONG_ANSWER_BYTES {
            answer();
        } else if let Err(error) = tokio::task::spawn_blocking(answer).await {
            tracing::error!(%error, "a long answer could not be written");
        }
    }

    pub(super) async fn set_label(&mut self, params: SetLabelParams, reply: Reply) {
        let SetLabelParams { entry_id, label } = params;
        if self.journal.tree().get(&entry_id).is_none() {
            return reply.fail(&self.feed, no_entry(format!("Entry {entry_id} not found")));
        }
        let label = label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        let outcome = self.journal.append(&EntryBody::Label { target_id: entry_id, label }).await;
        reply.outcome(&self.feed, outcome);
    }

    /// Puts on record what the session goes on with, where it went back to an entry at which that was something else.
    pub(super) async fn record_choice(&mut self) {
        if !std::mem::take(&mut self.has_moved) {
            return;
        }
        let choice = self.chooser.in_use();
        let (model, level) = self.journal.choices();
        let is_same =
            model.is_some_and(|at| at.provider == choice.model.provider && at.model_id == choice.model.id);
        let model_body = (!is_same && !choice.model.is_placeholder()).then(|| model_change(&choice.model));
        let level_body = (level.unwrap_or("off") != choice.level.as_str())
            .then(|| EntryBody::ThinkingLevelChange { thinking_level: choice.level.as_str().into() });
        self.record_tools().await;
        for body in [model_body, level_body].into_iter().flatten() {
            if let Err(error) = self.journal.append(&body).await {
                // The run's first message meets the same trouble, and its client is told then.
                tracing::error!(%error, "the model or level of a branch could not be recorded");
            }
        }
    }

    /// A copy of a branch, for a session of its own.
    pub(super) fn copy(&self, point: CopyPoint) -> Result<BranchCopy, Failure> {
        let tree = self.journal.tree();
        let (leaf, text) = match point {
            CopyPoint::Before(entry) => {
                let ForkPoint { text, leaf } = ForkPoint::before(tree, &entry).map_err(not_copied)?;
                (leaf, Some(text))
            }
            CopyPoint::At(entry) => {
                if tree.get(&entry).is_none() {
                    return Err(not_copied(ForkError::InvalidEntry));
                }
                (Some(entry), None)
            }
            CopyPoint::Leaf => {
                let Some(leaf) = tree.leaf_id() else {
                    let text = "Cannot clone session: no current entry selected";
                    return Err(
                        Failure::new(ErrorCode::Unsupported, text).hint("new_session begins an empty one.")
                    );
                };
                (Some(leaf.to_owned()), None)
            }
        };
        if self.journal.is_unsaved() {
            let text = "This session has not been saved yet. Send a message before cloning or forking it.";
            return Err(Failure::new(ErrorCode::Unsupported, text));
        }
        let parent_session = self.journal.file().map(|file| file.display().to_string());
        let new = NewSession { parent_session, ..NewSession::new(tree.header().cwd(), now_ms()) };
        let copy = copy_branch(tree, leaf.as_deref(), new).map_err(not_copied)?;
        Ok(BranchCopy {
            tools: self.tools.chosen().clone(),
            mode: self.mode(),
            tree: Box::new(copy),
            folder: self.journal.file().and_then(|file| file.parent()).map(Into::into),
            artifacts: self.context.artifacts.clone(),
            text,
        })
    }
}

fn tree_answer(tree: &SessionTree) -> Result<Tree, Failure> {
    let text = RawValue::from_string(tree.to_json()).map_err(|error| {
        Failure::new(ErrorCode::Internal, format!("cannot write the session's tree: {error}"))
    })?;
    Ok(Tree { tree: Json::from_raw(text), leaf_id: tree.leaf_id().map(str::to_owned) })
}

pub(super) fn no_entry(text: String) -> Failure {
    Failure::new(ErrorCode::NotFound, text).hint("get_entries and get_tree have the ids of entries.")
}

fn not_copied(error: ForkError) -> Failure {
    match error {
        ForkError::InvalidEntry => Failure::new(ErrorCode::NotFound, error.to_string())
            .hint("get_fork_messages lists the messages that a fork can begin at."),
        ForkError::Unknown(error) => no_entry(error.to_string()),
        ForkError::Store(error) => crate::transcript::store_failure(&error),
    }
}

#[cfg(test)]
mod tests {
    use agentd_store::{NewEntry, Store, StoreOptions};

    use super::*;

    #[test]
    fn a_long_conversation_is_answered_whatever_its_depth() {
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        for _ in 0..20_000 {
            let entry = tree.prepare(NewEntry::session_info("x"), 0);
            tree.push(entry);
        }
        let answer = serde_json::to_string(&tree_answer(&tree).unwrap()).unwrap();
        assert_eq!(answer.matches("\"children\":[").count(), 20_000);
        assert!(
            answer.ends_with(&format!("]}}]}}],\"leafId\":\"{}\"}}", tree.leaf_id().unwrap())),
            "its end"
        );
    }
}
