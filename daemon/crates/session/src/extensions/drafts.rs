//! Drafts of entries that extensions return at the boundaries of a run. Pure.

use agentd_protocol::{
    entry::{ContextReplacement, EntryBody},
    message::{ContentBlock, Message, MessageContent, Usage},
};
use agentd_store::{Context, Entry, EntryKind, NewEntry, Role, SessionTree};
use serde::Deserialize;
use serde_json::Value;

use crate::system_prompt::whole;

/// A draft of an entry.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Draft {
    Custom {
        custom_type: String,
        #[serde(default)]
        data: Option<Value>,
    },
    CustomMessage {
        custom_type: String,
        content: MessageContent,
        #[serde(default)]
        display: bool,
        #[serde(default)]
        details: Option<Value>,
    },
    ContextEdit {
        target_id: String,
        replacement: Option<ContextReplacement>,
    },
    Compaction {
        summary: String,
        #[serde(default)]
        first_kept_entry_id: Option<String>,
        #[serde(default)]
        details: Option<Value>,
        #[serde(default)]
        usage: Option<Usage>,
    },
}

/// The entries of drafts, each for the tree as the ones before it make it.
///
/// # Errors
/// The first that cannot be used, in pi's words where it has some.
pub(crate) fn drafted(tree: &SessionTree, drafts: &[Value], now_ms: i64) -> Result<Vec<EntryBody>, String> {
    let mut preview = Preview::new(tree);
    drafts.iter().map(|draft| preview.add(draft, now_ms)).collect()
}

/// The tree and its context with drafts in them.
pub(crate) fn with_drafts(
    tree: &SessionTree,
    drafts: &[Value],
    now_ms: i64,
) -> Result<(SessionTree, Context), String> {
    let mut preview = Preview::new(tree);
    for draft in drafts {
        preview.add(draft, now_ms)?;
    }
    let context = Context::new(&preview.tree);
    Ok((preview.tree, context))
}

/// A copy of a tree that grows by drafts: entries are shared with it.
struct Preview {
    tree: SessionTree,
}

impl Preview {
    fn new(tree: &SessionTree) -> Self {
        Self { tree: tree.clone() }
    }

    fn add(&mut self, draft: &Value, now_ms: i64) -> Result<EntryBody, String> {
        let draft = serde_json::from_value(draft.clone()).map_err(|error| error.to_string())?;
        let body = self.body(draft, now_ms)?;
        let entry = NewEntry::from_body(&body).map_err(|error| error.to_string())?;
        let entry = self.tree.prepare(entry, now_ms);
        self.tree.push(entry);
        Ok(body)
    }

    fn body(&self, draft: Draft, now_ms: i64) -> Result<EntryBody, String> {
        Ok(match draft {
            Draft::Custom { custom_type, data } => EntryBody::Custom { custom_type, data },
            Draft::CustomMessage { custom_type, content, display, details } => {
                EntryBody::CustomMessage { custom_type, content, display, details }
            }
            Draft::ContextEdit { target_id, replacement } => {
                let target = self.on_branch(&target_id)?;
                let blocks_only = match target.kind() {
                    EntryKind::CustomMessage | EntryKind::Message(Role::User) => false,
                    EntryKind::Message(Role::Assistant | Role::ToolResult) => true,
                    _ => return Err(format!("Entry {target_id} does not contribute editable model content")),
                };
                let replacement = replacement.map(|ContextReplacement { content }| match content {
                    MessageContent::Text(text) if blocks_only => {
                        ContextReplacement { content: MessageContent::Blocks(vec![ContentBlock::text(text)]) }
                    }
                    content => ContextReplacement { content },
                });
                EntryBody::ContextEdit { target_id, replacement }
            }
            Draft::Compaction { summary, first_kept_entry_id, details, usage } => {
                if let Some(first) = &first_kept_entry_id {
                    self.on_branch(first)?;
                }
                let context = Context::new(&self.tree);
                let messages = context.messages().iter().filter_map(agentd_protocol::Json::get);
                let tokens_before = messages.map(agentd_store::estimate_tokens).sum();
                EntryBody::Compaction {
                    summary,
                    // Empty: the compaction itself, so that nothing before it is kept.
                    first_kept_entry_id: first_kept_entry_id.unwrap_or_default(),
                    tokens_before,
                    details,
                    usage,
                    from_hook: Some(true),
                    system_message: system_message(&context, now_ms),
                }
            }
        })
    }

    fn on_branch(&self, id: &str) -> Result<&Entry, String> {
        let entry = self.tree.get(id).ok_or_else(|| format!("Entry {id} not found"))?;
        if !self.tree.branch().iter().any(|entry| entry.id() == id) {
            return Err(format!("Entry {id} is not on the active branch"));
        }
        Ok(entry)
    }
}

/// The prompt and the tools that the context declares, for the compaction that takes their place.
fn system_message(context: &Context, now_ms: i64) -> Option<Value> {
    let message = Message::System(whole(context.messages(), now_ms));
    serde_json::to_value(message).ok().filter(|_| !context.messages().is_empty())
}
