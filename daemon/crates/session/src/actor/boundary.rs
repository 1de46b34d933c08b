//! The boundaries of a run in the transcript: drafts of extensions become entries, all or none.

use std::collections::HashMap;

use agentd_extensions::HostFailure;
use agentd_protocol::{
    event::EntryAppended,
    message::{ContentBlock, Message, MessageContent, UserMessage},
};
use agentd_store::{Context, EntryKind, SessionTree};
use serde_json::{Value, json};

use super::session_actor::Actor;
use crate::{
    clock::now_ms,
    extensions::{drafted, with_drafts},
    run::BoundaryMessage,
};

impl Actor {
    pub(super) async fn on_boundary(&mut self, message: BoundaryMessage) {
        // Who asks may have left.
        match message {
            BoundaryMessage::Check { drafts, reply } => {
                let checked = drafted(self.journal.tree(), &drafts, now_ms()).map(drop);
                let _ = reply.send(checked);
            }
            BoundaryMessage::Append { drafts, reply } => {
                let _ = reply.send(self.append_drafts(&drafts).await);
            }
            BoundaryMessage::CanContinue { is_last, reply } => {
                let _ = reply.send(self.can_continue(ContextEnd::of(self.journal.context()), is_last));
            }
        }
    }

    async fn append_drafts(&mut self, drafts: &[Value]) -> Result<(), String> {
        // All are checked before any is written.
        for body in drafted(self.journal.tree(), drafts, now_ms())? {
            self.journal.append(&body).await.map_err(|failure| failure.error)?;
            let entry = self.journal.tree().leaf().and_then(|entry| entry.json().ok());
            if let Some(entry) = entry {
                self.publish(&EntryAppended { entry }.into());
            }
        }
        self.tell_extensions();
        Ok(())
    }

    /// Whether a model could be asked with a context that ends so, or with what waits.
    fn can_continue(&self, end: ContextEnd, is_last: bool) -> bool {
        let is_runnable = end.has_conversation && !end.is_answer;
        let waits = self.queues.len() > 0;
        is_runnable || self.custom.messages().next().is_some() || (waits && (!is_last || end.is_answer))
    }

    /// What the context would be with drafts in it: pi's `BoundaryContextPreview` but for what follows from its entries.
    pub(super) fn boundary_preview(&self, params: &Value) -> Result<Value, HostFailure> {
        let none = Vec::new();
        let drafts = params["entries"].as_array().unwrap_or(&none);
        let made = with_drafts(self.journal.tree(), drafts, now_ms());
        let (tree, context) = made.map_err(|error| HostFailure::new("invalid", error))?;
        let queued = self.queues.messages().map(|queued| {
            let images = queued.images.iter().cloned().map(ContentBlock::Image);
            let content = std::iter::once(ContentBlock::text(queued.text.clone())).chain(images).collect();
            let content = MessageContent::Blocks(content);
            json!(Message::User(UserMessage { content, timestamp: now_ms() }))
        });
        let custom = self.custom.messages().map(|message| json!(Message::Custom(message.clone())));
        let pending: Vec<Value> = queued.chain(custom).collect();
        let is_last = params["event"] == "agent_before_settle";
        Ok(json!({
            "contextEntries": projected(&tree, &context), "pendingMessages": pending,
            "canContinue": self.can_continue(ContextEnd::of(&context), is_last),
        }))
    }

    /// The context with the entries that its messages come from, as pi's `buildSessionProjection`.
    pub(super) fn projection(&self) -> Value {
        let (model, level) = self.journal.choices();
        json!({
            "entries": projected(self.journal.tree(), self.journal.context()),
            "messages": self.journal.messages(), "thinkingLevel": level.unwrap_or("off"),
            "model": model.map(|model| json!({"provider": model.provider, "modelId": model.model_id})),
        })
    }
}

/// How a context ends.
#[derive(Clone, Copy)]
struct ContextEnd {
    has_conversation: bool,
    is_answer: bool,
}

impl ContextEnd {
    fn of(context: &Context) -> Self {
        let is_system = |message: &Message| matches!(message, Message::System(_));
        let mut messages = context.messages().iter().rev().filter_map(agentd_protocol::Json::get);
        let last = messages.clone().next();
        Self {
            has_conversation: messages.any(|message| !is_system(message)),
            is_answer: matches!(last, Some(Message::Assistant(_))),
        }
    }
}

/// The entries of a context in its order, each with the messages that it brings in.
fn projected(tree: &SessionTree, context: &Context) -> Vec<Value> {
    let mut by_source: HashMap<&str, Vec<Value>> = HashMap::new();
    for (message, source) in context.messages().iter().zip(context.sources()) {
        by_source.entry(tree.entries()[*source as usize].id()).or_default().push(json!(message));
    }
    let branch = tree.branch();
    let compaction = branch.iter().rposition(|entry| entry.kind() == EntryKind::Compaction);
    let entries: Vec<_> = match compaction {
        Some(at) => {
            let first = branch[at].json().ok().map(|entry| json!(entry)["firstKeptEntryId"].clone());
            let first = first.as_ref().and_then(Value::as_str);
            let from = branch[..at].iter().position(|entry| Some(entry.id()) == first).unwrap_or(at);
            let kept = branch[from..at].iter().chain(&branch[at + 1..]).copied();
            std::iter::once(branch[at]).chain(kept).collect()
        }
        None => branch,
    };
    let shown = entries.into_iter().filter_map(|entry| {
        let messages = by_source.remove(entry.id()).unwrap_or_default();
        entry.json().ok().map(|source| json!({"sourceEntry": source, "messages": messages}))
    });
    shown.collect()
}
