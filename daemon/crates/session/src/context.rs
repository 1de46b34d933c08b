//! The context that the actor and the run of a session share. A change of settings makes a new one.
//!
//! Everything that depends on the trust in a project is in this one value. Trust that is given later makes another one, which replaces the
//! first between two runs: no run ever sees half of each.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock, Weak, atomic::AtomicBool},
    time::Duration,
};

use agentd_agent::{
    hooks::HookGate,
    observer::{CallPurpose, ModelCall, SessionObserver},
};
use agentd_ai::{
    CacheRetention, Credentials, Deadlines, HttpRetries, Network, Provider, Request, ThinkingBudgets, failure,
};
use agentd_auth::{Auth, AuthError};
use agentd_checkpoints::SessionCheckpoints;
use agentd_config::{
    AgentDir, Environment, ProjectFolders, StartingFiles,
    models::{
        ModelRegistry, ModelScope, ModelsStamp, ScopedModel, UsableModels, VIRTUAL_API, resolve_fallbacks,
    },
    resources::{ResourceFlags, ResourceLists},
    settings::{SettingChange, save},
};
use agentd_extensions::{NestedBook, SessionExtensions};
use agentd_files::QuickAccess;
use agentd_images::Images;
use agentd_kernels::SessionKernels;
use agentd_mcp::McpSession;
use agentd_process::{ArtifactFolder, BackgroundProcesses, OutputStorage, ProcessGroup, Shell, ShellSession};
use agentd_prompt_history::HistoryFile;
use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::{Event, FallbackReason},
    message::AssistantMessage,
    model::{Model, ModelName, ThinkingLevel},
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
    settings::Settings,
};
use agentd_tools::{FileQueue, SessionFolder, TodoList};
use serde::Serialize;

use crate::{
    budget::SessionBudget,
    cell_calls::CellCalls,
    child_environment::ChildEnvironment,
    client_tools::{EvalExecutorsLink, HostUrlsLink},
    current_model::CurrentModel,
    discovery_switches::DiscoverySwitches,
    jobs::{JobNews, SessionJobs},
    models::{Choice, FallbackChain, RetryPolicy, spoken_apis},
    options::SessionMode,
    permissions::PermissionGate,
    plan::SessionPlans,
    sandbox::SessionSandbox,
    services::Services,
    session_tools::OwnTools,
    session_user::SessionUser,
    shell_hooks::SessionHooks,
    stream_rules::SessionRules,
    subagents::Subagents,
    tool_files::FileTool,
};

/// The context of one session: its settings, its models, its tools and where it works.
pub(crate) struct SessionContext {
    pub(crate) services: Arc<Services>,
    pub(crate) session_id: String,
    pub(crate) session_file: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    pub(crate) agent_dir: AgentDir,
    /// Looks at the files of the agent directory that say which models and keys there are.
    pub(crate) agent_files: QuickAccess,
    /// Looks at the files that system prompts are made of.
    pub(crate) prompt_access: QuickAccess,
    pub(crate) environment: Environment,
    /// Where long outputs go.
    pub(crate) outputs: OutputStorage,
    /// Where they are found again.
    pub(crate) artifacts: Option<ArtifactFolder>,
    pub(crate) processes: ProcessGroup,
    pub(crate) background: BackgroundProcesses,
    /// The built-in tools, active or not.
    pub(crate) tools: OwnTools,
    /// Makes changes of one file wait for each other.
    pub(crate) changes: FileQueue,
    /// Runs the user's commands.
    pub(crate) shell: Arc<dyn Shell>,
    /// Asked before a tool call of the model or a command of the user starts.
    pub(crate) gate: HookGate,
    /// The permissions behind the gate; kept when the settings are read again.
    pub(crate) permissions: Arc<PermissionGate>,
    /// The sandbox of commands and file tools, if there is one.
    pub(crate) sandbox: Option<Arc<SessionSandbox>>,
    /// The MCP servers; `None` where mcp.json has none.
    pub(crate) mcp: Option<Arc<McpSession>>,
    /// The list of tasks; kept when the settings are read again.
    pub(crate) todos: TodoList,
    /// The model, as tools see it; kept when the settings are read again.
    pub(crate) current_model: CurrentModel,
    /// This context, for what was made before it.
    pub(crate) link: ContextLink,
    /// The rules on the stream, and which the model was told; kept when the settings are read again.
    pub(crate) stream_rules: SessionRules,
    /// The folder of the session's own files; kept when the settings are read again.
    pub(crate) own_files: SessionFolder,
    /// What becomes of plans; kept when the settings are read again.
    pub(crate) plans: SessionPlans,
    /// The session's user.
    pub(crate) user: SessionUser,
    /// Tells those who wait for jobs; kept when the settings are read again.
    pub(crate) job_news: JobNews,
    /// The subagents; kept when the settings are read again.
    pub(crate) subagents: Subagents,
    /// The URLs that clients serve; kept when the settings are read again.
    pub(crate) host_urls: HostUrlsLink,
    /// The clients that run cells.
    pub(crate) eval_executors: EvalExecutorsLink,
    /// The jobs: background processes and subagents as one list; kept when the settings are read again.
    pub(crate) jobs: SessionJobs,
    /// The interpreters of cells; kept when the settings are read again.
    pub(crate) kernels: SessionKernels,
    /// The shell that stays; kept when the settings are read again.
    pub(crate) shell_session: ShellSession,
    /// How cells call tools; kept when the settings are read again.
    pub(crate) cell_calls: CellCalls,
    /// The calls of tools by tools, where there are no extensions; kept when the settings are read again.
    pub(crate) nested: NestedBook,
    /// How the session is shown.
    pub(crate) mode: SessionMode,
    /// The extensions; `None` where there are none.
    pub(crate) extensions: Option<SessionExtensions>,
    /// The shell hooks; `None` where there are none. Kept when only models or extensions change.
    pub(crate) hooks: Option<Arc<SessionHooks>>,
    /// The tools that files of the user and of the project name.
    pub(crate) file_tools: Vec<Arc<FileTool>>,
    /// The environment of what the session starts outside of its sandbox.
    pub(crate) child_environment: ChildEnvironment,
    /// The history that the user's prompts are recorded in; `None` where they are not.
    pub(crate) prompt_history: Option<HistoryFile>,
    /// Keeps what tool calls change; `None` while undo is off.
    pub(crate) undo: Option<Arc<SessionCheckpoints>>,
    /// Whether tools and commands work on another host.
    pub(crate) is_elsewhere: bool,
    /// Further folders of the workspace, which the client gave.
    pub(crate) folders: Vec<PathBuf>,
    /// The setting `shellCommandPrefix`.
    pub(crate) shell_prefix: Option<String>,
    pub(crate) settings: Settings,
    /// Problems with the files, settings and flags that the session was made from.
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) models: Arc<ModelRegistry>,
    /// The stamp of `models.json` before the models were read from it.
    pub(crate) models_stamp: ModelsStamp,
    /// The session's model, where models.json has it no more.
    pub(crate) removed_model: Option<ModelName>,
    pub(crate) auth: Auth,
    /// The provider that a key of the options is for, if there is one.
    pub(crate) key_provider: Option<String>,
    pub(crate) prompt: PromptSources,
    /// The setting `discovery`; a command changes it.
    pub(crate) discovery: DiscoverySwitches,
    pub(crate) idle_timeout: Option<Duration>,
    /// The setting `deadlines`.
    pub(crate) deadlines: Deadlines,
    /// Proxies, certificates and timeouts of connections to providers.
    pub(crate) network: Arc<Network>,
    pub(crate) block_images: bool,
    /// Makes images fit for models, as the settings have it.
    pub(crate) images: Images,
    pub(crate) cache_retention: CacheRetention,
    /// Looks on while the session works, if telemetry is on; kept when the settings are read again.
    pub(crate) observer: Option<Arc<dyn SessionObserver>>,
    /// What the session may spend; kept when the settings are read again.
    pub(crate) budget: Arc<SessionBudget>,
    /// Whether contexts are compacted unasked; a command changes it.
    pub(crate) auto_compaction: AtomicBool,
    /// Time that streamed text may be missing from the intent log.
    pub(crate) crash_flush: Duration,
    pub(crate) retry: RetryPolicy,
    /// Whether there are retries; a command changes it.
    pub(crate) auto_retry: AtomicBool,
    /// Models that are asked when the chosen one fails for good; a command changes the list.
    pub(crate) fallbacks: FallbackChain,
    pub(crate) http_retries: HttpRetries,
    pub(crate) thinking_budgets: ThinkingBudgets,
}

/// A context, for tools that are made before it is. Cheap to clone. Does not keep it.
#[derive(Clone, Default)]
pub(crate) struct ContextLink(Arc<OnceLock<Weak<SessionContext>>>);

impl ContextLink {
    /// The context, once it is there.
    pub(crate) fn get(&self) -> Option<Arc<SessionContext>> {
        self.0.get()?.upgrade()
    }
}

impl SessionContext {
    /// Puts the context where its task and its runs share it, and its tools find it.
    pub(crate) fn shared(self) -> Arc<Self> {
        let context = Arc::new(self);
        // A context is shared once.
        let _ = context.link.0.set(Arc::downgrade(&context));
        context
    }
}

/// Where the system prompt, skills and prompt templates come from.
pub(crate) struct PromptSources {
    /// `--system-prompt`.
    pub(crate) system: Option<String>,
    /// `--append-system-prompt`.
    pub(crate) appended: Vec<String>,
    pub(crate) context_files: bool,
    pub(crate) folders: ProjectFolders,
    /// Whether the project has something that needs trust, and is not trusted.
    pub(crate) is_untrusted: bool,
    /// The trusted files of the project; `None` where it is not trusted, or has nothing that needs it.
    pub(crate) trusted_as: Option<Arc<StartingFiles>>,
    /// Whether that is the project of the session's own working directory: a session file can name another one.
    pub(crate) is_of_cwd: bool,
    /// Changes of the project since it was trusted: files, or its folder itself.
    pub(crate) changed: Vec<PathBuf>,
    /// The settings `skills`, `prompts`, `extensions` and `packages`.
    pub(crate) lists: ResourceLists,
    pub(crate) flags: ResourceFlags,
    /// `--no-mcp`.
    pub(crate) no_mcp: bool,
}

impl PromptSources {
    /// Whether the project is trusted.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted_as.is_some()
    }
}

impl SessionContext {
    /// The working directory of tools and commands, on another host where the session works there. Cancel safe.
    pub(crate) async fn directory(&self) -> Result<PathBuf, Failure> {
        let there = self.shell.directory(&self.cwd).await;
        there.map_err(|error| Failure::new(ErrorCode::Io, error.to_string()))
    }

    /// The calls of tools by tools.
    pub(crate) fn nested(&self) -> &NestedBook {
        self.extensions.as_ref().map_or(&self.nested, SessionExtensions::nested)
    }

    /// Shows an event to the observer. Never called for deltas.
    pub(crate) fn observe(&self, event: &Event) {
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
    }

    /// Shows the observer that a model is asked. The returned number names the call for its end.
    pub(crate) fn observe_call(&self, request: &Request, purpose: CallPurpose) -> Option<u64> {
        self.observer.as_ref().map(|observer| {
            observer.call_begins(&ModelCall {
                model: &request.model,
                level: request.thinking_level,
                messages: &request.messages,
                purpose,
            })
        })
    }

    /// Shows the observer the answer to a call that it was shown.
    pub(crate) fn observe_answer(
        &self,
        call: Option<u64>,
        answer: &AssistantMessage,
        failure: Option<&failure::Failure>,
    ) {
        if let (Some(observer), Some(call)) = (&self.observer, call) {
            observer.call_ends(call, answer, failure);
        }
    }

    /// Whether the setting `plan.enabled` keeps sessions out of plan mode.
    pub(crate) fn plan_mode_is_off(&self) -> bool {
        self.settings.plan.as_ref().and_then(|plan| plan.enabled) == Some(false)
    }

    /// A command line of the user after the configured prefix line.
    pub(crate) fn prefixed_command(&self, command: &str) -> String {
        match &self.shell_prefix {
            Some(prefix) => format!("{prefix}\n{command}"),
            None => command.to_owned(),
        }
    }

    /// The adapter of a provider API.
    pub(crate) fn adapter(&self, api: &str) -> Result<Arc<dyn Provider>, Failure> {
        self.services.providers.get(api).ok_or_else(|| {
            let known = self.services.providers.apis().collect::<Vec<_>>().join(", ");
            let text = format!("The API \"{api}\" is not part of this version of agentd");
            Failure::new(ErrorCode::NoModel, text).hint(format!("It speaks: {known}."))
        })
    }

    /// What answers requests to a model: an extension, or the adapter of its API.
    pub(crate) fn provider(&self, model: &Model) -> Result<Arc<dyn Provider>, Failure> {
        if model.api == VIRTUAL_API {
            let text =
                format!("Virtual model {}/{} must be routed before streaming", model.provider, model.id);
            return Err(Failure::new(ErrorCode::NoModel, text));
        }
        let extensions = self.extensions.as_ref();
        match extensions.and_then(|extensions| extensions.provider_stream(&model.provider, &model.api)) {
            Some(provider) => Ok(provider),
            None => self.adapter(&model.api),
        }
    }

    /// The same, with every request within the budgets: what calls a model asks here.
    pub(crate) fn metered_provider(
        &self,
        model: &Model,
        purpose: CallPurpose,
    ) -> Result<Arc<dyn Provider>, Failure> {
        Ok(self.budget.meter(self.provider(model)?, purpose))
    }

    /// The APIs that the session's models may have.
    pub(crate) fn apis(&self) -> Vec<String> {
        spoken_apis(&self.services, self.extensions.as_ref())
    }

    /// The credentials for a request to a model, and the model with the address to send it to.
    pub(crate) async fn credentials(&self, model: &Arc<Model>) -> Result<(Credentials, Arc<Model>), Failure> {
        self.credentials_from(&self.auth, model).await
    }

    /// The same from other sources than the session's own.
    pub(crate) async fn credentials_from(
        &self,
        auth: &Auth,
        model: &Arc<Model>,
    ) -> Result<(Credentials, Arc<Model>), Failure> {
        if let Some(player) = self.services.providers.player()
            && player.has(&model.provider)
        {
            let (credentials, base_url) = player.credentials(model);
            let base_url = base_url.unwrap_or_else(|| model.base_url.clone());
            return Ok((credentials, Arc::new(Model { base_url, ..(**model).clone() })));
        }
        let found = auth.credentials(model).await.map_err(|error| auth_failure(&error))?;
        let model = match found.base_url {
            Some(base_url) => Arc::new(Model { base_url, ..(**model).clone() }),
            None => Arc::clone(model),
        };
        Ok((found.credentials, model))
    }

    /// Whether a prompt to a model has a chance: the model is there, its API is spoken, a key resolves.
    pub(crate) async fn check_model(&self, model: &Arc<Model>) -> Result<(), Failure> {
        let unreadable = if model.is_placeholder() { self.unreadable_files() } else { Vec::new() };
        if !unreadable.is_empty() {
            // The reason why there is no model is worth more than the fact.
            let text = format!("No API key found for the selected model.\n\n{}", unreadable.join("\n\n"));
            return Err(Failure::new(ErrorCode::NoModel, text));
        }
        if self.removed_model.as_ref() == Some(&model.name()) {
            let text = format!(
                "The model of this session, {}/{}, is gone: {} has it no more.",
                model.provider,
                model.id,
                self.agent_dir.models_file().display()
            );
            let hint = "set_model chooses another one; get_available_models lists those that there are.";
            return Err(Failure::new(ErrorCode::NoModel, text).hint(hint));
        }
        self.credentials(model).await?;
        // A virtual model is routed for each of its requests.
        if model.api == VIRTUAL_API { Ok(()) } else { self.provider(model).map(drop) }
    }

    /// The errors of files that could name a model and cannot be read.
    fn unreadable_files(&self) -> Vec<String> {
        let is_unread =
            |it: &&Diagnostic| it.kind == DiagnosticKind::Settings && it.level == DiagnosticLevel::Error;
        let of_settings = self.diagnostics.iter().filter(is_unread).map(ToString::to_string);
        let of_models = self.models.load_error().map(str::to_owned);
        of_settings.chain(of_models).chain(self.auth.load_error()).collect()
    }

    /// Whether nothing at all says which model to use: no key, no login, no provider, no setting, and no file that could say so
    /// and cannot be read.
    pub(crate) fn is_unconfigured(&self) -> bool {
        let Settings { default_provider, default_model, enabled_models, fallback_models, .. } =
            &self.settings;
        self.services.providers.player().is_none()
            && default_provider.is_none()
            && default_model.is_none()
            && enabled_models.as_ref().is_none_or(Vec::is_empty)
            && fallback_models.as_ref().is_none_or(Vec::is_empty)
            && self.models.configured().next().is_none()
            && Arc::ptr_eq(self.models.base(), &self.models)
            && self.unreadable_files().is_empty()
            && self.auth.is_blank()
    }

    /// Looks at the models that can be used. Keys may be looked up in files.
    pub(crate) async fn with_usable_models<T: Default + Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&UsableModels<'_>) -> T + Send + 'static,
    ) -> T {
        let context = Arc::clone(self);
        let looked = self.agent_files.run(move || {
            let apis = context.apis();
            let apis: Vec<&str> = apis.iter().map(String::as_str).collect();
            // Another program may have stored a key meanwhile.
            context.auth.refresh();
            let has_auth = |provider: &str| context.services.has_auth(&context.auth, provider);
            let plan = |provider: &str| context.auth.available_models(provider);
            look(&UsableModels { registry: &context.models, apis: &apis, has_auth: &has_auth, plan: &plan })
        });
        // It fails only when the runtime ends, or when `look` panics; then nothing was found.
        looked.await.unwrap_or_default()
    }

    /// Saves a choice in the user's settings, at this path of keys.
    pub(crate) async fn save_setting<T: Serialize>(
        &self,
        path: &'static [&'static str],
        value: &T,
    ) -> Result<(), Failure> {
        let failed = |error: String| Failure::new(ErrorCode::Io, error);
        let value = serde_json::to_value(value).map_err(|error| failed(error.to_string()))?;
        let agent_dir = self.agent_dir.clone();
        tokio::task::spawn_blocking(move || save(&agent_dir, &[SettingChange { path, value: &value }]))
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))
    }

    /// The variables that tell child processes of tools where they are.
    pub(crate) fn session_env(&self, model: &Model, level: ThinkingLevel) -> Vec<(String, String)> {
        let mut env = vec![("PI_SESSION_ID".to_owned(), self.session_id.clone())];
        if let Some(file) = &self.session_file {
            env.push(("PI_SESSION_FILE".into(), file.display().to_string()));
        }
        env.push(("PI_PROVIDER".into(), model.provider.clone()));
        env.push(("PI_MODEL".into(), model.id.clone()));
        env.push(("PI_REASONING_LEVEL".into(), level.as_str().into()));
        let traceparent = self.observer.as_ref().and_then(|observer| observer.traceparent());
        env.extend(traceparent.map(|traceparent| ("TRACEPARENT".to_owned(), traceparent)));
        env
    }
}

impl SessionContext {
    /// Keeps in mind that a model's account has come to a limit.
    pub(crate) fn note_failure(&self, model: &Model, reason: FallbackReason, message: &str) {
        if reason == FallbackReason::AccountLimit {
            self.fallbacks.suspend(model.name(), message);
        }
    }

    /// The first model of the chain that has a key, is none of `tried`, is not left alone, and has a context window larger
    /// than `window` where that is given. It thinks as hard as its name says, as the settings say of it, or as `level`.
    pub(crate) async fn next_model(
        self: &Arc<Self>,
        tried: &[ModelName],
        window: Option<u64>,
        level: ThinkingLevel,
    ) -> Option<Choice> {
        let names = self.fallbacks.names();
        if names.is_empty() {
            return None;
        }
        let ModelScope { models, .. } =
            self.with_usable_models(move |usable_models| resolve_fallbacks(usable_models, &names)).await;
        let fits = |scoped: &ScopedModel| {
            let name = scoped.model.name();
            !tried.contains(&name)
                && window.is_none_or(|window| window > 0 && scoped.model.context_window > window)
                && self.fallbacks.suspended(&name).is_none()
        };
        let ScopedModel { model, level: pinned } = models.into_iter().find(fits)?;
        let of_settings = self.settings.model_thinking_levels.as_ref();
        let of_settings =
            of_settings.and_then(|levels| levels.get(&format!("{}/{}", model.provider, model.id)).copied());
        let level = model.clamp_thinking(Some(pinned.or(of_settings).unwrap_or(level)));
        Some(Choice { model, level })
    }
}

fn auth_failure(error: &AuthError) -> Failure {
    let code = match error {
        AuthError::NoModel { .. } => ErrorCode::NoModel,
        _ => ErrorCode::NoCredentials,
    };
    Failure::new(code, error.to_string())
}
