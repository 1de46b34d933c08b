//! Asking the user's extensions whether the project is trusted, before anything of the project is used.
//!
//! They are loaded with the project untrusted, without the session: which file it has, and with what settings, depends on the answer. Once
//! that is known, the session takes them over as they are and loads the extensions of the project beside them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_auth::{Auth, AuthSources};
use agentd_config::{
    AgentDir, ProjectFolders, StartingFiles, TrustBasis, TrustDecision,
    resources::ResourceLists,
    save_trust,
    settings::{LoadedSettings, load_as_given},
};
use agentd_extensions::{KeptHosts, LoadError, SessionExtensions, TrustAnswer};
use agentd_packages::{DiscoveryQuery, discover};
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};
use tokio::task::spawn_blocking;

use super::{error::OpenError, extensions::runnable};
use crate::{
    child_environment::{ChildEnvironment, ChildSources, child_environment},
    extensions::{ExtensionSurroundings, ExtensionsPlan, setup},
    options::SessionOptions,
    packages::install_missing,
    project_answer::ProjectAnswer,
    services::Services,
};

/// The user's extensions, which are to be asked about the project.
pub(crate) struct TrustPass {
    services: Arc<Services>,
    options: Arc<SessionOptions>,
    agent_dir: AgentDir,
    folders: ProjectFolders,
    lists: ResourceLists,
    /// Those of the user alone.
    settings: Settings,
    child_environment: ChildEnvironment,
    /// The files of the project that an answer is for.
    files: StartingFiles,
}

/// The end of asking.
pub(crate) struct AskedExtensions {
    pub(crate) answer: ProjectAnswer,
    /// The extensions that were asked, as they are loaded.
    pub(crate) kept: KeptHosts,
    /// What went wrong.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl TrustPass {
    /// `None` where nobody would be asked: flags decided, nothing needs trust, or the user has no extensions. Reads files; blocks.
    pub(super) fn of(
        services: &Arc<Services>,
        options: &Arc<SessionOptions>,
        agent_dir: &AgentDir,
        trust: &TrustDecision,
    ) -> Option<Self> {
        if matches!(trust.basis, TrustBasis::Flag | TrustBasis::NothingToTrust) {
            return None;
        }
        let loaded = load_as_given(agent_dir, &options.cwd, &options.environment, Some(false), None);
        let LoadedSettings { settings, folders, resources: lists, guard_rails_fault: None, .. } = loaded
        else {
            // The session cannot be opened.
            return None;
        };
        let auth = Auth::load(AuthSources {
            agent_dir: agent_dir.clone(),
            environment: options.environment.clone(),
            registry: services.models.load(agent_dir),
            services: services.auth_services.clone(),
        });
        let child_environment = services.child_environments.intern(child_environment(&ChildSources {
            environment: &options.environment,
            keys: &auth.key_variables(),
            settings: settings.child_environment.as_ref(),
            agent_dir: agent_dir.path(),
            compat: options.compat,
        }));
        let pass = Self {
            services: Arc::clone(services),
            options: Arc::clone(options),
            agent_dir: agent_dir.clone(),
            folders,
            lists,
            settings,
            child_environment,
            files: trust.files.clone(),
        };
        // A package may bring some once it is installed.
        let has_packages = !pass.lists.user.packages.is_empty() || !options.resources.extensions.is_empty();
        (has_packages || !discover(&pass.query()).extensions.is_empty()).then_some(pass)
    }

    /// Loads the extensions and asks them. An answer that is to be remembered is saved.
    ///
    /// # Errors
    /// An extension that cannot be found or loaded.
    ///
    /// Cancel safety: dropped early, the hosts end.
    pub(crate) async fn ask(self, reason: &'static str) -> Result<AskedExtensions, OpenError> {
        // What is missing is told of when the session looks for its extensions.
        install_missing(self.surroundings(), &self.query()).await;
        let looking = spawn_blocking(move || {
            let found = discover(&self.query());
            (self, found)
        });
        let (pass, found) = looking.await?;
        if let Some(error) = found.errors.into_iter().next() {
            return Err(LoadError { path: error.path, reason: error.reason }.into());
        }
        let cwd = pass.options.cwd.clone();
        let mut answer = ProjectAnswer { cwd, trusted: None, files: pass.files.clone() };
        let ((sources, node), _) = runnable(pass.surroundings(), found.extensions).await?;
        if sources.is_empty() {
            return Ok(AskedExtensions { answer, kept: KeptHosts::default(), diagnostics: Vec::new() });
        }
        let (flags, kept) = (pass.options.extension_flags.clone(), KeptHosts::default());
        let plan = ExtensionsPlan { sources, node, reason, flags, kept };
        let extensions = SessionExtensions::start(setup(pass.surroundings(), plan)).await?;
        let (said, errors) = extensions.project_trust(&answer.cwd.display().to_string()).await;
        let mut diagnostics: Vec<Diagnostic> =
            errors.into_iter().map(|text| Diagnostic::warning(DiagnosticKind::Extension, text)).collect();
        answer.trusted = said.map(|said| said.trusted);
        if let Some(TrustAnswer { trusted, remember: true }) = said {
            let files = trusted.then_some(pass.files);
            diagnostics.extend(remembered(pass.agent_dir, answer.cwd.clone(), files).await);
        }
        Ok(AskedExtensions { answer, kept: extensions.into_kept(), diagnostics })
    }

    fn query(&self) -> DiscoveryQuery<'_> {
        DiscoveryQuery {
            agent_dir: &self.agent_dir,
            cwd: &self.options.cwd,
            folders: &self.folders,
            trusted: false,
            environment: &self.options.environment,
            lists: &self.lists,
            flags: &self.options.resources,
            no_mcp: self.options.no_mcp,
        }
    }

    fn surroundings(&self) -> ExtensionSurroundings<'_> {
        ExtensionSurroundings {
            services: &self.services,
            session_id: "",
            cwd: &self.options.cwd,
            agent_dir: &self.agent_dir,
            environment: &self.options.environment,
            child_environment: &self.child_environment,
            settings: &self.settings,
            mode: self.options.mode,
            trusted: false,
        }
    }
}

/// Saves an answer; a yes is for these files. Returns why that failed.
async fn remembered(agent_dir: AgentDir, cwd: PathBuf, files: Option<StartingFiles>) -> Option<Diagnostic> {
    let trust_file = agent_dir.trust_file();
    let saving = spawn_blocking(move || save_trust(&agent_dir, &cwd, files.as_ref()));
    let error = match saving.await {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Some(not_saved(&trust_file, &error))
}

fn not_saved(trust_file: &Path, error: &str) -> Diagnostic {
    let text = format!("what an extension said about the project was not saved: {error}");
    Diagnostic::warning(DiagnosticKind::Trust, text).at(trust_file).hint("it counts for this session")
}
