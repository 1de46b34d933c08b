//! Everything that could be used, with who named it and whether it is switched off.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use agentd_config::resources::{FolderWalk, ListedPaths};
use agentd_protocol::{
    package_request::names_a_path,
    resources::{Diagnostic, DiagnosticKind, SourceInfo, SourceOrigin, SourceScope},
    settings::PackageSetting,
};

use super::{
    found::{BUILTIN_EXTENSIONS, BUILTIN_PREFIX, ExtensionError, FoundExtension, LoadRank},
    query::DiscoveryQuery,
};
use crate::{
    configured::{NamedPackage, configured},
    contents::{self, Resource, files_at},
    entries::{Entry, ExtensionKind, in_folder},
    folders::{PackageFolders, canonical},
    kinds::{PerKind, ResourceKind},
    patterns::{Patterns, is_glob, is_override},
    source::PackageSource,
};

/// A resource that could be used.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) path: String,
    pub(super) kind: ExtensionKind,
    pub(super) base_dir: PathBuf,
    pub(super) source_info: SourceInfo,
    pub(super) rank: LoadRank,
    /// A candidate that is switched off keeps others from bringing the same file.
    pub(super) enabled: bool,
    /// The folder of the package that it is of.
    pub(super) package_root: Option<PathBuf>,
}

impl Candidate {
    /// The same for all candidates that are one extension.
    pub(super) fn identity(&self) -> String {
        match &self.kind {
            ExtensionKind::Builtin(_) => self.path.clone(),
            ExtensionKind::Node => canonical(Path::new(&self.path)).display().to_string(),
            ExtensionKind::Native { command, .. } => {
                format!("{}\0{}", canonical(Path::new(&self.path)).display(), command.join("\0"))
            }
        }
    }

    pub(super) fn into_found(self) -> FoundExtension {
        let entry = match &self.kind {
            ExtensionKind::Builtin(name) => name.into(),
            ExtensionKind::Node | ExtensionKind::Native { .. } => canonical(Path::new(&self.path)),
        };
        FoundExtension {
            entry,
            base_dir: self.base_dir,
            rank: self.rank,
            needs_trust: self.source_info.scope == SourceScope::Project,
            source_info: self.source_info,
            kind: self.kind,
            path: self.path,
        }
    }
}

/// Candidates by kind, each path once: the first that brings it counts.
#[derive(Debug, Default)]
pub(super) struct Group {
    candidates: PerKind<Vec<Candidate>>,
    seen: PerKind<HashSet<String>>,
}

impl Group {
    fn add(&mut self, kind: ResourceKind, candidate: Candidate) {
        let key = match &candidate.kind {
            ExtensionKind::Native { command, .. } => format!("{}\0{}", candidate.path, command.join("\0")),
            ExtensionKind::Node | ExtensionKind::Builtin(_) => candidate.path.clone(),
        };
        if self.seen.get_mut(kind).insert(key) {
            self.candidates.get_mut(kind).push(candidate);
        }
    }

    /// The candidates of a kind by their rank, each file once, those that are switched off included.
    pub(super) fn of_kind(&self, kind: ResourceKind) -> Vec<&Candidate> {
        let mut found: Vec<&Candidate> = self.candidates.get(kind).iter().collect();
        found.sort_by_key(|candidate| candidate.rank);
        let mut seen = HashSet::new();
        found.retain(|candidate| seen.insert(candidate.identity()));
        found
    }

    /// The extensions that are used, by their rank.
    pub(super) fn into_extensions(self) -> Vec<Candidate> {
        self.of_kind(ResourceKind::Extension).into_iter().filter(|it| it.enabled).cloned().collect()
    }
}

/// The candidates of flags, and all others.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) of_flags: Group,
    pub(super) of_settings: Group,
}

/// Who brings candidates.
struct Bringer<'a> {
    rank: LoadRank,
    scope: SourceScope,
    source: &'a str,
    origin: SourceOrigin,
    base_dir: Option<&'a Path>,
    package_root: Option<&'a Path>,
}

impl Bringer<'_> {
    fn candidate(&self, Resource { entry, enabled }: Resource) -> Candidate {
        let path = entry.path.display().to_string();
        Candidate {
            source_info: SourceInfo {
                path: path.clone(),
                source: self.source.to_owned(),
                scope: self.scope,
                origin: self.origin,
                base_dir: self.base_dir.map(|folder| folder.display().to_string()),
            },
            path,
            kind: entry.kind,
            base_dir: entry.base_dir,
            rank: self.rank,
            enabled,
            package_root: self.package_root.map(Path::to_owned),
        }
    }
}

impl Candidates {
    /// Adds what packages of settings and of flags bring of these kinds. Returns flags that name nothing.
    pub(super) fn add_packages(
        &mut self,
        query: &DiscoveryQuery<'_>,
        kinds: &[ResourceKind],
        walk: &mut FolderWalk,
    ) -> Vec<ExtensionError> {
        let folders = query.package_folders();
        let packages = configured(&query.counting_lists(), &folders, &mut walk.diagnostics);
        for package in &packages {
            add_package(&mut self.of_settings, package, &folders, kinds, walk);
        }
        let mut errors = Vec::new();
        for text in &query.flags.extensions {
            if let Some(name) = text.strip_prefix(BUILTIN_PREFIX) {
                if BUILTIN_EXTENSIONS.contains(&name) {
                    let builtin = builtin(name, SourceScope::Temporary, LoadRank::Flag, true);
                    self.of_flags.add(ResourceKind::Extension, builtin);
                } else {
                    let reason = format!("Unknown built-in extension: {text}");
                    errors.push(ExtensionError { path: text.clone(), reason });
                }
                continue;
            }
            match PackageSource::parse(text) {
                Ok(source) => {
                    let entry = PackageSetting::Source(text.clone());
                    let package = NamedPackage::new(entry, SourceScope::Temporary, source);
                    add_package(&mut self.of_flags, &package, &folders, kinds, walk);
                }
                Err(error) => {
                    errors.push(ExtensionError { path: text.clone(), reason: error.to_string() });
                }
            }
        }
        self.name_flags();
        errors
    }

    /// What a flag names is known by that flag, unless the settings know it, too.
    fn name_flags(&mut self) {
        for kind in [ResourceKind::Extension, ResourceKind::Skill] {
            let known: HashMap<&str, &SourceInfo> = self
                .of_settings
                .candidates
                .get(kind)
                .iter()
                .map(|it| (it.path.as_str(), &it.source_info))
                .collect();
            for candidate in self.of_flags.candidates.get_mut(kind) {
                if matches!(candidate.kind, ExtensionKind::Builtin(_)) {
                    continue;
                }
                candidate.source_info = match known.get(candidate.path.as_str()) {
                    Some(known) => (*known).clone(),
                    None => SourceInfo {
                        path: candidate.path.clone(),
                        source: "cli".to_owned(),
                        scope: SourceScope::Temporary,
                        origin: SourceOrigin::TopLevel,
                        base_dir: None,
                    },
                };
            }
        }
    }

    /// Adds the extensions that the setting `extensions` names.
    pub(super) fn add_listed(&mut self, query: &DiscoveryQuery<'_>, walk: &mut FolderWalk) {
        let lists = query.counting_lists();
        let folders = query.package_folders();
        for (listed, scope, rank) in [
            (&lists.project, SourceScope::Project, LoadRank::ProjectSettings),
            (&lists.user, SourceScope::User, LoadRank::UserSettings),
        ] {
            let ListedPaths { base, extensions, .. } = listed;
            let is_place = |entry: &&String| !is_override(entry) && !is_glob(entry);
            let patterns = Patterns::new(extensions.iter().filter(|entry| !is_place(entry)), base);
            let bringer = Bringer {
                rank,
                scope,
                source: "local",
                origin: SourceOrigin::TopLevel,
                base_dir: None,
                package_root: None,
            };
            for entry in extensions.iter().filter(is_place) {
                let path = folders.path(entry, base);
                if !path.exists() {
                    let message = "this is named by the setting \"extensions\" and is not there";
                    let file = base.join("settings.json");
                    let diagnostic = Diagnostic::warning(DiagnosticKind::Extension, message).at(&path);
                    walk.diagnostics.push(diagnostic.hint(format!("correct the path in {}", file.display())));
                }
                for entry in files_at(&path, ResourceKind::Extension, walk) {
                    let enabled = patterns.allow(&entry.path);
                    self.of_settings
                        .add(ResourceKind::Extension, bringer.candidate(Resource { entry, enabled }));
                }
            }
        }
    }

    /// Adds the extensions of the usual folders.
    pub(super) fn add_folders(&mut self, query: &DiscoveryQuery<'_>, walk: &mut FolderWalk) {
        let lists = query.counting_lists();
        let of_project = query.folders.each().filter(|_| query.trusted).map(Path::to_owned);
        let of_user = std::iter::once(query.agent_dir.path().to_owned());
        let of_project =
            of_project.map(|folder| (folder, SourceScope::Project, LoadRank::ProjectFolder, &lists.project));
        let of_user = of_user.map(|folder| (folder, SourceScope::User, LoadRank::UserFolder, &lists.user));
        for (folder, scope, rank, listed) in of_project.chain(of_user) {
            let patterns = Patterns::overrides(&listed.extensions, &folder);
            let bringer = Bringer {
                rank,
                scope,
                source: "auto",
                origin: SourceOrigin::TopLevel,
                base_dir: Some(&folder),
                package_root: None,
            };
            for entry in in_folder(&folder.join("extensions"), walk) {
                let enabled = patterns.allow(&entry.path);
                self.of_settings.add(ResourceKind::Extension, bringer.candidate(Resource { entry, enabled }));
            }
        }
    }

    /// Adds the built-in extensions that the settings do not switch off.
    pub(super) fn add_builtin(&mut self, query: &DiscoveryQuery<'_>) {
        let lists = query.counting_lists();
        let patterns = |listed: &ListedPaths| Patterns::overrides(&listed.extensions, Path::new(""));
        let (of_user, of_project) = (patterns(&lists.user), patterns(&lists.project));
        for name in BUILTIN_EXTENSIONS {
            let path = format!("{BUILTIN_PREFIX}{name}");
            let said = of_project.say(Path::new(&path));
            let scope = if said.is_some() { SourceScope::Project } else { SourceScope::User };
            let enabled = said.unwrap_or_else(|| of_user.allow(Path::new(&path)));
            self.of_settings.add(ResourceKind::Extension, builtin(name, scope, LoadRank::Builtin, enabled));
        }
    }
}

fn builtin(name: &str, scope: SourceScope, rank: LoadRank, enabled: bool) -> Candidate {
    let path = format!("{BUILTIN_PREFIX}{name}");
    Candidate {
        source_info: SourceInfo {
            path: path.clone(),
            source: "builtin".to_owned(),
            scope,
            origin: SourceOrigin::TopLevel,
            base_dir: None,
        },
        path,
        kind: ExtensionKind::Builtin(name.to_owned()),
        base_dir: PathBuf::new(),
        rank,
        enabled,
        package_root: None,
    }
}

/// Adds what one package brings. One that is not there brings nothing.
fn add_package(
    group: &mut Group,
    package: &NamedPackage,
    folders: &PackageFolders,
    kinds: &[ResourceKind],
    walk: &mut FolderWalk,
) {
    let place = folders.place(&package.source, package.install_scope);
    let rank = if package.scope == SourceScope::Temporary { LoadRank::Flag } else { LoadRank::Package };
    let bringer = |base_dir, package_root| Bringer {
        rank,
        scope: package.scope,
        source: package.entry.source(),
        origin: SourceOrigin::Package,
        base_dir: Some(base_dir),
        package_root,
    };
    let extension = |entry, base_dir, package_root| {
        let resource = Resource { entry, enabled: true };
        kinds.contains(&ResourceKind::Extension).then(|| bringer(base_dir, package_root).candidate(resource))
    };
    if place.is_dir() {
        let contents = contents::look(&place, package.entry.filter(), kinds, walk);
        let whole = bringer(&place, Some(&place));
        for kind in kinds.iter().copied() {
            for resource in contents.resources.get(kind) {
                group.add(kind, whole.candidate(resource.clone()));
            }
        }
        // A folder that is no package may be a module of its own.
        if !contents.is_package && matches!(package.source, PackageSource::Path(_)) {
            let candidate = extension(Entry::node(place.clone()), &place, Some(&place));
            candidate.into_iter().for_each(|it| group.add(ResourceKind::Extension, it));
        }
    } else if place.is_file() && matches!(package.source, PackageSource::Path(_)) {
        let folder = place.parent().unwrap_or(&place);
        let candidate = extension(Entry::node(place.clone()), folder, None);
        candidate.into_iter().for_each(|it| group.add(ResourceKind::Extension, it));
    } else if names_a_path(&package.source_text) && package.scope != SourceScope::Temporary {
        let message = format!("the package \"{}\" is not there", package.source_text);
        let diagnostic = Diagnostic::warning(DiagnosticKind::Package, message).at(&place);
        let local = if package.scope == SourceScope::Project { " --local" } else { "" };
        let hint = format!("`agentctl remove {}{local}` takes it out of the settings", package.source_text);
        walk.diagnostics.push(diagnostic.hint(hint));
    }
}
