//! Opening the session of an agent that an extension runs.
//!
//! It is a session below that of the extension: with its budgets, with no wider permissions, with no tools that it does not let in. What else
//! it is like, its model, its prompt and its file among it, the extension says; and its extensions run in the process of that extension, through a
//! channel.

use std::{path::PathBuf, sync::Arc};

use agentd_auth::Secret;
use agentd_config::resources::ResourceFlags;
use agentd_extensions::{CallResponder, ExtensionKind, ExtensionSource, HostFailure};
use agentd_protocol::{
    model::ThinkingLevel,
    resources::SourceInfo,
    settings::BudgetLimits,
    subagent::{AgentSource, SubagentSnapshot, SubagentStatus},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{
    extension_agent::ExtensionAgent, facts::ParentFacts, inbox::Inbox, messages::AgentsOfParent,
    names::new_id, plan::may_start, table::Subagents,
};
use crate::{
    clock::unix_ms,
    options::{InitialMode, SessionMode, SessionOptions, Target, ToolSelection},
    permissions::PermissionOptions,
    subagent_place::{
        ChildState, ExtensionPart, HandedIn, ParentLink, SpawnPolicy, SubagentOptions, overridable,
    },
};

/// The name of agents of extensions, where the name of a definition stands.
const AGENT: &str = "extension";

/// What an extension says of a session that it opens.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentParams {
    /// The number that the host has given the channel.
    channel: u64,
    cwd: PathBuf,
    session: StoredSession,
    #[serde(default)]
    model: Option<NamedModel>,
    #[serde(default)]
    thinking_level: Option<ThinkingLevel>,
    /// Patterns as of `--models`.
    #[serde(default)]
    models: Option<Vec<String>>,
    #[serde(default)]
    tools: Option<Vec<String>>,
    #[serde(default)]
    exclude_tools: Vec<String>,
    /// Without built-in tools.
    #[serde(default)]
    no_builtin_tools: bool,
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    append_system_prompt: Vec<String>,
    #[serde(default)]
    no_context_files: bool,
    #[serde(default)]
    skills: Resources,
    #[serde(default)]
    prompts: Resources,
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default)]
    settings: Map<String, Value>,
    extensions: Vec<NamedExtension>,
}

/// Where the session is kept.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSession {
    /// `None`: in memory.
    #[serde(default)]
    file: Option<PathBuf>,
    /// The id of a new session.
    #[serde(default)]
    id: Option<String>,
    /// The file that a new session comes from.
    #[serde(default)]
    parent: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NamedModel {
    provider: String,
    id: String,
}

/// Files of a kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resources {
    /// Files and folders besides those that are found.
    #[serde(default)]
    paths: Vec<String>,
    /// Whether none is looked for.
    #[serde(default)]
    none: bool,
}

/// An extension of the session, in load order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedExtension {
    path: String,
    /// How the host finds it again.
    entry: PathBuf,
    #[serde(default)]
    base_dir: PathBuf,
    source_info: SourceInfo,
}

/// Opens the session of an agent for an extension, and answers it. Until the returned future ends, the agent is there.
pub(crate) async fn open_agent(subagents: Subagents, params: Value, responder: CallResponder) {
    match open(&subagents, params, &responder).await {
        Ok((agent, opened)) => {
            responder.send(&Ok(opened));
            agent.run().await;
        }
        Err(failure) => responder.send(&Err(failure)),
    }
}

async fn open(
    subagents: &Subagents,
    params: Value,
    responder: &CallResponder,
) -> Result<(ExtensionAgent, Value), HostFailure> {
    let failed = |text: String| HostFailure::new("failed", text);
    let params: AgentParams =
        serde_json::from_value(params).map_err(|error| HostFailure::new("invalid", error.to_string()))?;
    if let Some(name) = params.settings.keys().find(|name| !overridable(name)) {
        let text = format!(
            "The setting {name} cannot be overridden for an agent of an extension: it is that of the files."
        );
        return Err(HostFailure::new("unsupported", text));
    }
    let facts = subagents.facts().await.ok_or_else(|| HostFailure::new("gone", "The session has ended."))?;
    let own = subagents.own();
    if !may_start(own, Some(&facts.settings)) {
        let depth = own.map_or(0, |own| own.lineage.len());
        return Err(failed(format!("Agents at depth {depth} start no others (task.maxRecursionDepth).")));
    }
    let host = facts.hosting.get().cloned();
    let host = host.ok_or_else(|| failed("This program opens no sessions for agents.".to_owned()))?;
    let number = subagents.count();
    let id = new_id(own.map(|own| own.id.as_str()), None, number, |id| subagents.is_known(id));
    let state = ChildState::new(HandedIn::new(None));
    let (channel, notes) = (responder.channel(params.channel), responder.notes());
    let part = ExtensionPart {
        sources: params.extensions.iter().map(source).collect(),
        channel,
        settings: params.settings.clone(),
    };
    let own_place = SubagentOptions {
        id: id.clone(),
        agent: AGENT.to_owned(),
        lineage: own
            .map(|own| own.lineage.clone())
            .unwrap_or_default()
            .into_iter()
            .chain([AGENT.to_owned()])
            .collect(),
        spawns: SpawnPolicy::Any,
        prompt: None,
        state: Arc::clone(&state),
        parent: ParentLink {
            budget: Arc::clone(&facts.budget),
            permissions: Arc::clone(&facts.permissions),
            ui: facts.ui.clone(),
            agents: Arc::new(AgentsOfParent::of(subagents)),
        },
        of_extension: Some(Arc::new(part)),
    };
    let options = subagents.agent_options(params, own_place, &facts);
    let session = host.open(options).await.map_err(failed)?;
    let cancel = subagents.until_closed();
    let snapshot = SubagentSnapshot {
        id: id.clone(),
        index: number,
        agent: AGENT.to_owned(),
        agent_source: AgentSource::Extension,
        // It has nothing to do yet.
        status: SubagentStatus::Completed,
        task: None,
        session_id: Some(session.id().to_owned()),
        session_file: session.file().map(|file| file.display().to_string()),
        last_update: unix_ms(),
        progress: None,
        parent_tool_call_id: None,
        isolated: false,
        error: None,
    };
    let answer = json!({"agent": id, "sessionId": session.id(), "sessionFile": snapshot.session_file});
    let inbox = Arc::new(Inbox::new(false));
    subagents.add(snapshot, Arc::clone(&state), cancel.clone(), true, inbox);
    let (to_agent, requests) = mpsc::unbounded_channel();
    subagents.lead_to_agent(&id, to_agent);
    let agent = ExtensionAgent { id, subagents: subagents.clone(), session, state, notes, cancel, requests };
    Ok((agent, answer))
}

impl Subagents {
    fn agent_options(
        &self,
        params: AgentParams,
        own_place: SubagentOptions,
        facts: &ParentFacts,
    ) -> SessionOptions {
        let parent = self.options();
        let is_same_folder = params.cwd == facts.cwd;
        let StoredSession { file, id, parent: came_from } = params.session;
        let provider = params.model.as_ref().map(|model| model.provider.as_str());
        let key_fits = provider.is_some() && facts.key_provider.as_deref() == provider;
        SessionOptions {
            target: match file {
                Some(path) => Target::File { path, id, parent: came_from },
                None => Target::Ephemeral(id),
            },
            preferred: None,
            session_dir: None,
            name: None,
            provider: params.model.as_ref().map(|model| model.provider.clone()),
            model: params.model.map(|model| model.id),
            models: params.models,
            api_key: params.api_key.map(Secret::new).or_else(|| parent.api_key.clone().filter(|_| key_fits)),
            thinking: params.thinking_level,
            system_prompt: params.system_prompt,
            append_system_prompt: params.append_system_prompt,
            tools: ToolSelection {
                allow: params.tools,
                exclude: params.exclude_tools,
                none: params.no_builtin_tools,
                none_of_clients: true,
                // Never more than the session of the extension has.
                within: Some(Arc::new(parent.tools.clone())),
            },
            todo: false,
            syntax: false,
            task: false,
            web: false,
            no_context_files: params.no_context_files,
            // As in pi: an extension brings what an agent of its own is to have.
            no_mcp: true,
            mcp_servers: Vec::new(),
            additional_directories: match is_same_folder {
                true => parent.additional_directories.clone(),
                false => Vec::new(),
            },
            resources: ResourceFlags {
                skills: params.skills.paths,
                no_skills: params.skills.none,
                prompts: params.prompts.paths,
                no_prompts: params.prompts.none,
                extensions: Vec::new(),
                no_extensions: true,
            },
            extension_flags: Vec::new(),
            permissions: PermissionOptions::default(),
            // Another folder is trusted where the user has said so.
            approve: is_same_folder.then_some(facts.is_trusted),
            budget: BudgetLimits::default(),
            mode: SessionMode::Print,
            subagent: Some(Arc::new(own_place)),
            initial_mode: InitialMode::Default,
            cwd: params.cwd,
            ..parent.clone()
        }
    }
}

fn source(named: &NamedExtension) -> ExtensionSource {
    ExtensionSource {
        path: named.path.clone(),
        entry: named.entry.clone(),
        base_dir: named.base_dir.clone(),
        source_info: named.source_info.clone(),
        kind: ExtensionKind::Node,
    }
}
