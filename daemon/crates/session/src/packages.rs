//! The packages of a session: those that its settings and flags name and that are not there are installed when it is opened.

use agentd_packages::{DiscoveryQuery, PackageInstaller};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};

use crate::{context::SessionContext, extensions::ExtensionSurroundings};

impl SessionContext {
    /// Installs packages that are not there, unless `PI_OFFLINE` is set, and adds a warning for what cannot be installed. A session
    /// without packages does nothing. Cancel safe: what was begun is taken back.
    pub(crate) async fn install_packages(&mut self) {
        let found = install_missing(self.extension_surroundings(), &self.discovery_query()).await;
        self.diagnostics.extend(found);
    }
}

/// The same for those of a query.
pub(crate) async fn install_missing(
    surroundings: ExtensionSurroundings<'_>,
    query: &DiscoveryQuery<'_>,
) -> Vec<Diagnostic> {
    let names_packages = !query.lists.user.packages.is_empty()
        || !query.lists.project.packages.is_empty()
        || !query.flags.extensions.is_empty();
    if !names_packages {
        return Vec::new();
    }
    let progress = |line: String| tracing::info!("{line}");
    let installer = PackageInstaller::new(
        query,
        surroundings.settings,
        &surroundings.services.launcher,
        surroundings.child_environment.to_vec(),
        &progress,
    );
    match installer {
        Ok(mut installer) => installer.install_missing(query).await.diagnostics,
        Err(error) => vec![Diagnostic::warning(DiagnosticKind::Package, error.to_string())],
    }
}
