//! From places to files, and from files to resources with a name each.

use std::{collections::HashMap, path::PathBuf};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel, SourceInfo};

use super::{
    places::{ResourceGroup, ResourceKind, ResourcePlace, ResourceQuery},
    walk::FolderWalk,
};

/// The limit for resources of a kind.
const MAX_RESOURCES: usize = 1000;

/// A file that may hold a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    pub(super) source: SourceInfo,
    /// True if a user named this very file.
    pub(super) is_named: bool,
}

/// The files that may hold resources of a kind, in the order in which they count.
pub(super) fn find(
    query: &ResourceQuery<'_>,
    kind: ResourceKind,
    about: DiagnosticKind,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<FoundFile> {
    let mut walk = FolderWalk::new(about);
    let mut found = Vec::new();
    found.extend(of_packages(query, kind, true, &mut walk));
    let mut groups = query.groups(kind);
    let flags = groups.pop();
    for mut group in groups {
        search(&mut group, about, &mut walk, &mut found);
    }
    found.extend(of_packages(query, kind, false, &mut walk));
    for mut group in flags.into_iter().chain([query.of_extensions(kind)]) {
        search(&mut group, about, &mut walk, &mut found);
    }
    if let Some(first) = found.get(MAX_RESOURCES) {
        let message = format!("there are {} files, and only the first {MAX_RESOURCES} are used", found.len());
        walk.diagnostics.push(Diagnostic::warning(about, message).at(&first.path));
        found.truncate(MAX_RESOURCES);
    }
    diagnostics.append(&mut walk.diagnostics);
    found
}

/// The files of packages that were not found before.
fn of_packages(
    query: &ResourceQuery<'_>,
    kind: ResourceKind,
    of_flag: bool,
    walk: &mut FolderWalk,
) -> Vec<FoundFile> {
    let new = query.of_packages(kind, of_flag).filter(|file| walk.is_new_file(&file.path));
    new.map(|file| FoundFile { path: file.path.clone(), source: file.source.clone(), is_named: false })
        .collect()
}

/// Adds the files of a group.
fn search(
    group: &mut ResourceGroup,
    about: DiagnosticKind,
    walk: &mut FolderWalk,
    found: &mut Vec<FoundFile>,
) {
    walk.diagnostics.append(&mut group.patterns.diagnostics);
    for place in &group.places {
        let (files, is_named) = files(place, walk, about);
        let kept = files.into_iter().filter(|file| group.patterns.keep(file));
        found.extend(kept.map(|path| FoundFile {
            source: place.source_info(&path, group.scope),
            path,
            is_named,
        }));
    }
}

/// The files of a place, and whether it is a file itself.
fn files(place: &ResourcePlace, walk: &mut FolderWalk, about: DiagnosticKind) -> (Vec<PathBuf>, bool) {
    let Some(named_by) = &place.named_by else {
        return (walk.files(&place.path, place.layout), false);
    };
    let mut complain = |message: String, hint: &str| {
        let diagnostic = Diagnostic::warning(about, message).level(DiagnosticLevel::Error);
        walk.diagnostics.push(diagnostic.at(&place.path).hint(hint));
        (Vec::new(), false)
    };
    match place.path.metadata() {
        Ok(it) if it.is_dir() => (walk.files(&place.path, place.layout), false),
        Ok(it) if it.is_file() && place.path.extension().is_some_and(|end| end == "md") => {
            let is_new = walk.is_new_file(&place.path);
            (is_new.then(|| place.path.clone()).into_iter().collect(), true)
        }
        Ok(_) => complain(
            format!("this is named by {named_by} and is neither a folder nor a Markdown file"),
            "name a folder or a file that ends with .md",
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            complain(format!("this is named by {named_by} and is not there"), "correct the path")
        }
        Err(error) => complain(
            format!("this is named by {named_by} and cannot be read: {error}"),
            "look at its permissions",
        ),
    }
}

/// Leaves of resources with one name the first, and reports the others.
pub(super) fn first_of_each_name<T>(
    resources: Vec<T>,
    what: &str,
    about: DiagnosticKind,
    of: impl Fn(&T) -> (&str, &str),
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<T> {
    let mut first: HashMap<String, String> = HashMap::new();
    let mut kept = Vec::new();
    for resource in resources {
        let (name, path) = of(&resource);
        match first.get(name) {
            Some(taken) => {
                let message = format!("the {what} \"{name}\" of {taken} comes first; this one is not used");
                diagnostics
                    .push(Diagnostic::warning(about, message).at(path).hint("give one of them another name"));
            }
            None => {
                first.insert(name.to_owned(), path.to_owned());
                kept.push(resource);
            }
        }
    }
    kept
}
