//! The packages of a session: those that its settings and flags name and that are not there are installed when it is opened.

use agentd_packages::PackageInstaller;
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};

use crate::{
    child_environment::{ChildSources, child_environment},
    context::SessionContext,
    options::SessionOptions,
};

impl SessionContext {
    /// Installs packages that are not there, unless `PI_OFFLINE` is set, and adds a warning for what cannot be installed. A session
    /// without packages does nothing. Cancel safe: what was begun is taken back.
    pub(crate) async fn install_packages(&mut self, options: &SessionOptions) {
        let found = self.missing_packages(options).await;
        self.diagnostics.extend(found);
    }

    async fn missing_packages(&self, options: &SessionOptions) -> Vec<Diagnostic> {
        let query = self.discovery_query();
        let names_packages = !query.lists.user.packages.is_empty()
            || !query.lists.project.packages.is_empty()
            || !query.flags.extensions.is_empty();
        if !names_packages {
            return Vec::new();
        }
        let programs = child_environment(&ChildSources {
            environment: &self.environment,
            keys: &self.auth.key_variables(),
            settings: self.settings.child_environment.as_ref(),
            agent_dir: self.agent_dir.path(),
            compat: options.compat,
        });
        let progress = |line: String| tracing::info!("{line}");
        let installer = PackageInstaller::new(
            &query,
            &self.settings,
            &self.services.launcher,
            programs.to_vec(),
            &progress,
        );
        match installer {
            Ok(mut installer) => installer.install_missing(&query).await.diagnostics,
            Err(error) => vec![Diagnostic::warning(DiagnosticKind::Package, error.to_string())],
        }
    }
}
