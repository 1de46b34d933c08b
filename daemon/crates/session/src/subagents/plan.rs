//! What the subagents of a call are made of: their definitions, models, tools and prompts.

use std::sync::Arc;

use agentd_config::models::ScopedModel;
use agentd_protocol::{
    ask::ASK_TOOL,
    model::ThinkingLevel,
    settings::{BudgetLimits, TaskSettings},
    subagent::{AgentSource, SchemaSource, TASK_TOOL, YIELD_TOOL},
    todo::TODO_TOOL,
};
use tokio_util::sync::CancellationToken;

use super::{
    agents::Agent,
    arguments::{DEFAULT_AGENT, TaskCall, TaskItem},
    facts::ParentFacts,
    files::subagent_folder,
    names::new_id,
    table::Subagents,
};
use crate::{
    models::Choice,
    options::{SessionOptions, Target, ToolSelection},
    permissions::PermissionOptions,
    subagent_place::{ChildState, HandedIn, OutputSchema, ParentLink, SpawnPolicy, SubagentOptions},
};

/// How deep subagents may start subagents, unless a setting says otherwise.
const MAX_DEPTH: i64 = 2;

/// A subagent that is about to be started.
pub(super) struct Plan {
    pub(super) index: u64,
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) source: AgentSource,
    pub(super) task: String,
    /// Its first message.
    pub(super) prompt: String,
    pub(super) options: SessionOptions,
    pub(super) state: Arc<ChildState>,
    /// Fires when it is to be stopped.
    pub(super) cancel: CancellationToken,
    /// Whether it works in a copy of the repository.
    pub(super) isolated: bool,
    /// What is odd about its definition, for people.
    pub(super) warnings: Vec<String>,
}

/// Whether a session may start subagents: how deep it is itself, and what the settings say.
pub(crate) fn may_start(own: Option<&SubagentOptions>, settings: Option<&TaskSettings>) -> bool {
    let depth = own.map_or(0, |own| own.lineage.len()) as i64 + 1;
    let most = settings.and_then(|settings| settings.max_recursion_depth).unwrap_or(MAX_DEPTH);
    (most < 0 || depth <= most) && own.is_none_or(|own| own.spawns != SpawnPolicy::Nobody)
}

impl Subagents {
    /// Plans the subagents of a call, which `cancel` stops.
    ///
    /// # Errors
    /// A sentence for the model; nothing was started.
    pub(super) async fn plan(
        &self,
        call: &TaskCall,
        facts: &ParentFacts,
        cancel: &CancellationToken,
    ) -> Result<Vec<Plan>, String> {
        let own = self.own();
        let settings = &facts.settings;
        if !may_start(own, Some(settings)) {
            let depth = own.map_or(0, |own| own.lineage.len());
            return Err(format!("Subagents at depth {depth} start no others (task.maxRecursionDepth)."));
        }
        if facts.isolation.is_none() && call.items.iter().any(|item| item.isolated) {
            return Err("isolated: the setting task.isolation.enabled is not true.".to_owned());
        }
        let lookup = Arc::clone(&facts.lookup);
        let agents =
            tokio::task::spawn_blocking(move || lookup.agents()).await.map_err(|error| error.to_string())?;
        let policy = own.map_or(SpawnPolicy::Any, |own| own.spawns.clone());
        let mut plans: Vec<Plan> = Vec::with_capacity(call.items.len());
        for item in &call.items {
            let name = item.agent.as_deref().or_else(|| policy.default_agent()).unwrap_or(DEFAULT_AGENT);
            let agent = agents.get(name, &policy)?;
            self.check_lineage(agent)?;
            let number = self.count() + plans.len() as u64;
            let is_taken = |id: &str| self.is_known(id) || plans.iter().any(|plan| plan.id == id);
            let id = new_id(own.map(|own| own.id.as_str()), item.name.as_deref(), number, is_taken);
            let output = output_schema(item, agent)?;
            let state = ChildState::new(HandedIn::new(output));
            let mut warnings = Vec::new();
            let choice = self.model(agent, facts, &mut warnings).await;
            let subagent = SubagentOptions {
                id: id.clone(),
                agent: agent.name.clone(),
                lineage: own
                    .map(|own| own.lineage.clone())
                    .unwrap_or_default()
                    .into_iter()
                    .chain([agent.name.clone()])
                    .collect(),
                spawns: agent.spawns.clone(),
                prompt: agent_prompt(agent, &id),
                state: Arc::clone(&state),
                parent: ParentLink {
                    budget: Arc::clone(&facts.budget),
                    permissions: Arc::clone(&facts.permissions),
                    ui: facts.ui.clone(),
                },
            };
            if !agent.unknown_tools.is_empty() {
                warnings.push(format!(
                    "The agent {} names tools that there are not: {}.",
                    agent.name,
                    agent.unknown_tools.join(", ")
                ));
            }
            plans.push(Plan {
                index: number,
                id,
                agent: agent.name.clone(),
                source: agent.source,
                task: item.task.clone(),
                prompt: prompt(call, item, &state),
                options: self.session_options(agent, choice, subagent, facts),
                state,
                cancel: cancel.child_token(),
                isolated: item.isolated,
                warnings,
            });
        }
        Ok(plans)
    }

    /// An agent works for none of its own kind, except for the general one, whose depth is limited.
    fn check_lineage(&self, agent: &Agent) -> Result<(), String> {
        let Some(own) = self.own().filter(|_| agent.name != DEFAULT_AGENT) else { return Ok(()) };
        if !own.lineage.contains(&agent.name) {
            return Ok(());
        }
        let chain =
            own.lineage.iter().chain([&agent.name]).map(String::as_str).collect::<Vec<_>>().join(" → ");
        Err(format!("Cannot spawn '{}': it would work for an agent of its own kind ({chain}).", agent.name))
    }

    /// The model and the level of a subagent: those of the settings, of its definition, or its parent's.
    async fn model(&self, agent: &Agent, facts: &ParentFacts, warnings: &mut Vec<String>) -> Choice {
        let named = facts.settings.agent_model_overrides.get(&agent.name).map(|model| vec![model.clone()]);
        let patterns = named.unwrap_or_else(|| agent.models.clone());
        let level = |choice: &Choice, pinned: Option<ThinkingLevel>| {
            let asked = pinned.or_else(|| agent.thinking.as_deref().and_then(ThinkingLevel::from_name));
            choice.model.clamp_thinking(Some(asked.unwrap_or(choice.level)))
        };
        let parent = facts.choice.clone();
        if patterns.is_empty() {
            let level = level(&parent, None);
            return Choice { level, ..parent };
        }
        match facts.lookup.first_model(patterns.clone()).await {
            Some(ScopedModel { model, level: pinned }) => {
                let choice = Choice { model, level: parent.level };
                let level = level(&choice, pinned);
                Choice { level, ..choice }
            }
            None => {
                warnings.push(format!(
                    "The agent {} asks for the model {}, which cannot be used; it works with that of its parent.",
                    agent.name,
                    patterns.join(", ")
                ));
                let level = level(&parent, None);
                Choice { level, ..parent }
            }
        }
    }

    /// The options of a subagent's session.
    fn session_options(
        &self,
        agent: &Agent,
        choice: Choice,
        subagent: SubagentOptions,
        facts: &ParentFacts,
    ) -> SessionOptions {
        let parent = self.options();
        let starts_others = may_start(Some(&subagent), Some(&facts.settings));
        let is_left_out = |tool: &str| {
            matches!(tool, TODO_TOOL | ASK_TOOL | YIELD_TOOL) || (tool == TASK_TOOL && !starts_others)
        };
        let mut tools: Vec<String> = match &agent.tools {
            // Never more than its parent has.
            Some(tools) => {
                tools.iter().filter(|tool| facts.active.contains(tool) || is_look(tool)).cloned().collect()
            }
            None => facts.active.clone(),
        };
        tools.retain(|tool| !is_left_out(tool));
        tools.push(YIELD_TOOL.to_owned());
        let key_fits = facts.key_provider.as_deref() == Some(choice.model.provider.as_str());
        SessionOptions {
            cwd: facts.cwd.clone(),
            target: match &facts.session_file {
                Some(file) => Target::Child(file.display().to_string()),
                None => Target::Ephemeral(None),
            },
            preferred: None,
            session_dir: facts.session_file.as_deref().map(subagent_folder),
            name: Some(subagent.id.clone()),
            provider: Some(choice.model.provider.clone()),
            model: Some(choice.model.id.clone()),
            models: None,
            api_key: parent.api_key.clone().filter(|_| key_fits),
            thinking: Some(choice.level),
            tools: ToolSelection { allow: Some(tools), ..parent.tools.clone() },
            todo: false,
            permissions: PermissionOptions::default(),
            approve: Some(facts.is_trusted),
            budget: BudgetLimits::default(),
            subagent: Some(Arc::new(subagent)),
            ..parent.clone()
        }
    }
}

/// Tools that only look at files, which a definition may name though its parent does without them.
fn is_look(tool: &str) -> bool {
    matches!(tool, "grep" | "find" | "ls")
}

fn output_schema(item: &TaskItem, agent: &Agent) -> Result<Option<OutputSchema>, String> {
    let (schema, source) = match (&item.output_schema, &agent.output) {
        (Some(schema), _) => (schema.clone(), SchemaSource::Call),
        (None, Some(schema)) => (schema.clone(), SchemaSource::Agent),
        (None, None) => return Ok(None),
    };
    agentd_agent::ArgumentSchema::try_compile(&schema).map_err(|error| match source {
        SchemaSource::Call => format!("outputSchema cannot be used: {error}"),
        SchemaSource::Agent => format!("The schema of the agent {} cannot be used: {error}", agent.name),
    })?;
    Ok(Some(OutputSchema { schema, source, mode: item.schema_mode.unwrap_or_default() }))
}

/// The part of the system prompt about the agent.
fn agent_prompt(agent: &Agent, id: &str) -> String {
    format!(
        "You are {id}, a subagent: another agent gave you a task, and nobody reads along. Nobody answers questions: decide what you can \
         decide, and say what you assumed. When you are done, call {YIELD_TOOL} with your result; only what it has reaches the agent that \
         asked, so that it must make sense on its own.\n\n{}",
        agent.prompt.trim()
    )
}

/// The first message of a subagent.
fn prompt(call: &TaskCall, item: &TaskItem, state: &ChildState) -> String {
    let mut text = String::new();
    let context = call.context.trim();
    if !context.is_empty() {
        text.push_str(&format!("<context>\n{context}\n</context>\n\n"));
    }
    text.push_str(&format!("<task>\n{}\n</task>", item.task.trim()));
    if let Some(space) = item.solution_space.as_deref().map(str::trim).filter(|space| !space.is_empty()) {
        text.push_str(&format!("\n\nWhere the solution may lie: {space}"));
    }
    if let Some(schema) = state.handed_in.schema() {
        text.push_str(&format!(
            "\n\nThe data that you hand in with {YIELD_TOOL} has to fit this JSON Schema:\n{schema}"
        ));
    }
    text
}
