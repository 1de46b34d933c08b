//! The resources of one package: what its manifest names, else what lies in the usual folders, by what a user takes of it.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use agentd_config::resources::{FolderLayout, FolderWalk};
use agentd_protocol::{plain_path::without_dots, settings::PackageFilter};
use globset::GlobBuilder;

use crate::{
    entries::{Entry, in_folder},
    kinds::{PerKind, ResourceKind},
    manifest::Manifest,
    patterns::{Patterns, is_glob, is_override},
};

/// The most files that one glob of a manifest finds.
const MAX_FOUND: usize = 1000;

/// The most entries of folders that are looked at for one glob.
const MAX_LOOKED_AT: usize = 20_000;

/// The depth to which folders are searched for a glob.
const MAX_DEPTH: usize = 24;

/// A resource of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) entry: Entry,
    /// Whether it is used. One that is not keeps other entries from using the same file.
    pub(crate) enabled: bool,
}

/// The resources of a package.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) resources: PerKind<Vec<Resource>>,
    /// Whether the folder is a package: it has a manifest or one of the usual folders, or the user says what to take.
    pub(crate) is_package: bool,
}

/// Looks for the resources of these kinds in the folder of a package. Blocks.
pub(crate) fn look(
    root: &Path,
    filter: Option<&PackageFilter>,
    kinds: &[ResourceKind],
    walk: &mut FolderWalk,
) -> Contents {
    let manifest = Manifest::read(root).unwrap_or_default();
    let has_folder = || ResourceKind::ALL.into_iter().any(|kind| root.join(kind.name()).exists());
    let names_resources = manifest.names_resources();
    let is_package = filter.is_some() || names_resources || has_folder();
    let mut contents = Contents { is_package, ..Contents::default() };
    let mut package = Package { root, manifest, walk };
    for kind in kinds.iter().copied() {
        let found = match filter {
            None if names_resources => package.by_manifest(kind),
            None => package.by_folder(kind),
            Some(filter) => {
                let list = list_of(filter, kind);
                if filter.autoload == Some(false) {
                    package.changed(kind, list.unwrap_or_default())
                } else {
                    match list {
                        Some(list) => package.chosen(kind, list),
                        None => package.offered(kind).into_iter().map(|entry| (entry, true)).collect(),
                    }
                }
            }
        };
        *contents.resources.get_mut(kind) =
            found.into_iter().map(|(entry, enabled)| Resource { entry, enabled }).collect();
    }
    contents
}

fn list_of(filter: &PackageFilter, kind: ResourceKind) -> Option<&[String]> {
    let list = match kind {
        ResourceKind::Extension => &filter.extensions,
        ResourceKind::Skill => &filter.skills,
        ResourceKind::Prompt => &filter.prompts,
        ResourceKind::Theme => &filter.themes,
    };
    list.as_deref()
}

struct Package<'a> {
    root: &'a Path,
    manifest: Manifest,
    walk: &'a mut FolderWalk,
}

impl Package<'_> {
    /// What the manifest names, all of it.
    fn by_manifest(&mut self, kind: ResourceKind) -> Vec<(Entry, bool)> {
        self.named(kind).into_iter().map(|entry| (entry, true)).collect()
    }

    /// What lies in the usual folder, all of it.
    fn by_folder(&mut self, kind: ResourceKind) -> Vec<(Entry, bool)> {
        let folder = self.root.join(kind.name());
        files_of(&folder, kind, self.walk).into_iter().map(|entry| (entry, true)).collect()
    }

    /// What the package offers of a kind: what its manifest names of it, else what lies in the usual folder.
    fn offered(&mut self, kind: ResourceKind) -> Vec<Entry> {
        let is_named = self.manifest.lists.get(kind).is_some()
            || (kind == ResourceKind::Extension && !self.manifest.programs.is_empty());
        if is_named { self.named(kind) } else { files_of(&self.root.join(kind.name()), kind, self.walk) }
    }

    /// As [`Self::offered`]; an empty list of the manifest hides nothing from those who choose.
    fn choice(&mut self, kind: ResourceKind) -> Vec<Entry> {
        if self.manifest.lists.get(kind).as_ref().is_some_and(Vec::is_empty) {
            return files_of(&self.root.join(kind.name()), kind, self.walk);
        }
        self.offered(kind)
    }

    /// What a list of the settings takes of it; an empty one takes nothing.
    fn chosen(&mut self, kind: ResourceKind, list: &[String]) -> Vec<(Entry, bool)> {
        let patterns = Patterns::new(list, self.root);
        let allow = |entry: &Entry| !list.is_empty() && patterns.allow(&entry.path);
        self.choice(kind)
            .into_iter()
            .map(|entry| (allow(&entry), entry))
            .map(|(on, entry)| (entry, on))
            .collect()
    }

    /// What a list of the settings says something of.
    fn changed(&mut self, kind: ResourceKind, list: &[String]) -> Vec<(Entry, bool)> {
        if list.is_empty() {
            return Vec::new();
        }
        let patterns = Patterns::new(list, self.root);
        let say = |entry: Entry| patterns.say(&entry.path).map(|on| (entry, on));
        self.choice(kind).into_iter().filter_map(say).collect()
    }

    /// The files that the manifest names.
    fn named(&mut self, kind: ResourceKind) -> Vec<Entry> {
        let list = self.manifest.lists.get(kind).clone().unwrap_or_default();
        let mut found = Vec::new();
        for entry in list.iter().filter(|entry| !is_override(entry)) {
            if is_glob(entry) {
                for path in glob(self.root, entry) {
                    found.extend(files_at(&path, kind, self.walk));
                }
            } else {
                found.extend(files_at(&without_dots(&self.root.join(entry)), kind, self.walk));
            }
        }
        let patterns = Patterns::overrides(&list, self.root);
        found.retain(|entry| patterns.allow(&entry.path));
        if kind == ResourceKind::Extension {
            let programs = std::mem::take(&mut self.manifest.programs);
            let file = self.root.join("package.json");
            found.extend(Entry::programs(programs, self.root, &file, &mut self.walk.diagnostics));
        }
        found
    }
}

/// The resources at a path: the file itself, or those of the folder.
pub(crate) fn files_at(path: &Path, kind: ResourceKind, walk: &mut FolderWalk) -> Vec<Entry> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() => vec![Entry::node(path.to_owned())],
        Ok(about) if about.is_dir() => files_of(path, kind, walk),
        // Lists may name what is there only sometimes.
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The resources of a folder.
fn files_of(folder: &Path, kind: ResourceKind, walk: &mut FolderWalk) -> Vec<Entry> {
    let layout = match kind {
        ResourceKind::Extension => return in_folder(folder, walk),
        ResourceKind::Skill => FolderLayout::Skills,
        ResourceKind::Prompt => FolderLayout::PromptsBelow,
        ResourceKind::Theme => FolderLayout::ThemesBelow,
    };
    walk.files(folder, layout).into_iter().map(Entry::node).collect()
}

/// The files and folders below `root` that a glob matches, sorted. Hidden ones are found by their names alone, and
/// `node_modules` only where the glob names it.
fn glob(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
    // The folders before the first glob need no search.
    let fixed = pattern.split('/').take_while(|part| !is_glob(part) && !part.contains(['[', '{']));
    let fixed: Vec<&str> = fixed.collect();
    let start = without_dots(&root.join(fixed.join("/")));
    let rest = pattern.split('/').skip(fixed.len()).collect::<Vec<_>>().join("/");
    let Ok(matcher) = GlobBuilder::new(&rest).literal_separator(true).build() else { return Vec::new() };
    let mut search = GlobSearch {
        matcher: matcher.compile_matcher(),
        depth: if rest.contains("**") { MAX_DEPTH } else { rest.split('/').count() },
        with_modules: rest.contains("node_modules"),
        left: MAX_LOOKED_AT,
        found: Vec::new(),
    };
    search.folder(&start, Path::new(""), 0);
    search.found.sort();
    search.found
}

struct GlobSearch {
    matcher: globset::GlobMatcher,
    depth: usize,
    with_modules: bool,
    left: usize,
    found: Vec<PathBuf>,
}

impl GlobSearch {
    fn folder(&mut self, folder: &Path, below: &Path, depth: usize) {
        // A folder that cannot be read matches nothing.
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut names: Vec<_> = entries.flatten().take(self.left).map(|entry| entry.file_name()).collect();
        names.sort();
        self.left = self.left.saturating_sub(names.len());
        for name in names {
            let is_module_folder = name == OsStr::new("node_modules") && !self.with_modules;
            if name.as_encoded_bytes().starts_with(b".") || is_module_folder {
                continue;
            }
            if self.found.len() >= MAX_FOUND {
                return;
            }
            let (path, below) = (folder.join(&name), below.join(&name));
            if self.matcher.is_match(&below) {
                self.found.push(path.clone());
            }
            // Links could lead around.
            if depth + 1 < self.depth && path.is_dir() && !path.is_symlink() {
                self.folder(&path, &below, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::resources::DiagnosticKind;
    use serde_json::json;

    use super::*;
    use crate::testing::TestFolder;

    /// `kind path`, with `-` before those that are not used.
    fn shown(place: &TestFolder, filter: Option<serde_json::Value>) -> (Vec<String>, bool) {
        let filter: Option<PackageFilter> = filter.map(|value| serde_json::from_value(value).unwrap());
        let mut walk = FolderWalk::new(DiagnosticKind::Package);
        let contents = look(&place.path("p"), filter.as_ref(), &ResourceKind::ALL, &mut walk);
        let shown = |kind: ResourceKind| {
            let of_kind = contents.resources.get(kind).iter().map(move |resource| {
                let sign = if resource.enabled { "" } else { "-" };
                format!("{sign}{} {}", &kind.name()[..1], place.below(&resource.entry.path).replace("p/", ""))
            });
            of_kind.collect::<Vec<_>>()
        };
        (ResourceKind::ALL.into_iter().flat_map(shown).collect(), contents.is_package)
    }

    fn check(place: &TestFolder, filter: Option<serde_json::Value>, expected: &[&str]) {
        assert_eq!(shown(place, filter.clone()).0, expected, "{filter:?}");
    }

    fn conventional() -> TestFolder {
        TestFolder::new(&[
            ("p/package.json", r#"{"name":"p"}"#),
            ("p/extensions/a.ts", ""),
            ("p/extensions/b/index.ts", ""),
            ("p/skills/s/SKILL.md", ""),
            ("p/skills/one.md", ""),
            ("p/prompts/sub/r.md", ""),
            ("p/themes/dark.json", ""),
            ("p/other/x.ts", ""),
        ])
    }

    const ALL: [&str; 6] = [
        "e extensions/a.ts",
        "e extensions/b/index.ts",
        "s skills/one.md",
        "s skills/s/SKILL.md",
        "p prompts/sub/r.md",
        "t themes/dark.json",
    ];

    #[test]
    fn the_usual_folders_count_without_a_manifest() {
        let place = conventional();
        check(&place, None, &ALL);
        assert!(shown(&place, None).1);
        let bare = TestFolder::new(&[("p/index.ts", "")]);
        assert_eq!(shown(&bare, None), (Vec::new(), false));
    }

    #[test]
    fn users_take_what_they_want() {
        let place = conventional();
        check(&place, Some(json!({"source": "p"})), &ALL);
        check(
            &place,
            Some(
                json!({"source": "p", "extensions": ["extensions/*.ts"], "skills": [], "themes": ["-themes/dark.json"]}),
            ),
            &[
                "e extensions/a.ts",
                "-e extensions/b/index.ts",
                "-s skills/one.md",
                "-s skills/s/SKILL.md",
                "p prompts/sub/r.md",
                "-t themes/dark.json",
            ],
        );
        check(
            &place,
            Some(
                json!({"source": "p", "autoload": false, "extensions": ["-extensions/a.ts"], "skills": ["skills/s"]}),
            ),
            &["-e extensions/a.ts", "s skills/s/SKILL.md"],
        );
    }

    #[test]
    fn a_manifest_names_what_there_is() {
        let place = TestFolder::new(&[
            (
                "p/package.json",
                r#"{"pi":{"extensions":["./src/*.ts","!src/skip.ts","../q/e.ts"],"skills":["k",".dot/SKILL.md"],"prompts":[]},
                    "agentd":{"extensions":[{"command":["./bin/x"]}]}}"#,
            ),
            ("p/src/b.ts", ""),
            ("p/src/a.ts", ""),
            ("p/src/skip.ts", ""),
            ("p/src/.hidden.ts", ""),
            ("p/src/deep/c.ts", ""),
            ("q/e.ts", ""),
            ("p/k/SKILL.md", ""),
            ("p/.dot/SKILL.md", ""),
            ("p/prompts/r.md", ""),
            ("p/themes/t.json", ""),
        ]);
        check(
            &place,
            None,
            &["e src/a.ts", "e src/b.ts", "e q/e.ts", "e bin/x", "s k/SKILL.md", "s .dot/SKILL.md"],
        );
        check(
            &place,
            Some(json!({"source": "p", "extensions": ["-bin/x", "+src/a.ts"], "prompts": ["r.md"]})),
            &[
                "e src/a.ts",
                "e src/b.ts",
                "e q/e.ts",
                "-e bin/x",
                "s k/SKILL.md",
                "s .dot/SKILL.md",
                "p prompts/r.md",
                "t themes/t.json",
            ],
        );
    }

    #[test]
    fn globs_reach_as_deep_as_they_say() {
        let place = TestFolder::new(&[
            ("r/a/x.md", ""),
            ("r/a/b/x.md", ""),
            ("r/node_modules/m/x.md", ""),
            ("r/x.md", ""),
        ]);
        let check = |pattern: &str, expected: &[&str]| {
            let found = glob(&place.path("r"), pattern);
            let found: Vec<_> = found.iter().map(|path| place.below(path)).collect();
            assert_eq!(found, expected, "{pattern}");
        };
        check("*/x.md", &["r/a/x.md"]);
        check("**/*.md", &["r/a/b/x.md", "r/a/x.md", "r/x.md"]);
        check("a/**/x.md", &["r/a/b/x.md", "r/a/x.md"]);
        check("node_modules/*/x.md", &["r/node_modules/m/x.md"]);
        check("./?.md", &["r/x.md"]);
        check("a[", &[]);
    }
}
