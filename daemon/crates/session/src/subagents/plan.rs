//! What the subagents of a call are made of: their definitions, models, tools and prompts.

use std::{collections::BTreeMap, sync::Arc};

use agentd_config::models::ScopedModel;
use agentd_protocol::{
    ask::ASK_TOOL,
    model::ThinkingLevel,
    settings::{BudgetLimits, TaskSettings},
    subagent::{AGENT_URL, AgentSource, SchemaSource, TASK_TOOL, YIELD_TOOL},
    syntax::AST_GREP_TOOL,
    todo::TODO_TOOL,
};
use tokio_util::sync::CancellationToken;

use super::{
    agents::Agent,
    arguments::{DEFAULT_AGENT, TaskCall, TaskItem},
    facts::ParentFacts,
    files::subagent_folder,
    inbox::Inbox,
    jtd::as_json_schema,
    messages::AgentsOfParent,
    names::new_id,
    table::Subagents,
};
use crate::{
    models::Choice,
    options::{InitialMode, SessionOptions, Target, ToolSelection},
    permissions::PermissionOptions,
    subagent_place::{
        ChildState, HandedIn, OutputSchema, ParentAgents as _, ParentLink, SpawnPolicy, SubagentOptions,
    },
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
    /// Whether its call waits for it even if it does not wait for others.
    pub(super) is_blocking: bool,
    /// The messages of other agents.
    pub(super) inbox: Arc<Inbox>,
    /// Whether its session is there already; if so, whether it is closed first, should it be open: it was opened for another stay of this
    /// session in memory.
    pub(super) reopens: Option<bool>,
    /// What is odd about its definition, for people.
    pub(super) warnings: Vec<String>,
}

/// A subagent whose session is about to be opened.
pub(super) struct PlannedChild<'a> {
    pub(super) id: &'a str,
    pub(super) agent: &'a Agent,
    pub(super) choice: Choice,
    pub(super) state: &'a Arc<ChildState>,
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
        if settings.enable_effort != Some(true) && call.items.iter().any(|item| item.effort.is_some()) {
            return Err("effort: the setting task.enableEffort is not true.".to_owned());
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
            let output = output_schema(Some(item), agent)?;
            let state = ChildState::new(HandedIn::new(output));
            let mut warnings = Vec::new();
            let choice = self.model(agent, item.effort, facts, &mut warnings).await;
            let child = PlannedChild { id: &id, agent, choice, state: &state };
            let options = self.child_options(child, facts, &mut warnings).await?;
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
                options,
                state,
                inbox: Arc::new(Inbox::new(true)),
                reopens: None,
                cancel: cancel.child_token(),
                isolated: item.isolated,
                is_blocking: agent.is_blocking,
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

    /// The options of the session of a subagent.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(super) async fn child_options(
        &self,
        child: PlannedChild<'_>,
        facts: &ParentFacts,
        warnings: &mut Vec<String>,
    ) -> Result<SessionOptions, String> {
        let PlannedChild { id, agent, choice, state } = child;
        let lineage = self.own().map(|own| own.lineage.clone()).unwrap_or_default();
        let agents = AgentsOfParent::of(self);
        let mut prompt = agent_prompt(agent, id, &agents.id());
        for (name, text) in agent.skills.iter().zip(skills_of(agent, facts).await?) {
            match text {
                Some(text) => prompt.push_str(&format!("\n\n{text}")),
                None => warnings.push(format!(
                    "The agent {} begins with the skill {name}, which there is not.",
                    agent.name
                )),
            }
        }
        let subagent = SubagentOptions {
            id: id.to_owned(),
            agent: agent.name.clone(),
            lineage: lineage.into_iter().chain([agent.name.clone()]).collect(),
            spawns: agent.spawns.clone(),
            prompt: Some(prompt),
            state: Arc::clone(state),
            parent: ParentLink {
                budget: Arc::clone(&facts.budget),
                permissions: Arc::clone(&facts.permissions),
                ui: facts.ui.clone(),
                agents: Arc::new(agents),
            },
            of_extension: None,
        };
        Ok(self.session_options(agent, choice, subagent, facts))
    }

    /// The model and the level of a subagent: those of the settings, of its definition, or its parent's.
    pub(super) async fn model(
        &self,
        agent: &Agent,
        effort: Option<ThinkingLevel>,
        facts: &ParentFacts,
        warnings: &mut Vec<String>,
    ) -> Choice {
        let named = facts.settings.agent_model_overrides.get(&agent.name).map(|model| vec![model.clone()]);
        let named = named.unwrap_or_else(|| agent.models.clone());
        let (patterns, unset) = with_roles(&named, &facts.model_roles);
        // Those of agentd name roles that need not be set.
        if !unset.is_empty() && agent.source != AgentSource::Bundled {
            warnings.push(format!(
                "The agent {} asks for the model {}, and the setting modelRoles has no such role.",
                agent.name,
                unset.join(", ")
            ));
        }
        let level = |choice: &Choice, pinned: Option<ThinkingLevel>| {
            let asked =
                effort.or(pinned).or_else(|| agent.thinking.as_deref().and_then(ThinkingLevel::from_name));
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
            syntax: false,
            permissions: PermissionOptions::default(),
            approve: Some(facts.is_trusted),
            budget: BudgetLimits::default(),
            // It plans while its parent does.
            initial_mode: InitialMode::Default,
            subagent: Some(Arc::new(subagent)),
            ..parent.clone()
        }
    }
}

/// Patterns of models with the models of roles in the place of `@role`, and the roles that there are not.
fn with_roles(named: &[String], roles: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
    let (mut patterns, mut unset) = (Vec::new(), Vec::new());
    for pattern in named {
        match pattern.strip_prefix('@') {
            None => patterns.push(pattern.clone()),
            Some(role) => match roles.get(role) {
                Some(model) => patterns.push(model.clone()),
                None => unset.push(pattern.clone()),
            },
        }
    }
    (patterns, unset)
}

/// The instructions of the skills that an agent begins with.
async fn skills_of(agent: &Agent, facts: &ParentFacts) -> Result<Vec<Option<String>>, String> {
    if agent.skills.is_empty() {
        return Ok(Vec::new());
    }
    let (lookup, names) = (Arc::clone(&facts.lookup), agent.skills.clone());
    tokio::task::spawn_blocking(move || lookup.skills(&names)).await.map_err(|error| error.to_string())
}

/// Tools that only look at files, which a definition may name though its parent does without them.
fn is_look(tool: &str) -> bool {
    matches!(tool, "grep" | "find" | "ls" | AST_GREP_TOOL)
}

/// The schema that the result of an agent has to fit; `None` for the item of one that goes on.
pub(super) fn output_schema(item: Option<&TaskItem>, agent: &Agent) -> Result<Option<OutputSchema>, String> {
    let (schema, source) = match (item.and_then(|item| item.output_schema.as_ref()), &agent.output) {
        (Some(schema), _) => (schema.clone(), SchemaSource::Call),
        (None, Some(schema)) => (schema.clone(), SchemaSource::Agent),
        (None, None) => return Ok(None),
    };
    let schema = as_json_schema(&schema).map_err(|error| match source {
        SchemaSource::Call => format!("outputSchema is a JSON Type Definition that cannot be used: {error}."),
        SchemaSource::Agent => format!("The schema of the agent {} cannot be used: {error}.", agent.name),
    })?;
    agentd_agent::ArgumentSchema::try_compile(&schema).map_err(|error| match source {
        SchemaSource::Call => format!("outputSchema cannot be used: {error}"),
        SchemaSource::Agent => format!("The schema of the agent {} cannot be used: {error}", agent.name),
    })?;
    let mode = item.and_then(|item| item.schema_mode).unwrap_or_default();
    Ok(Some(OutputSchema { schema, source, mode }))
}

/// The part of the system prompt about the agent.
fn agent_prompt(agent: &Agent, id: &str, parent: &str) -> String {
    format!(
        "You are {id}, a subagent: the agent {parent} gave you a task, and nobody reads along. Nobody answers questions: decide what you can \
         decide, and say what you assumed. When you are done, call {YIELD_TOOL} with your result; only what it has reaches the agent that \
         asked, so that it must make sense on its own. Other agents may send you messages; a write to {AGENT_URL}ID sends one.\n\n{}",
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
