//! What the parts of one session share and never change: surroundings, configuration, tools.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use agentd_agent::{Tool, hooks::HookGate};
use agentd_ai::{
    CacheRetention, Credentials, Deadlines, HttpRetries, Network, Provider, ProviderRegistry, ThinkingBudgets,
};
use agentd_auth::{Auth, AuthError};
use agentd_config::{
    AgentDir, Environment, ProjectFolders, StartingFiles,
    models::{DEMO_PROVIDER, ModelRegistry, ModelsStamp, SharedModels, UsableModels},
    resources::{ResourceFlags, ResourceLists},
    settings::{SettingChange, save},
};
use agentd_images::Images;
use agentd_memory::MemoryAccount;
use agentd_process::{
    ArtifactFolder, BackgroundProcesses, Launcher, OutputMeter, OutputStorage, ProcessGroup, Shell,
};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    model::{Model, ModelName, ThinkingLevel},
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
    settings::{BashSettings, Settings},
};
use agentd_tools::operations::SshTarget;
use serde::Serialize;
use tokio_util::task::TaskTracker;

use crate::{
    child_environment::ChildEnvironment, fallback::FallbackChain, feed::FeedLimits, interner::Interner,
    run::RetryPolicy, tools::OwnTools, watch::SessionWatch,
};

/// What all sessions of a daemon share.
pub struct Services {
    /// The wire APIs of this build.
    pub providers: ProviderRegistry,
    /// Starts child processes.
    pub launcher: Launcher,
    /// Owns the sessions' tasks.
    pub tasks: TaskTracker,
    /// The models, for as long as models.json stays as it is.
    pub models: SharedModels,
    /// The environments of child processes.
    pub child_environments: Interner<ChildEnvironment>,
    /// What finding credentials shares among sessions, kept for the daemon's life.
    pub auth_services: agentd_auth::AuthServices,
    /// Makes images fit for models, and bounds what that takes of memory.
    pub images: Images,
    /// Names the daemon's life.
    pub epoch: String,
    /// What one session may keep, and how long.
    pub limits: Limits,
    /// What all sessions take of memory for messages that wait.
    pub memory: MemoryAccount,
    /// Hears of what is written to long outputs.
    pub outputs: OutputMeter,
    /// Is told what becomes of sessions.
    pub watch: Arc<dyn SessionWatch>,
    /// Makes the tools of one session.
    pub tools: Box<dyn Fn(ToolContext) -> Toolbox + Send + Sync>,
}

/// What one session works with.
pub struct Toolbox {
    /// The tools, in the order in which models see them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What runs the commands of the user.
    pub shell: Arc<dyn Shell>,
    /// Asked before a tool call of the model or a command of the user starts.
    pub gate: HookGate,
}

/// What one session may keep, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What its feed keeps.
    pub feed: FeedLimits,
    /// How long it has nothing to do before that is told to [`SessionWatch::idle`]; `None`: it is not.
    pub idle_after: Option<Duration>,
    /// How long a question to the user that has no limit itself waits while nobody is there to answer: 10 minutes.
    pub ui_timeout: Duration,
    /// What it takes in.
    pub intake: IntakeLimits,
    /// How much of the output of one command goes to a file, in bytes: 1 GiB.
    pub output_bytes: u64,
}

/// What a session takes in; the largest value of a type is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntakeLimits {
    /// Bytes of a message's text and of its images' base64: 32 MiB.
    pub message_bytes: u64,
    /// Messages that wait: 1000.
    pub queued_messages: u64,
    /// The same of all messages that wait: 64 MiB.
    pub queued_bytes: u64,
    /// Bytes of the entries of all branches, at which no more messages are taken: 512 MiB.
    pub session_bytes: u64,
}

impl Default for IntakeLimits {
    fn default() -> Self {
        Self {
            message_bytes: 32 << 20,
            queued_messages: 1000,
            queued_bytes: 64 << 20,
            session_bytes: 512 << 20,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            feed: FeedLimits::default(),
            idle_after: None,
            ui_timeout: Duration::from_secs(600),
            intake: IntakeLimits::default(),
            output_bytes: 1 << 30,
        }
    }
}

/// What the tools of one session are made with.
pub struct ToolContext {
    /// The session's processes.
    pub processes: ProcessGroup,
    /// The host to work on instead of this machine, and a group for the processes that hold the connection to it.
    pub ssh: Option<(SshTarget, ProcessGroup)>,
    /// The setting `shellPath`.
    pub shell_path: Option<PathBuf>,
    /// The setting `shellCommandPrefix`.
    pub shell_command_prefix: Option<String>,
    /// The complete environment of child processes.
    pub environment: ChildEnvironment,
    /// The folder for temporary files.
    pub temp_dir: PathBuf,
    /// Where long outputs go.
    pub outputs: OutputStorage,
    /// Where they are found again; `None` for a session that has no file.
    pub artifacts: Option<ArtifactFolder>,
    /// The setting `bash`.
    pub bash: Option<BashSettings>,
    /// The session's background processes.
    pub background: BackgroundProcesses,
    /// Whether a tool is active, by its name.
    pub is_active: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// What `~` means; the root folder where the session's environment does not say.
    pub home: PathBuf,
    /// The agent directory.
    pub agent_dir: PathBuf,
    /// The setting `agentDirWritable`.
    pub agent_dir_writable: Vec<String>,
}

impl Services {
    /// Whether requests to a provider can be authorised. Those that are played back need nothing, and no others are made then.
    pub(crate) fn has_auth(&self, auth: &Auth, provider: &str) -> bool {
        match self.providers.player() {
            Some(player) => player.has(provider) || provider == DEMO_PROVIDER,
            None => auth.is_configured(provider),
        }
    }
}

/// One session's surroundings.
pub(crate) struct SessionContext {
    pub(crate) services: Arc<Services>,
    pub(crate) session_id: String,
    pub(crate) session_file: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    pub(crate) agent_dir: AgentDir,
    pub(crate) environment: Environment,
    /// Where long outputs go.
    pub(crate) outputs: OutputStorage,
    /// Where they are found again.
    pub(crate) artifacts: Option<ArtifactFolder>,
    pub(crate) processes: ProcessGroup,
    pub(crate) background: BackgroundProcesses,
    /// The built-in tools, active or not.
    pub(crate) tools: OwnTools,
    /// What runs the user's commands.
    pub(crate) shell: Arc<dyn Shell>,
    /// Asked before a tool call of the model or a command of the user starts.
    pub(crate) gate: HookGate,
    /// Whether tools and commands work on another host.
    pub(crate) is_elsewhere: bool,
    /// The setting `shellCommandPrefix`.
    pub(crate) shell_prefix: Option<String>,
    pub(crate) settings: Settings,
    /// What is wrong with the files, settings and flags that the session was made from.
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) models: Arc<ModelRegistry>,
    /// What `models.json` looked like before the models were read from it.
    pub(crate) models_stamp: ModelsStamp,
    /// The session's model, where models.json has it no more.
    pub(crate) removed_model: Option<ModelName>,
    pub(crate) auth: Auth,
    /// The provider that a key of the options is for, if there is one.
    pub(crate) key_provider: Option<String>,
    pub(crate) prompt: PromptSources,
    pub(crate) idle_timeout: Option<Duration>,
    /// The setting `deadlines`.
    pub(crate) deadlines: Deadlines,
    /// How connections to providers come about.
    pub(crate) network: Arc<Network>,
    pub(crate) block_images: bool,
    /// Makes images fit for models, as the settings have it.
    pub(crate) images: Images,
    pub(crate) cache_retention: CacheRetention,
    /// Whether contexts are compacted unasked; a command changes it.
    pub(crate) auto_compaction: AtomicBool,
    /// How long streamed text may be missing from the intent log.
    pub(crate) crash_flush: Duration,
    pub(crate) retry: RetryPolicy,
    /// Whether there are retries; a command changes it.
    pub(crate) auto_retry: AtomicBool,
    /// Who is asked when the chosen model fails for good; a command changes it.
    pub(crate) fallbacks: FallbackChain,
    pub(crate) http_retries: HttpRetries,
    pub(crate) thinking_budgets: ThinkingBudgets,
}

/// Where the system prompt, skills and prompt templates come from.
pub(crate) struct PromptSources {
    /// `--system-prompt`.
    pub(crate) system: Option<String>,
    /// `--append-system-prompt`.
    pub(crate) appended: Vec<String>,
    pub(crate) context_files: bool,
    pub(crate) folders: ProjectFolders,
    /// What of the project is trusted; `None` where it is not.
    pub(crate) trusted_as: Option<Arc<StartingFiles>>,
    /// Whether that is the project of the session's own working directory: a session file can name another one.
    pub(crate) is_of_cwd: bool,
    /// What of the project was changed since it was trusted: files, or its folder itself.
    pub(crate) changed: Vec<PathBuf>,
    /// The settings `skills` and `prompts`.
    pub(crate) lists: ResourceLists,
    pub(crate) flags: ResourceFlags,
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

    /// A command line of the user after the configured prefix line.
    pub(crate) fn prefixed_command(&self, command: &str) -> String {
        match &self.shell_prefix {
            Some(prefix) => format!("{prefix}\n{command}"),
            None => command.to_owned(),
        }
    }

    /// The adapter of a wire API.
    pub(crate) fn provider(&self, api: &str) -> Result<Arc<dyn Provider>, Failure> {
        self.services.providers.get(api).ok_or_else(|| {
            let known = self.services.providers.apis().collect::<Vec<_>>().join(", ");
            let text = format!("The API \"{api}\" is not part of this version of agentd");
            Failure::new(ErrorCode::NoModel, text).hint(format!("It speaks: {known}."))
        })
    }

    /// What authorises a request to a model, and the model with the address to send it to.
    pub(crate) async fn credentials(&self, model: &Arc<Model>) -> Result<(Credentials, Arc<Model>), Failure> {
        if let Some(player) = self.services.providers.player()
            && player.has(&model.provider)
        {
            let (credentials, base_url) = player.credentials(model);
            let base_url = base_url.unwrap_or_else(|| model.base_url.clone());
            return Ok((credentials, Arc::new(Model { base_url, ..(**model).clone() })));
        }
        let found = self.auth.credentials(model).await.map_err(|error| auth_failure(&error))?;
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
        self.provider(&model.api).map(drop)
    }

    /// What is wrong with each file that could say which model to use and cannot be read.
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
            && self.unreadable_files().is_empty()
            && self.auth.is_blank()
    }

    /// Looks at the models that can be used, on a blocking thread: keys may be looked up in files.
    pub(crate) async fn with_usable_models<T: Default + Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&UsableModels<'_>) -> T + Send + 'static,
    ) -> T {
        let context = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || {
            let apis: Vec<&str> = context.services.providers.apis().collect();
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
        env
    }
}

fn auth_failure(error: &AuthError) -> Failure {
    let code = match error {
        AuthError::NoModel { .. } => ErrorCode::NoModel,
        _ => ErrorCode::NoCredentials,
    };
    Failure::new(code, error.to_string())
}
