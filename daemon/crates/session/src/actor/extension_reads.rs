//! What extensions read of the session beyond its mirrors: the system prompt, the context, a branch, the tools.

use std::sync::Arc;

use agentd_agent::{Tool, ToolSet};
use agentd_ai::system_state;
use agentd_extensions::{HostFailure, SessionCall};
use agentd_protocol::error::{ErrorCode, Failure};
use serde_json::{Value, json};

use super::session_actor::Actor;
use crate::{
    context::SessionContext, prompt_options::PromptOptions, run::rendered_prompt,
    tool_registry::RegisteredTool,
};

impl Actor {
    /// Takes a call that reads something that is not in a mirror. Gives back any other.
    pub(super) fn take_read(&mut self, call: SessionCall) -> Option<SessionCall> {
        let outcome = match (call.method.as_str(), call.params["topic"].as_str()) {
            ("read", Some("prompt")) => {
                let state = system_state(self.journal.messages());
                if state.sections.is_empty() {
                    // No run has begun: it is what the first would begin with.
                    self.read_prompt(call, |options| {
                        json!({"etag": "", "value": {"systemPrompt": rendered_prompt(&json!(options))}})
                    });
                    return None;
                }
                Ok(json!({"etag": "", "value": {"systemPrompt": state.prompt()}}))
            }
            ("read", Some("promptOptions")) => {
                self.read_prompt(call, |options| json!({"etag": "", "value": options}));
                return None;
            }
            ("read.promptOptions", _) => {
                self.read_prompt(call, |options| json!(options));
                return None;
            }
            ("read.prompt", _) => Ok(json!(rendered_prompt(&call.params["systemPromptOptions"]))),
            ("read.boundary", _) => self.boundary_preview(&call.params),
            ("read.projection", _) => Ok(self.projection()),
            ("read", Some("projection")) => Ok(json!({"etag": "", "value": self.projection()})),
            ("read.branch", _) => self.branch_to(&call.params),
            ("read", Some("branch")) => {
                self.branch_to(&call.params).map(|entries| json!({"etag": "", "value": entries}))
            }
            ("read", Some("tools")) => Ok(self.tools_for_extension(&call.params)),
            _ => return Some(call),
        };
        self.tell_extensions();
        call.responder.send(&outcome);
        None
    }

    /// Reads the inputs of the system prompt in a task, and answers with what `shown` makes of them.
    fn read_prompt(&mut self, call: SessionCall, shown: fn(&PromptOptions) -> Value) {
        let (context, tools) = (Arc::clone(&self.context), self.tools.current(&self.context.tools));
        let declarable = self.tools.declarable(&self.context.tools);
        self.context.services.tasks.spawn(async move {
            let made = prompt_options(&context, tools, declarable).await;
            let outcome = made.map(|options| shown(&options));
            call.responder.send(&outcome.map_err(|failure| HostFailure::new("failed", failure.error)));
        });
    }

    fn branch_to(&self, params: &Value) -> Result<Value, HostFailure> {
        let tree = self.journal.tree();
        let branch = match params["fromId"].as_str() {
            Some(id) => tree.branch_to(id).map_err(|error| HostFailure::new("invalid", error.to_string()))?,
            None => tree.branch(),
        };
        Ok(branch.into_iter().filter_map(|entry| entry.json().ok()).map(|entry| json!(entry)).collect())
    }

    /// All tools as extensions see them: what clients see, and what their definitions say besides.
    fn tools_for_extension(&self, params: &Value) -> Value {
        let facts = |registered: &RegisteredTool| {
            let tool = &registered.tool;
            let mut shown = json!({
                "name": registered.name(), "description": tool.spec().description,
                "parameters": tool.spec().parameters, "active": registered.active,
                "label": tool.label().unwrap_or(registered.name()), "exposure": tool.exposure().name(),
                "sourceInfo": self.context.extensions.as_ref()
                    .and_then(|extensions| extensions.source_of_tool(registered.name()))
                    .map_or_else(|| source_info(registered), |source| json!(source)),
            });
            let guidelines = tool.guidelines();
            if !guidelines.is_empty() {
                shown["promptGuidelines"] = json!(guidelines);
            }
            if let Some(snippet) = tool.snippet() {
                shown["promptSnippet"] = snippet.into();
            }
            if let Some(annotations) = tool.annotations() {
                shown["annotations"] = json!(annotations);
            }
            if let Some(more) = tool.definition_facts() {
                for (name, value) in more {
                    shown[name] = value.clone();
                }
            }
            shown
        };
        let value = json!(self.tools.all(&self.context.tools).iter().map(facts).collect::<Vec<_>>());
        let now = super::extension_calls::fingerprint(&value);
        if params["etag"].as_str() == Some(&now) {
            json!({"etag": now})
        } else {
            json!({"etag": now, "value": value})
        }
    }
}

/// Where a tool comes from that is of no extension.
fn source_info(registered: &RegisteredTool) -> Value {
    let (source, name) = (registered.owner.source(), registered.name());
    let kind = serde_json::to_value(source).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    let kind = kind.unwrap_or_default();
    json!({"path": format!("<{kind}:{name}>"), "source": kind, "scope": "temporary", "origin": "top-level"})
}

async fn prompt_options(
    context: &Arc<SessionContext>,
    tools: Arc<ToolSet>,
    declarable: Vec<Arc<dyn Tool>>,
) -> Result<PromptOptions, Failure> {
    let directory = context.directory().await?;
    let context = Arc::clone(context);
    let made = tokio::task::spawn_blocking(move || {
        context.prompt_parts(&tools, &directory).map(|parts| PromptOptions::of(&parts, &declarable))
    });
    made.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?
}
