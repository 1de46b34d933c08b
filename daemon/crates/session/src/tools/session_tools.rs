//! All tools of a session that is in memory, and those that the model can call.

use std::{sync::Arc, time::Duration};

use agentd_agent::{ExecutionMode, Tool, ToolSet};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    settings::matches_pattern as matches,
    tool_list::{ToolExecution, ToolInfo, ToolSource, ToolState},
};
use tokio::sync::mpsc;

use super::{OwnTools, ToolChoice};
use crate::{
    ToolSelection,
    client_tools::{CallableClientTool, ClientToolRegistry},
    run_message::RunMessage,
};

/// The tools of a session.
pub(crate) struct SessionTools {
    /// Those of clients.
    registry: ClientToolRegistry,
    /// How a client's tool reaches the session.
    to_actor: mpsc::Sender<RunMessage>,
    /// Which of the built-in ones somebody chose; other names in it mean nothing.
    chosen: ToolChoice,
    /// What the model can call, and the version of the registry that it is for.
    current: Option<(u64, Arc<ToolSet>)>,
}

/// A tool of a session, and what is known about it.
struct Listed {
    tool: Arc<dyn Tool>,
    active: bool,
    /// Of a client's tool: who provides it, and how long it may take.
    client: Option<(String, Option<Duration>)>,
}

impl SessionTools {
    pub(crate) fn new(
        registry: ClientToolRegistry,
        to_actor: mpsc::Sender<RunMessage>,
        chosen: ToolChoice,
    ) -> Self {
        Self { registry, to_actor, chosen, current: None }
    }

    /// The tools of clients.
    pub(crate) fn client_tools(&self) -> &ClientToolRegistry {
        &self.registry
    }

    /// What somebody chose.
    pub(crate) fn chosen(&self) -> &ToolChoice {
        &self.chosen
    }

    /// The built-in tools are others now, or are chosen differently.
    pub(crate) fn forget(&mut self) {
        self.current = None;
    }

    /// What the model can call. The same value until something changes.
    pub(crate) fn current(&mut self, own: &OwnTools) -> Arc<ToolSet> {
        if let Some((version, tools)) = &self.current
            && *version == self.registry.version()
        {
            return Arc::clone(tools);
        }
        let (version, listed) = self.listed(own);
        let active = listed.into_iter().filter(|listed| listed.active).map(|listed| listed.tool);
        let tools = Arc::new(ToolSet::new(active));
        self.current = Some((version, Arc::clone(&tools)));
        tools
    }

    /// All tools, as clients see them.
    pub(crate) fn list(&self, own: &OwnTools) -> Vec<ToolInfo> {
        self.listed(own).1.into_iter().map(info).collect()
    }

    /// All tools in short.
    pub(crate) fn states(&self, own: &OwnTools) -> Vec<ToolState> {
        let state = |Listed { tool, active, client }: Listed| ToolState {
            name: tool.spec().name.clone(),
            active,
            source: source(client.as_ref()),
            client: client.map(|(client, _)| client),
        };
        self.listed(own).1.into_iter().map(state).collect()
    }

    /// The names of the active tools.
    pub(crate) fn active(&self, own: &OwnTools) -> Vec<String> {
        let states = self.states(own);
        states.into_iter().filter(|tool| tool.active).map(|tool| tool.name).collect()
    }

    /// The names of a choice, in the order of the tools, each once.
    ///
    /// # Errors
    /// Names those that no tool of the session has, and the tools that there are.
    pub(crate) fn check(&self, own: &OwnTools, wanted: &[String]) -> Result<Vec<String>, Failure> {
        let all: Vec<String> = self.states(own).into_iter().map(|tool| tool.name).collect();
        let unknown: Vec<&String> = wanted.iter().filter(|name| !all.contains(name)).collect();
        if !unknown.is_empty() {
            let quoted = unknown.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            let which = if unknown.len() == 1 { "tool" } else { "tools" };
            let text = format!("Unknown {which} {quoted}; this session has {}.", named(&all));
            let failure = Failure::new(ErrorCode::InvalidField, text);
            return Err(if unknown.iter().any(|name| own.is_built_in(name)) {
                failure.hint(
                    "Flags or settings of the session leave out built-in tools that are not listed here.",
                )
            } else {
                failure
            });
        }
        Ok(all.into_iter().filter(|name| wanted.contains(name)).collect())
    }

    /// The names that flags make active, in the order of the tools. `defaults` are those that are active where nothing is chosen.
    ///
    /// # Errors
    /// As of [`Self::check`]; names that leave tools out may be those of built-in tools that the session does not have.
    pub(crate) fn selected(
        &self,
        own: &OwnTools,
        selection: &ToolSelection,
        defaults: &[String],
    ) -> Result<Vec<String>, Failure> {
        let states = self.states(own);
        let is_there = |pattern: &str| states.iter().any(|tool| matches(pattern, &tool.name));
        let left_out = |pattern: &str| is_there(pattern) || own.names().any(|name| matches(pattern, name));
        let allowed = selection.allow.iter().flatten().map(|item| match item.strip_prefix('-') {
            Some(pattern) => (pattern, left_out(pattern)),
            None => {
                let pattern = item.strip_prefix('+').unwrap_or(item);
                (pattern, is_there(pattern))
            }
        });
        let excluded = selection.exclude.iter().map(|pattern| (pattern.as_str(), left_out(pattern)));
        let unknown = allowed.chain(excluded).filter(|(_, is_known)| !is_known);
        let unknown: Vec<String> = unknown.map(|(pattern, _)| pattern.to_owned()).collect();
        if !unknown.is_empty() {
            self.check(own, &unknown)?;
        }
        let of_own = own.selected(selection, defaults);
        let is_active = |tool: &ToolState| match tool.source {
            ToolSource::Client => {
                selection.permits_of_client(&tool.name) && (tool.active || selection.names(&tool.name))
            }
            _ => of_own.contains(&tool.name.as_str()),
        };
        Ok(states.iter().filter(|tool| is_active(tool)).map(|tool| tool.name.clone()).collect())
    }

    /// Makes exactly these tools active.
    pub(crate) fn choose(&mut self, names: Vec<String>) {
        self.registry.activate(&names);
        self.chosen = Some(names.into());
        self.forget();
    }

    /// All tools, those of clients last, and the version of the registry.
    fn listed(&self, own: &OwnTools) -> (u64, Vec<Listed>) {
        let is_active = |name: &str, by_default: bool| match &self.chosen {
            Some(chosen) => chosen.iter().any(|chosen| chosen == name),
            None => by_default,
        };
        let own = own.iter().map(|own| Listed {
            active: is_active(own.name(), own.by_default),
            tool: Arc::clone(&own.tool),
            client: None,
        });
        let (version, registered) = self.registry.registered();
        let provided = registered.into_iter().map(|registered| Listed {
            active: registered.active,
            client: Some((registered.tool.provider().client().to_owned(), registered.tool.timeout())),
            tool: Arc::new(CallableClientTool { tool: registered.tool, to_actor: self.to_actor.clone() }),
        });
        (version, own.chain(provided).collect())
    }
}

/// Names in a sentence.
pub(crate) fn named(names: &[String]) -> String {
    if names.is_empty() { "no tools".to_owned() } else { names.join(", ") }
}

fn source(client: Option<&(String, Option<Duration>)>) -> ToolSource {
    if client.is_some() { ToolSource::Client } else { ToolSource::Builtin }
}

fn info(Listed { tool, active, client }: Listed) -> ToolInfo {
    let spec = tool.spec();
    let timeout = client.as_ref().and_then(|(_, timeout)| *timeout);
    ToolInfo {
        name: spec.name.clone(),
        label: tool.label().unwrap_or(&spec.name).to_owned(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
        active,
        source: source(client.as_ref()),
        client: client.map(|(client, _)| client),
        snippet: tool.snippet().map(str::to_owned),
        guidelines: tool.guidelines().into_iter().map(str::to_owned).collect(),
        execution: match tool.execution() {
            ExecutionMode::Parallel => ToolExecution::Parallel,
            ExecutionMode::Sequential => ToolExecution::Sequential,
        },
        timeout_ms: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        constrained_sampling: spec.constrained_sampling.clone(),
    }
}
