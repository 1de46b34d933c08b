//! Opening a session that is open already. What is asked for and differs is applied, as if the commands for that had been sent,
//! or refused: a wish for less power must not be dropped without a word.

use std::{path::Path, sync::Arc};

use agentd_config::{
    Environment,
    models::{StartupChoice, StartupRequest, UsableModels, choose_startup},
    resolve_path, trust_subjects,
};
use agentd_protocol::{
    agent_mode::AgentMode,
    error::{ErrorCode, Failure},
    model::{Model, ThinkingLevel},
};
use agentd_store::looks_like_path;

use super::{
    session_actor::{Actor, shutting_down},
    state::checked_name,
};
use crate::{
    child_environment::{ChildEnvironment, ChildSources, child_environment},
    context::SessionContext,
    messages::ReopenError,
    open::same_folder,
    options::{InitialMode, SessionOptions, Target, ToolSelection, default_tools},
    plan::ModeChange,
    requests::PendingRequest,
};

/// The model and level that somebody asks for.
#[derive(Default)]
struct AskedChoice {
    model: Option<Arc<Model>>,
    level: Option<ThinkingLevel>,
    warnings: Vec<String>,
}

impl Actor {
    /// Makes the session match `asked`. Returns warnings for the client.
    ///
    /// # Errors
    /// [`ReopenError`]; everything is checked before anything is changed.
    pub(super) async fn reopen(
        &mut self,
        asked: SessionOptions,
        if_idle: bool,
    ) -> Result<Vec<String>, ReopenError> {
        if self.closing {
            return Err(shutting_down().into());
        }
        if if_idle && self.run.is_active() {
            let text = format!("The session {} is at work for another client.", self.context.session_id);
            let failure = Failure::new(ErrorCode::Busy, text);
            return Err(failure
                .hint("attach_session joins it; without ifIdle it is opened all the same.")
                .into());
        }
        self.refresh_models().await;
        let name = asked.name.as_deref().map(checked_name).transpose()?.map(str::to_owned);
        let tools = self.asked_tools(&asked)?;
        let plans = asked.initial_mode != InitialMode::Default && self.mode() != AgentMode::Plan;
        if plans {
            self.check_plan_mode()?;
        }
        let asked = Arc::new(asked);
        let AskedChoice { model, level, mut warnings } = self.asked_choice(&asked).await?;
        warnings.extend(self.servers_not_added(&asked));
        warnings.extend(self.folders_not_added(&asked));
        let differs = self.differences(&asked, model.as_deref()).await?;
        if !differs.is_empty() {
            return Err(ReopenError::Differs(differs));
        }
        if let Some(name) = name.filter(|name| self.journal.name().as_ref() != Some(name)) {
            self.use_name(&name).await?;
        }
        if let Some(model) = model.filter(|model| !self.is_current(model)) {
            let pinned = self.chooser.pinned(&model);
            self.use_model(model, pinned).await?;
        }
        if level.is_some() {
            self.use_level(level).await?;
        }
        if let Some(tools) = tools {
            self.use_tools(tools).await?;
        }
        if plans {
            self.use_mode(ModeChange::to(AgentMode::Plan)).await?;
        }
        Ok(warnings)
    }

    /// Says which of the client's MCP servers an open session does not get.
    fn servers_not_added(&self, asked: &SessionOptions) -> Option<String> {
        let has = &self.trust.options().mcp_servers;
        let missing: Vec<&str> = asked
            .mcp_servers
            .iter()
            .filter(|server| !has.contains(server))
            .map(|server| server.name.as_str())
            .collect();
        let names = missing.join(", ");
        (!missing.is_empty())
            .then(|| format!("The session is open already, and so these MCP servers were not added: {names}"))
    }

    /// Says which of the client's folders an open session does not get.
    fn folders_not_added(&self, asked: &SessionOptions) -> Option<String> {
        let has = &self.trust.options().additional_directories;
        let missing: Vec<String> = asked
            .additional_directories
            .iter()
            .filter(|folder| !has.contains(folder))
            .map(|folder| folder.display().to_string())
            .collect();
        let names = missing.join(", ");
        (!missing.is_empty()).then(|| {
            format!("The session is open already, and so these additional folders were not added: {names}")
        })
    }

    fn is_current(&self, model: &Model) -> bool {
        let current = self.chooser.current().model;
        (&current.provider, &current.id) == (&model.provider, &model.id)
    }

    /// The names of the tools that are to be active; `None` where nothing is asked.
    fn asked_tools(&self, asked: &SessionOptions) -> Result<Option<Vec<String>>, Failure> {
        if asked.tools == ToolSelection::default() {
            return Ok(None);
        }
        let defaults = default_tools(&self.context.settings, asked.into());
        self.tools.selected(&self.context.tools, &asked.tools, &defaults).map(Some)
    }

    async fn asked_choice(&self, asked: &Arc<SessionOptions>) -> Result<AskedChoice, Failure> {
        if asked.model.is_none() && asked.provider.is_none() {
            return Ok(AskedChoice { level: asked.thinking, ..AskedChoice::default() });
        }
        let (context, asked) = (Arc::clone(&self.context), Arc::clone(asked));
        let look = move |usable_models: &UsableModels<'_>| {
            let request = StartupRequest {
                provider: asked.provider.as_deref(),
                model: asked.model.as_deref(),
                thinking: asked.thinking,
                scope: &[],
                session: None,
                settings: &context.settings,
            };
            let no_model = |text: String| Failure::new(ErrorCode::NoModel, text);
            let chosen = choose_startup(usable_models, &request).map_err(|error| no_model(error.to_string()));
            Some(chosen.map(|chosen| ((usable_models.has_auth)(&chosen.model.provider), chosen)))
        };
        let looked = self.context.with_usable_models(look).await;
        let internal = || Failure::new(ErrorCode::Internal, "The models could not be looked at.");
        let (has_key, StartupChoice { model, level, level_is_asked, warnings }) =
            looked.ok_or_else(internal)??;
        if !has_key && !self.is_current(&model) {
            let (provider, id) = (&model.provider, &model.id);
            let text = format!("Model {provider}/{id} cannot be used: there is no key for {provider}.");
            let hint = format!("`agentctl login {provider}` stores one.");
            return Err(Failure::new(ErrorCode::NoModel, text).hint(hint));
        }
        Ok(AskedChoice { model: Some(model), level: level_is_asked.then_some(level), warnings })
    }

    /// The flags that ask for what the session is open without.
    async fn differences(
        &self,
        asked: &Arc<SessionOptions>,
        model: Option<&Model>,
    ) -> Result<Vec<&'static str>, Failure> {
        let key_provider = self.context.key_provider.as_deref();
        let other_key = model.is_some_and(|model| key_provider != Some(model.provider.as_str()));
        let (context, has, asked) =
            (Arc::clone(&self.context), Arc::clone(self.trust.options()), Arc::clone(asked));
        let compared = tokio::task::spawn_blocking(move || differences(&context, &has, &asked, other_key));
        compared.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
    }

    /// The environment of what a command starts; `None` for the session's own.
    pub(super) fn environment_of(&self, asked: Option<&PendingRequest>) -> Option<ChildEnvironment> {
        let environment =
            asked?.environment().filter(|environment| **environment != self.context.environment)?;
        Some(self.children_in(environment))
    }

    fn children_in(&self, environment: &Environment) -> ChildEnvironment {
        let context = &self.context;
        context.services.child_environments.intern(child_environment(&ChildSources {
            environment,
            keys: &context.auth.key_variables(),
            settings: context.settings.child_environment.as_ref(),
            agent_dir: context.agent_dir.path(),
            compat: self.trust.options().compat,
        }))
    }
}

/// Compares what a session `has` been opened with to what is `asked` for. What is not asked for is no difference. Looks at
/// folders; blocks.
fn differences(
    context: &SessionContext,
    has: &SessionOptions,
    asked: &SessionOptions,
    other_key: bool,
) -> Vec<&'static str> {
    // Each field is named: a new one is not forgotten here.
    let SessionOptions {
        cwd,
        target,
        session_dir,
        models,
        fallback_models,
        api_key,
        system_prompt,
        append_system_prompt,
        ssh,
        no_context_files,
        no_mcp,
        extension_flags,
        mcp_on_demand,
        resources,
        undo,
        approve,
        budget,
        permissions,
        sandbox,
        // It says what a session begins with.
        todo: _,
        syntax: _,
        task: _,
        async_jobs: _,
        lsp: _,
        web: _,
        // These are applied.
        name: _,
        provider: _,
        model: _,
        thinking: _,
        tools: _,
        initial_mode: _,
        // It says which session.
        preferred: _,
        // It is kept for what this client starts.
        environment: _,
        // The client is told of those that the session does not have.
        additional_directories: _,
        mcp_servers: _,
        mode,
        // The daemon's.
        compat: _,
        // No client can ask for it.
        subagent: _,
    } = asked;
    let is_kept = context.session_file.is_some();
    let is_elsewhere = !names_a_file(target) && !same_folder(cwd, &context.cwd);
    let fallbacks = context.fallbacks.names();
    let scope = has.models.as_ref().or(context.settings.enabled_models.as_ref());
    let in_folder = |dir: &Path| {
        let file = context.session_file.as_deref().and_then(Path::parent);
        let dir = resolve_path(&dir.to_string_lossy(), cwd, &asked.environment);
        file.is_some_and(|folder| same_folder(folder, &dir))
    };
    let trusts_otherwise = |approve: bool| {
        let subjects = || {
            trust_subjects(
                &context.cwd,
                &context.prompt.folders,
                &context.agent_dir,
                &context.environment,
                context.discovery.get().foreign(),
            )
        };
        approve != context.prompt.is_trusted() && !subjects().is_empty()
    };
    let changed = context.permissions.changes().and_then(|changes| changes.preset);
    let preset = changed.or(has.permissions.preset);
    let differs = [
        ("cwd", is_elsewhere),
        ("--no-session", is_kept && matches!(target, Target::Ephemeral(_))),
        (
            "--session-dir",
            session_dir
                .as_deref()
                .is_some_and(|dir| has.session_dir.as_deref() != Some(dir) && !in_folder(dir)),
        ),
        ("--models", models.is_some() && models.as_ref() != scope),
        ("--fallback-models", fallback_models.as_deref().is_some_and(|names| *names != *fallbacks)),
        ("--api-key", api_key.is_some() && (*api_key != has.api_key || other_key)),
        ("--system-prompt", system_prompt.is_some() && *system_prompt != has.system_prompt),
        (
            "--append-system-prompt",
            !append_system_prompt.is_empty() && *append_system_prompt != has.append_system_prompt,
        ),
        ("--ssh", ssh.is_some() && *ssh != has.ssh),
        ("--no-context-files", *no_context_files && !has.no_context_files),
        ("--no-mcp", *no_mcp && !has.no_mcp && context.mcp.is_some()),
        ("--mcp-on-demand", *mcp_on_demand && !has.mcp_on_demand && context.mcp.is_some()),
        ("--no-ui", !mode.has_ui() && has.mode.has_ui()),
        ("--skill", !resources.skills.is_empty() && resources.skills != has.resources.skills),
        ("--no-skills", resources.no_skills && !has.resources.no_skills),
        ("--prompt-template", !resources.prompts.is_empty() && resources.prompts != has.resources.prompts),
        ("--no-prompt-templates", resources.no_prompts && !has.resources.no_prompts),
        ("--extension", !resources.extensions.is_empty() && resources.extensions != has.resources.extensions),
        ("--no-extensions", resources.no_extensions && !has.resources.no_extensions),
        ("flags of extensions", !extension_flags.is_empty() && extension_flags != &has.extension_flags),
        ("--permissions", permissions.preset.is_some() && permissions.preset != preset),
        ("--permission-rules", !permissions.rules.is_empty() && permissions.rules != has.permissions.rules),
        ("--sandbox", sandbox.mode.is_some() && sandbox.mode != has.sandbox.mode),
        ("--network", sandbox.network.is_some() && sandbox.network != has.sandbox.network),
        (
            "--writable-root",
            !sandbox.writable_roots.is_empty() && sandbox.writable_roots != has.sandbox.writable_roots,
        ),
        ("--max-cost", budget.cost_usd.is_some() && budget.cost_usd != has.budget.cost_usd),
        ("--max-tokens", budget.tokens.is_some() && budget.tokens != has.budget.tokens),
        ("--max-turns", budget.turns.is_some() && budget.turns != has.budget.turns),
        ("--max-tool-calls", budget.tool_calls.is_some() && budget.tool_calls != has.budget.tool_calls),
        ("--timeout", budget.seconds.is_some() && budget.seconds != has.budget.seconds),
        ("--undo", undo.is_some_and(|on| on != context.undo.is_some())),
        ("--approve", *approve == Some(true) && trusts_otherwise(true)),
        ("--no-approve", *approve == Some(false) && trusts_otherwise(false)),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(flag, _)| flag).collect()
}

/// Whether a session is meant by its file, which names the folder that it works in.
fn names_a_file(target: &Target) -> bool {
    match target {
        Target::Existing(text) => looks_like_path(text),
        Target::File { .. } => true,
        _ => false,
    }
}
