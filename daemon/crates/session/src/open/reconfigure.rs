//! The context of a live session made anew: for settings that the user trusts by now or that are read again, for an edited models.json, and
//! for other extensions.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};

use agentd_config::{
    StartingFiles,
    models::{ModelRegistry, ModelScope, ModelsStamp, ScopedModel, UsableModels, resolve_scope},
    settings::{LoadedSettings, load_as_given, place_of},
};
use agentd_extensions::SessionExtensions;
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    session::QueueMode,
};

use super::{
    build_context::build_context,
    error::OpenError,
    initial_choice::{ChoiceSources, InitialChoice},
    mcp_servers::{McpSources, mcp_config},
    prepare::{changed_files, trusted_files, with_overrides},
    surroundings::{CarriedOver, Project},
};
use crate::{
    context::SessionContext,
    extensions::login_renewer,
    models::{Choice, UnusableModels, extend_models},
    options::SessionOptions,
    permissions::{GateSources, PermissionFault, PermissionSources},
    project_answer::Approval,
    shell_hooks::{HookPlace, load_hooks},
};

/// A session's surroundings after a change of what its settings say.
pub(crate) struct NewSettings {
    pub(crate) context: SessionContext,
    /// The settings and flags behind the permissions.
    pub(crate) permissions: GateSources,
    /// The files of the project that were trusted; `None` where it is not trusted.
    pub(crate) trusted_files: Option<StartingFiles>,
    /// Problems with skills, prompt templates and the like.
    pub(crate) of_resources: Vec<Diagnostic>,
    pub(crate) scope: Vec<ScopedModel>,
    pub(crate) modes: (QueueMode, QueueMode),
    /// The first choice of a new session.
    pub(crate) beginning: Choice,
}

/// Reads a session's settings anew, those of its project included: the user trusts these files. `Ok(None)` when they are others
/// by now. Reads files; blocks.
pub(crate) fn reconfigure(
    context: &SessionContext,
    options: &SessionOptions,
    files: StartingFiles,
) -> Result<Option<NewSettings>, OpenError> {
    let loaded =
        load_as_given(&context.agent_dir, &options.cwd, &options.environment, Some(true), Some(&files));
    let loaded = with_overrides(loaded, options);
    if !loaded.trust.trusted {
        return Ok(None);
    }
    let sources = Reread { loaded, trusted_files: Some(files), changed: Vec::new() };
    sources.into_settings(context, options, context.extensions.clone()).map(Some)
}

/// Reads a session's settings anew, as they would be read if it were opened now; `approval` is what was said about
/// its project while it is open. The extensions of before are left out. Reads files; blocks.
pub(crate) fn reread(
    context: &SessionContext,
    options: &SessionOptions,
    approval: &Approval,
) -> Result<NewSettings, OpenError> {
    let (approve, given) = (options.approve.or(approval.approve), approval.files.as_ref());
    let loaded = load_as_given(&context.agent_dir, &options.cwd, &options.environment, approve, given);
    let loaded = with_overrides(loaded, options);
    let changed = changed_files(&loaded.trust);
    let trusted_files = trusted_files(&loaded.trust);
    Reread { loaded, trusted_files, changed }.into_settings(context, options, None)
}

/// Settings that were read while the session is open.
struct Reread {
    loaded: LoadedSettings,
    trusted_files: Option<StartingFiles>,
    /// Changes of the project since it was trusted.
    changed: Vec<PathBuf>,
}

impl Reread {
    fn into_settings(
        self,
        context: &SessionContext,
        options: &SessionOptions,
        extensions: Option<SessionExtensions>,
    ) -> Result<NewSettings, OpenError> {
        let Self { loaded, trusted_files, changed } = self;
        let LoadedSettings { settings, folders, trust, resources, diagnostics: mut found, guard_rails_fault } =
            loaded;
        if let Some(fault) = guard_rails_fault {
            return Err(PermissionFault::Setting(fault).into());
        }
        let is_trusted = trusted_files.is_some();
        let permissions = PermissionSources {
            settings: settings.permissions.as_ref(),
            options: &options.permissions,
            project: is_trusted.then_some(&folders),
            cwd: &context.cwd,
            folders: &options.additional_directories,
            is_elsewhere: options.ssh.is_some(),
            environment: &options.environment,
            agent_dir: &context.agent_dir,
        }
        .checked()?;
        let (services, models, auth) = (&context.services, &context.models, &context.auth);
        let place =
            |setting: (&str, Option<&str>)| place_of(&context.agent_dir, &folders, trust.trusted, setting);
        let sources = ChoiceSources {
            services,
            models,
            auth,
            settings: &settings,
            extensions: extensions.as_ref(),
            place: &place,
        };
        let InitialChoice { choice: beginning, scope, .. } = sources.choose(options, None, &mut found)?;
        let modes = (settings.steering_mode.unwrap_or_default(), settings.follow_up_mode.unwrap_or_default());
        let hook_set = load_hooks(
            &HookPlace {
                agent_dir: &context.agent_dir,
                environment: &options.environment,
                cwd: &options.cwd,
                folders: &folders,
                trusted: trusted_files.as_ref(),
                settings: &settings,
            },
            &mut found,
        );
        let carried_over = CarriedOver {
            services: Arc::clone(services),
            session_id: context.session_id.clone(),
            session_file: context.session_file.clone(),
            agent_dir: context.agent_dir.clone(),
            processes: context.processes.clone(),
            background: context.background.clone(),
            models: Arc::clone(models),
            models_stamp: context.models_stamp,
            auth: auth.clone(),
            key_provider: context.key_provider.clone(),
            cwd: context.cwd.clone(),
            budget: Arc::clone(&context.budget),
            observer: context.observer.clone(),
            permissions: Arc::clone(&context.permissions),
            sandbox: context.sandbox.clone(),
            mcp: context.mcp.clone(),
            extensions,
            mcp_config: Some(mcp_config(
                &McpSources {
                    services,
                    options,
                    agent_dir: &context.agent_dir,
                    cwd: &context.cwd,
                    discovery: settings.discovery.as_ref(),
                    trusted: is_trusted.then_some(&folders),
                },
                &mut found,
            )),
            hooks: None,
            hook_set: Some(hook_set),
            todos: context.todos.clone(),
            current_model: context.current_model.clone(),
            user: context.user.clone(),
            job_news: context.job_news.clone(),
            subagents: context.subagents.clone(),
            host_urls: context.host_urls.clone(),
            eval_executors: context.eval_executors.clone(),
            jobs: context.jobs.clone(),
            own_files: context.own_files.clone(),
            stream_rules: context.stream_rules.clone(),
            plans: context.plans.clone(),
            kernels: context.kernels.clone(),
            shell_session: context.shell_session.clone(),
            cell_calls: context.cell_calls.clone(),
            nested: context.nested.clone(),
            undo: context.undo.clone(),
        };
        let trusted = trusted_files.clone().map(Arc::new);
        let is_untrusted = !is_trusted && context.prompt.is_untrusted;
        let project = Project { folders, is_untrusted, trusted, changed, resources };
        let chosen_fallbacks = context.fallbacks.chosen();
        let removed_model = context.removed_model.clone();
        let mut context = build_context(carried_over, options, settings, project, found);
        context.removed_model = removed_model;
        context.fallbacks.choose(chosen_fallbacks);
        let of_resources = context.resource_diagnostics();
        Ok(NewSettings { context, permissions, trusted_files, of_resources, scope, modes, beginning })
    }
}

/// A session's surroundings with the models that a changed models.json says.
pub(crate) struct NewModels {
    pub(crate) context: SessionContext,
    pub(crate) scope: Vec<ScopedModel>,
}

/// Makes a session's surroundings anew for other models; all else in them is as it was. Blocks.
pub(crate) fn with_models(
    context: &SessionContext,
    options: &SessionOptions,
    models: Arc<ModelRegistry>,
    models_stamp: ModelsStamp,
) -> NewModels {
    remade(context, options, (models, models_stamp), context.extensions.clone())
}

/// The same, with other extensions: none, until they are loaded.
pub(crate) fn without_extensions(context: &SessionContext, options: &SessionOptions) -> SessionContext {
    remade(context, options, (Arc::clone(context.models.base()), context.models_stamp), None).context
}

fn remade(
    context: &SessionContext,
    options: &SessionOptions,
    (models, models_stamp): (Arc<ModelRegistry>, ModelsStamp),
    extensions: Option<SessionExtensions>,
) -> NewModels {
    let (models, unusable) = extend_models(&models, extensions.as_ref());
    if let Some(extensions) = &extensions {
        for UnusableModels { extension, event, error } in unusable {
            extensions.model_failed(extension, event, error);
        }
    }
    let renewer = login_renewer(extensions.as_ref());
    let auth = context.auth.with_registry(Arc::clone(&models)).with_login_renewer(renewer);
    // Problems of tools are found again.
    let of_others =
        |found: &&Diagnostic| !matches!(found.kind, DiagnosticKind::Models | DiagnosticKind::Tools);
    let mut found: Vec<Diagnostic> = context.diagnostics.iter().filter(of_others).cloned().collect();
    found.extend(models.diagnostics().cloned());
    let scope = {
        let apis = context.apis();
        let apis: Vec<&str> = apis.iter().map(String::as_str).collect();
        let has_auth = |provider: &str| context.services.has_auth(&auth, provider);
        let plan = |provider: &str| auth.available_models(provider);
        let usable_models = UsableModels { registry: &models, apis: &apis, has_auth: &has_auth, plan: &plan };
        let patterns = options.models.as_deref().or(context.settings.enabled_models.as_deref());
        let ModelScope { models: scope, warnings } =
            resolve_scope(&usable_models, patterns.unwrap_or_default());
        found.extend(warnings.into_iter().map(|text| Diagnostic::warning(DiagnosticKind::Models, text)));
        scope
    };
    let carried_over = CarriedOver {
        services: Arc::clone(&context.services),
        session_id: context.session_id.clone(),
        session_file: context.session_file.clone(),
        agent_dir: context.agent_dir.clone(),
        processes: context.processes.clone(),
        background: context.background.clone(),
        models,
        models_stamp,
        auth,
        key_provider: context.key_provider.clone(),
        cwd: context.cwd.clone(),
        budget: Arc::clone(&context.budget),
        observer: context.observer.clone(),
        permissions: Arc::clone(&context.permissions),
        sandbox: context.sandbox.clone(),
        mcp: context.mcp.clone(),
        extensions,
        mcp_config: None,
        hooks: context.hooks.clone(),
        hook_set: None,
        todos: context.todos.clone(),
        current_model: context.current_model.clone(),
        user: context.user.clone(),
        job_news: context.job_news.clone(),
        subagents: context.subagents.clone(),
        host_urls: context.host_urls.clone(),
        eval_executors: context.eval_executors.clone(),
        jobs: context.jobs.clone(),
        own_files: context.own_files.clone(),
        stream_rules: context.stream_rules.clone(),
        plans: context.plans.clone(),
        kernels: context.kernels.clone(),
        shell_session: context.shell_session.clone(),
        cell_calls: context.cell_calls.clone(),
        nested: context.nested.clone(),
        undo: context.undo.clone(),
    };
    let project = Project {
        folders: context.prompt.folders.clone(),
        is_untrusted: context.prompt.is_untrusted,
        trusted: context.prompt.trusted_as.clone(),
        changed: context.prompt.changed.clone(),
        resources: context.prompt.lists.clone(),
    };
    let remodelled = build_context(carried_over, options, context.settings.clone(), project, found);
    remodelled.fallbacks.choose(context.fallbacks.chosen());
    // Commands may have set them otherwise than the settings.
    for (of_new, of_old) in [
        (&remodelled.auto_compaction, &context.auto_compaction),
        (&remodelled.auto_retry, &context.auto_retry),
    ] {
        of_new.store(of_old.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    remodelled.discovery.set(context.discovery.get());
    NewModels { context: remodelled, scope }
}

/// The last known state of models.json.
#[derive(Debug)]
pub(crate) struct ModelsFile {
    /// The stamp of the file when it was last read.
    pub(crate) stamp: ModelsStamp,
    /// The problem with the file, while the earlier models stay in use.
    pub(crate) problem: Option<Diagnostic>,
}

impl ModelsFile {
    pub(crate) fn new(stamp: ModelsStamp) -> Self {
        Self { stamp, problem: None }
    }

    /// Models that were read from such a file count now.
    pub(crate) fn seen(&mut self, stamp: ModelsStamp) {
        *self = Self::new(stamp);
    }

    /// The problem with the file, while the earlier models stay in use.
    pub(crate) fn problem(&self) -> Option<&Diagnostic> {
        self.problem.as_ref()
    }
}

/// The result of reading a changed models.json.
pub(crate) enum ModelsChange {
    /// The same models.
    Same,
    /// Nothing that can be read.
    Broken(Diagnostic),
    /// Other models.
    Other(Box<NewModels>),
}

/// Looks at the file, and reads it where it is not as it was `before`; blocks.
pub(crate) fn look_at_models(
    context: &SessionContext,
    options: &SessionOptions,
    before: ModelsStamp,
) -> Option<(ModelsStamp, ModelsChange)> {
    let stamp = ModelsStamp::of(&context.agent_dir);
    if stamp == before {
        return None;
    }
    let models = context.services.models.load(&context.agent_dir);
    if Arc::ptr_eq(&models, context.models.base()) {
        return Some((stamp, ModelsChange::Same));
    }
    let found = match models.diagnostic() {
        Some(problem) if context.models.load_error().is_none() => ModelsChange::Broken(problem.clone()),
        _ => ModelsChange::Other(Box::new(with_models(context, options, models, stamp))),
    };
    Some((stamp, found))
}
