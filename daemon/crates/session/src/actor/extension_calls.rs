//! What extensions ask of the session: their calls, each answered once.

use agentd_extensions::{CallResponder, HostFailure, SessionCall};
use agentd_protocol::{
    entry::EntryBody,
    error::Failure,
    event::EntryAppended,
    message::{ContentBlock, CustomMessage, MessageContent},
    model::ThinkingLevel,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{replacement::ReplacingCall, session_actor::Actor};
use crate::{
    clock::now_ms,
    extensions::{EntriesTold, models_topic},
    transcript::store_failure,
};

/// The answer to a call.
type CallResult = Result<Value, HostFailure>;

impl Actor {
    /// Takes a call. Those that take long are answered by tasks.
    pub(super) async fn on_extension_call(&mut self, call: SessionCall) {
        if call.method.starts_with("model.") && call.method != "model.set" {
            return Box::pin(self.on_model_call(call)).await;
        }
        if call.method.starts_with("agents.") {
            return self.on_agent_call(call);
        }
        let call = self.take_tool_call(call).and_then(|call| self.take_read(call));
        let Some(call) = call else { return };
        let SessionCall { method, params, responder, command, .. } = call;
        let is_waited_for = params["wait"] == true;
        let outcome = match method.as_str() {
            "session.waitIdle" => return self.answer_when_idle(responder, Ok(Value::Null)),
            "session.new" | "session.switch" | "session.fork" => {
                let call = ReplacingCall { method, params, responder, command };
                return self.replace_for_extension(call);
            }
            "agent.compact" => return self.compact_for_extension(&params, responder),
            "agent.shutdown" => return self.quit_for_extension(responder),
            "session.reload" => return self.reload_for_extension(responder),
            "session.navigate" => return self.navigate_for_extension(&params, responder).await,
            "read" => self.read_for_extension(&params).await,
            "session.begin" => return self.begin_for_extension(&params, responder),
            "session.fill" => self.fill_for_extension(params).await,
            "session.writeFile" => self.journal.make_file().await.map(|()| Value::Null).map_err(failed),
            "session.appendEntry" => self.append_for_extension(params).await,
            "session.setName" => match params["name"].as_str() {
                Some(name) => self.use_name(name).await.map(|()| Value::Null).map_err(failed),
                None => Err(invalid("name")),
            },
            "session.setLabel" => self.label_for_extension(&params).await,
            "session.sendMessage" => self.send_for_extension(params).await,
            "session.sendUserMessage" => self.send_user_for_extension(&params).await,
            "tools.setActive" => self.activate_for_extension(&params).await,
            "thinking.set" => {
                let level = params["level"].as_str().and_then(ThinkingLevel::from_name);
                let used = self.use_level(level).await;
                used.map(|()| json!(self.chooser.current().level.as_str())).map_err(failed)
            }
            "model.set" => self.set_model_for_extension(&params).await,
            "agent.abort" => {
                self.run.cancel();
                Ok(Value::Null)
            }
            other => Err(HostFailure::new("unsupported", format!("agentd knows no call {other}"))),
        };
        // What it changed is known before its answer.
        self.tell_extensions();
        if is_waited_for && outcome.is_ok() {
            return self.answer_when_idle(responder, outcome);
        }
        responder.send(&outcome);
    }

    /// Answers once nothing works for the session.
    fn answer_when_idle(&mut self, responder: CallResponder, outcome: CallResult) {
        let (done, idle) = oneshot::channel();
        self.when_idle(done);
        self.context.services.tasks.spawn(async move {
            // An error means that the session is gone, and nothing works for it.
            let _ = idle.await;
            responder.send(&outcome);
        });
    }

    async fn append_for_extension(&mut self, params: Value) -> CallResult {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            custom_type: String,
            #[serde(default)]
            data: Option<Value>,
        }
        let Params { custom_type, data } = parsed(params)?;
        self.journal.append(&EntryBody::Custom { custom_type, data }).await.map_err(failed)?;
        let Some(entry) = self.journal.tree().leaf() else { return Ok(Value::Null) };
        let id = json!(entry.id());
        let entry = entry.json().map_err(|error| failed(store_failure(&error)))?;
        self.publish(&EntryAppended { entry }.into());
        Ok(id)
    }

    async fn label_for_extension(&mut self, params: &Value) -> CallResult {
        let target_id = params["entryId"].as_str().ok_or_else(|| invalid("entryId"))?.to_owned();
        if self.journal.tree().get(&target_id).is_none() {
            return Err(HostFailure::new("invalid", format!("Entry {target_id} not found")));
        }
        let label = params["label"].as_str().map(str::to_owned);
        let body = EntryBody::Label { target_id, label };
        self.journal.append(&body).await.map(|()| Value::Null).map_err(failed)
    }

    async fn activate_for_extension(&mut self, params: &Value) -> CallResult {
        let wanted: Vec<String> = params["names"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        self.use_known_tools(&wanted).await.map_err(failed)?;
        Ok(json!(self.tools.active(&self.context.tools)))
    }

    /// Makes the tools of these names active. Unknown ones are ignored, as in pi.
    pub(super) async fn use_known_tools(&mut self, wanted: &[String]) -> Result<(), Failure> {
        let states = self.tools.states(&self.context.tools).into_iter();
        let names: Vec<String> = states.map(|tool| tool.name).filter(|name| wanted.contains(name)).collect();
        self.use_tools(names).await
    }

    async fn set_model_for_extension(&mut self, params: &Value) -> CallResult {
        let (Some(provider), Some(id)) = (params["provider"].as_str(), params["id"].as_str()) else {
            return Err(invalid("provider"));
        };
        let (provider, id) = (provider.to_owned(), id.to_owned());
        let found =
            self.context.with_usable_models(move |models| models.find_available(&provider, &id)).await;
        let Some(model) = found else { return Ok(json!(false)) };
        let pinned = self.chooser.pinned(&model);
        self.use_model(model, pinned).await.map_err(failed)?;
        Ok(json!(true))
    }

    async fn read_for_extension(&mut self, params: &Value) -> CallResult {
        let etag = params["etag"].as_str().unwrap_or_default();
        let value = match params["topic"].as_str().unwrap_or_default() {
            "entries" => {
                let tree = self.journal.tree();
                self.entries_told = Some(EntriesTold {
                    count: tree.entries().len(),
                    leaf: tree.leaf_id().map(str::to_owned),
                });
                return Ok(json!({"etag": "", "value": self.entries_for_extension()}));
            }
            "settings" => json!(self.context.settings),
            "commands" => json!(self.command_list().await.map_err(failed)?),
            "models" => models_topic(&self.context).await,
            "mcp" => json!(self.context.mcp.as_ref().map(|mcp| mcp.list()).unwrap_or_default()),
            "scopedModels" => {
                let scope = self.chooser.scope().iter();
                scope.map(|scoped| json!({"model": &*scoped.model, "thinkingLevel": scoped.level})).collect()
            }
            other => return Err(HostFailure::new("unsupported", format!("agentd has no topic {other}"))),
        };
        let now = fingerprint(&value);
        Ok(if now == etag { json!({"etag": now}) } else { json!({"etag": now, "value": value}) })
    }

    /// The entries, as extensions read them.
    pub(super) fn entries_for_extension(&self) -> Value {
        let tree = self.journal.tree();
        let entries: Vec<_> = tree.entries().iter().filter_map(|entry| entry.json().ok()).collect();
        let header: Value = serde_json::from_str(tree.header().line()).unwrap_or_default();
        json!({"header": header, "entries": entries, "leafId": tree.leaf_id()})
    }

    /// A message of an extension: stored now, queued, or the beginning of a run.
    async fn send_for_extension(&mut self, params: Value) -> CallResult {
        #[derive(Deserialize)]
        struct Params {
            message: Sent,
            #[serde(default)]
            options: Options,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Sent {
            custom_type: String,
            #[serde(default)]
            content: Option<MessageContent>,
            #[serde(default)]
            display: bool,
            #[serde(default)]
            details: Option<Value>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Options {
            #[serde(default)]
            trigger_turn: Option<bool>,
            #[serde(default)]
            deliver_as: Option<String>,
        }
        let Params { message: Sent { custom_type, content, display, details }, options } = parsed(params)?;
        let content = content.unwrap_or_else(|| MessageContent::Blocks(Vec::new()));
        let message = CustomMessage { custom_type, content, display, details, timestamp: now_ms() };
        self.take_custom(message, options.trigger_turn, options.deliver_as.as_deref()).await
    }

    /// A message of an extension in the user's name.
    async fn send_user_for_extension(&mut self, params: &Value) -> CallResult {
        let (text, images) = match &params["content"] {
            Value::String(text) => (text.clone(), Vec::new()),
            blocks => {
                let blocks: Vec<ContentBlock> = parsed(blocks.clone())?;
                let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
                (texts.join("\n"), blocks.iter().filter_map(ContentBlock::as_image).cloned().collect())
            }
        };
        let behavior = match params["options"]["deliverAs"].as_str() {
            Some("steer") => Some(agentd_protocol::command::StreamingBehavior::Steer),
            Some("followUp") => Some(agentd_protocol::command::StreamingBehavior::FollowUp),
            _ => None,
        };
        let expands = params["options"]["expandPromptTemplates"] == true;
        self.take_extension_prompt(text, images, behavior, expands).await
    }
}

/// A text that changes with the value.
pub(super) fn fingerprint(value: &Value) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn parsed<T: for<'a> Deserialize<'a>>(value: Value) -> Result<T, HostFailure> {
    serde_json::from_value(value).map_err(|error| HostFailure::new("invalid", error.to_string()))
}

fn invalid(field: &str) -> HostFailure {
    HostFailure::new("invalid", format!("The parameter {field} is missing or of another type."))
}

fn failed(failure: Failure) -> HostFailure {
    HostFailure::new("failed", failure.error)
}
