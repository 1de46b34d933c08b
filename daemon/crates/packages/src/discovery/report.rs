//! What is wrong with extensions that were found, or were not, in pi's words.

use std::{collections::BTreeSet, path::Path};

use agentd_protocol::{
    package_request::names_a_path,
    resources::{Diagnostic, DiagnosticKind, SourceScope},
};

use super::{candidates::Candidate, found::ExtensionError, query::DiscoveryQuery};
use crate::manifest::Manifest;

/// Packages that the host of extensions provides. A copy of one beside an extension would be another module.
const OF_HOST: [&str; 10] = [
    "@earendil-works/pi-agent-core",
    "@earendil-works/pi-ai",
    "@earendil-works/pi-coding-agent",
    "@earendil-works/pi-tui",
    "@mariozechner/pi-agent-core",
    "@mariozechner/pi-ai",
    "@mariozechner/pi-coding-agent",
    "@mariozechner/pi-tui",
    "@sinclair/typebox",
    "typebox",
];

/// The paths of `--extension` that are not there.
pub(super) fn missing_paths(query: &DiscoveryQuery<'_>) -> Vec<ExtensionError> {
    let folders = query.package_folders();
    let paths = query.flags.extensions.iter().filter(|text| names_a_path(text));
    let paths = paths.map(|text| folders.path(text, folders.base(SourceScope::Temporary)));
    let missing = paths.filter(|path| !path.exists());
    missing
        .map(|path| ExtensionError {
            reason: format!("Extension path does not exist: {}", path.display()),
            path: path.display().to_string(),
        })
        .collect()
}

/// Warnings about packages that bring their own copies of what the host provides.
pub(super) fn host_dependencies(chosen: &[Candidate]) -> Vec<Diagnostic> {
    let roots: BTreeSet<&Path> =
        chosen.iter().filter_map(|candidate| candidate.package_root.as_deref()).collect();
    let warning = |root: &Path| {
        let mut names = Manifest::read(root)?.dependencies;
        names.retain(|name| OF_HOST.contains(&name.as_str()));
        names.sort();
        let message = format!(
            "Host-provided extension packages must be declared in peerDependencies with a \"*\" range, not dependencies: {}. \
             Installed copies can bypass the extension loader and create duplicate runtime modules.",
            names.join(", ")
        );
        let told = || Diagnostic::warning(DiagnosticKind::Package, message).at(root.join("package.json"));
        (!names.is_empty()).then(told)
    };
    roots.into_iter().filter_map(warning).collect()
}
