//! Which extensions a session has, in the order in which they are loaded, and which resources packages bring.

mod candidates;
mod found;
mod query;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use agentd_config::resources::{FolderWalk, PackageFile, PackageResources};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};

use self::{
    candidates::{Candidate, Candidates, Group},
    report::{host_dependencies, missing_paths},
};
pub use self::{
    found::{BUILTIN_EXTENSIONS, Discovery, ExtensionError, FoundExtension, LoadRank},
    query::DiscoveryQuery,
};
use crate::{entries::ExtensionKind, kinds::ResourceKind};

/// The most extensions of a session.
const MAX_EXTENSIONS: usize = 500;

/// Finds the extensions of a session, and the resources of packages. Packages that are not installed are left out
/// ([`PackageInstaller::install_missing`](crate::PackageInstaller::install_missing) gets them first). Of a project that is not trusted
/// nothing is looked at. Reads folders and manifests; blocks. What is read is bounded: 20,000 entries of folders, 1 MiB of a manifest,
/// 500 extensions.
#[must_use]
pub fn discover(query: &DiscoveryQuery<'_>) -> Discovery {
    let mut walk = FolderWalk::new(DiagnosticKind::Extension);
    let mut candidates = Candidates::default();
    let mut errors = missing_paths(query);
    errors.extend(candidates.add_packages(query, &ResourceKind::ALL, &mut walk));
    candidates.add_listed(query, &mut walk);
    candidates.add_folders(query, &mut walk);
    candidates.add_builtin(query);
    let Candidates { of_flags, of_settings } = candidates;
    let resources = resources_of(&of_flags, &of_settings);
    let themes = files_of(ResourceKind::Theme, &of_flags, &of_settings);
    let mut chosen = of_flags.into_extensions();
    let others = of_settings.into_extensions();
    if !query.flags.no_extensions {
        chosen.extend(others);
    }
    let mut seen = HashSet::new();
    chosen.retain(|candidate| seen.insert(candidate.identity()));
    chosen.retain(|candidate| !(query.no_mcp && candidate.kind == ExtensionKind::Builtin("mcp".to_owned())));
    let mut diagnostics = walk.diagnostics;
    if chosen.len() > MAX_EXTENSIONS {
        let message = format!("of the {} extensions only the first {MAX_EXTENSIONS} are used", chosen.len());
        diagnostics.push(Diagnostic::warning(DiagnosticKind::Extension, message));
        chosen.truncate(MAX_EXTENSIONS);
    }
    diagnostics.extend(host_dependencies(&chosen));
    let extensions = chosen.into_iter().map(Candidate::into_found).collect();
    Discovery { extensions, resources, themes, errors, diagnostics }
}

/// Finds the skills and prompt templates of packages alone; the faults of packages go to `diagnostics`. Costs nothing where no package
/// is named. Blocks as [`discover`].
#[must_use]
pub fn package_resources(query: &DiscoveryQuery<'_>, diagnostics: &mut Vec<Diagnostic>) -> PackageResources {
    let lists = query.lists;
    if lists.user.packages.is_empty()
        && lists.project.packages.is_empty()
        && query.flags.extensions.is_empty()
    {
        return PackageResources::default();
    }
    let mut walk = FolderWalk::new(DiagnosticKind::Package);
    let mut candidates = Candidates::default();
    // What is not there is told with the extensions.
    let _ = candidates.add_packages(query, &[ResourceKind::Skill, ResourceKind::Prompt], &mut walk);
    diagnostics.append(&mut walk.diagnostics);
    resources_of(&candidates.of_flags, &candidates.of_settings)
}

fn resources_of(of_flags: &Group, of_settings: &Group) -> PackageResources {
    PackageResources {
        skills: files_of(ResourceKind::Skill, of_flags, of_settings),
        prompts: files_of(ResourceKind::Prompt, of_flags, of_settings),
    }
}

/// The files of a kind that are used, those of flags first.
fn files_of(kind: ResourceKind, of_flags: &Group, of_settings: &Group) -> Vec<PackageFile> {
    let files = |group: &Group, is_of_flag| {
        let used = group.of_kind(kind).into_iter().filter(|candidate| candidate.enabled);
        used.map(|candidate| PackageFile {
            path: candidate.path.clone().into(),
            source: candidate.source_info.clone(),
            is_of_flag,
        })
        .collect::<Vec<_>>()
    };
    [files(of_flags, true), files(of_settings, false)].concat()
}
