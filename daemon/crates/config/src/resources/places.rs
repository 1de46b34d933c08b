//! The folders that are searched for skills and prompt templates, their order, and the source that a file is listed with.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use agentd_protocol::{
    plain_path::without_dots,
    resources::{Diagnostic, DiagnosticKind, SourceInfo, SourceOrigin, SourceScope},
    settings::{PackageSetting, matches_pattern},
};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::walk::{FolderLayout, SKILL_FILE};
use crate::{AgentDir, Environment, ProjectFolders, project_skill_folders, resolve_path};

/// The inputs for a session's resources.
#[derive(Debug, Clone, Copy)]
pub struct ResourceQuery<'a> {
    /// The user's own are in it.
    pub agent_dir: &'a AgentDir,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Its project folders.
    pub folders: &'a ProjectFolders,
    /// True if those of the project count.
    pub trusted: bool,
    /// Names the home directory.
    pub environment: &'a Environment,
    /// The paths of the settings.
    pub lists: &'a ResourceLists,
    /// The paths of the session's flags.
    pub flags: &'a ResourceFlags,
    /// The skills and prompt templates of packages.
    pub packages: &'a PackageResources,
    /// The skills and prompt templates that the session's extensions name. They come last.
    pub of_extensions: &'a ExtensionResources,
    /// The ids of those that are switched off: `skill:NAME` and `prompt:NAME`, with `*` for any part.
    pub disabled: &'a [String],
    /// The names of the only skills that count, with `*` for any part; empty for all.
    pub included_skills: &'a [String],
}

/// The files and folders that extensions name for skills and prompt templates, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtensionResources {
    /// Of skills.
    pub skills: Vec<ExtensionPlace>,
    /// Of prompt templates.
    pub prompts: Vec<ExtensionPlace>,
}

/// A file or folder that an extension names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionPlace {
    /// The path, as the extension gave it.
    pub path: String,
    /// The extension, as errors name it.
    pub extension: PathBuf,
}

/// The skills and prompt templates of packages, which are found by the crate of packages. Those of packages that `--extension` names
/// come before all others, those of the settings' packages behind the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackageResources {
    /// Files of skills, in their order.
    pub skills: Vec<PackageFile>,
    /// Files of prompt templates, in their order.
    pub prompts: Vec<PackageFile>,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its source.
    pub source: SourceInfo,
    /// True for a package that `--extension` names. `--no-skills` and its like leave it.
    pub is_of_flag: bool,
}

/// The flags of a session that are about resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceFlags {
    /// `--skill`, as often as given: files or folders.
    pub skills: Vec<String>,
    /// `--no-skills`: only those of `--skill`.
    pub no_skills: bool,
    /// `--prompt-template`, as often as given: files or folders.
    pub prompts: Vec<String>,
    /// `--no-prompt-templates`: only those of `--prompt-template`.
    pub no_prompts: bool,
    /// `--extension`, as often as given: files, folders, sources of packages, or `builtin:NAME`.
    pub extensions: Vec<String>,
    /// `--no-extensions`: only those of `--extension`.
    pub no_extensions: bool,
}

/// The settings `skills`, `prompts`, `extensions` and `packages`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceLists {
    /// The paths of the user's settings.
    pub user: ListedPaths,
    /// The paths of the project's settings; empty when it is not trusted.
    pub project: ListedPaths,
}

/// The paths of one settings file. Each entry is a file or a folder, or excludes or includes files: `!glob`, `+path`, `-path`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedPaths {
    /// The folder of the settings file, from which relative paths count.
    pub base: PathBuf,
    /// `skills`.
    pub skills: Vec<String>,
    /// `prompts`.
    pub prompts: Vec<String>,
    /// `extensions`.
    pub extensions: Vec<String>,
    /// `packages`.
    pub packages: Vec<PackageSetting>,
}

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceKind {
    Skill,
    Prompt,
}

impl ResourceKind {
    /// The name of the folder, and of the setting.
    fn name(self) -> &'static str {
        match self {
            Self::Skill => "skills",
            Self::Prompt => "prompts",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Skill => "--skill",
            Self::Prompt => "--prompt-template",
        }
    }
}

/// A file or folder to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourcePlace {
    pub(super) path: PathBuf,
    /// The files that count, if it is a folder.
    pub(super) layout: FolderLayout,
    /// The setting or flag that names it; `None` for a folder that may be missing.
    pub(super) named_by: Option<String>,
    source: Cow<'static, str>,
    base: Base,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    None,
    Folder(PathBuf),
    /// The folder of the file itself.
    OfFile,
}

/// Places that are one party's: the project's, the user's, or those of flags.
#[derive(Debug, Clone)]
pub(super) struct ResourceGroup {
    pub(super) scope: SourceScope,
    pub(super) places: Vec<ResourcePlace>,
    /// The patterns that apply to all of them.
    pub(super) patterns: Patterns,
}

impl ResourceQuery<'_> {
    /// Returns whether a resource is not switched off.
    pub(super) fn is_on(&self, kind: ResourceKind, name: &str) -> bool {
        let prefix = match kind {
            ResourceKind::Skill => "skill:",
            ResourceKind::Prompt => "prompt:",
        };
        let id = format!("{prefix}{name}");
        let is_left_out = kind == ResourceKind::Skill
            && !self.included_skills.is_empty()
            && !self.included_skills.iter().any(|entry| matches_pattern(entry, name));
        !is_left_out && !self.disabled.iter().any(|entry| matches_pattern(entry, &id))
    }

    /// The files of packages that count, those of a flag or the others.
    pub(super) fn of_packages(
        &self,
        kind: ResourceKind,
        of_flag: bool,
    ) -> impl Iterator<Item = &PackageFile> {
        let (none, files) = match kind {
            ResourceKind::Skill => (self.flags.no_skills, &self.packages.skills),
            ResourceKind::Prompt => (self.flags.no_prompts, &self.packages.prompts),
        };
        files.iter().filter(move |file| file.is_of_flag == of_flag && (of_flag || !none))
    }

    /// The places to search, in order: of two resources with one name the first counts. The last group is that of the flags.
    pub(super) fn groups(&self, kind: ResourceKind) -> Vec<ResourceGroup> {
        let (none, flags) = match kind {
            ResourceKind::Skill => (self.flags.no_skills, &self.flags.skills),
            ResourceKind::Prompt => (self.flags.no_prompts, &self.flags.prompts),
        };
        let mut groups = Vec::new();
        if !none && self.trusted {
            groups.push(self.of_project(kind));
        }
        if !none {
            groups.push(self.of_user(kind));
        }
        let named = flags.iter().map(|text| ResourcePlace {
            path: without_dots(&resolve_path(text, self.cwd, self.environment)),
            layout: if kind == ResourceKind::Skill { FolderLayout::Skills } else { FolderLayout::Prompts },
            named_by: Some(kind.flag().to_owned()),
            source: Cow::Borrowed("local"),
            base: Base::OfFile,
        });
        let patterns = Patterns::default();
        groups.push(ResourceGroup { scope: SourceScope::Temporary, places: named.collect(), patterns });
        groups
    }

    /// The places that extensions name.
    pub(super) fn of_extensions(&self, kind: ResourceKind) -> ResourceGroup {
        let (layout, places) = match kind {
            ResourceKind::Skill => (FolderLayout::Skills, &self.of_extensions.skills),
            ResourceKind::Prompt => (FolderLayout::Prompts, &self.of_extensions.prompts),
        };
        let named = places.iter().map(|place| ResourcePlace {
            path: without_dots(&resolve_path(&place.path, self.cwd, self.environment)),
            layout,
            named_by: Some(format!("the extension {}", place.extension.display())),
            source: Cow::Owned(extension_label(&place.extension)),
            base: place.extension.parent().map_or(Base::None, |folder| Base::Folder(folder.to_owned())),
        });
        let patterns = Patterns::default();
        ResourceGroup { scope: SourceScope::Temporary, places: named.collect(), patterns }
    }

    fn of_project(&self, kind: ResourceKind) -> ResourceGroup {
        let (mut places, patterns) = self.listed(kind, &self.lists.project);
        places.extend(self.folders.each().map(|folder| always(kind, folder)));
        if kind == ResourceKind::Skill {
            places.extend(project_skill_folders(self.cwd, self.environment).map(|folder| shared(&folder)));
        }
        ResourceGroup { scope: SourceScope::Project, places, patterns }
    }

    fn of_user(&self, kind: ResourceKind) -> ResourceGroup {
        let (mut places, patterns) = self.listed(kind, &self.lists.user);
        places.push(always(kind, self.agent_dir.path()));
        if kind == ResourceKind::Skill
            && let Some(home) = self.environment.non_empty("HOME")
        {
            places.push(shared(&Path::new(home).join(".agents")));
        }
        ResourceGroup { scope: SourceScope::User, places, patterns }
    }

    /// The paths that a settings file names, and its patterns.
    fn listed(&self, kind: ResourceKind, listed: &ListedPaths) -> (Vec<ResourcePlace>, Patterns) {
        let entries = match kind {
            ResourceKind::Skill => &listed.skills,
            ResourceKind::Prompt => &listed.prompts,
        };
        let (patterns, paths): (Vec<&String>, Vec<&String>) =
            entries.iter().partition(|entry| entry.starts_with(['!', '+', '-']));
        let places = paths.into_iter().map(|text| ResourcePlace {
            path: without_dots(&resolve_path(text, &listed.base, self.environment)),
            layout: if kind == ResourceKind::Skill {
                FolderLayout::Skills
            } else {
                FolderLayout::PromptsBelow
            },
            named_by: Some(format!(
                "the setting \"{}\" of {}",
                kind.name(),
                listed.base.join("settings.json").display()
            )),
            source: Cow::Borrowed("local"),
            base: Base::None,
        });
        (places.collect(), Patterns::new(&patterns, &listed.base, kind.name()))
    }
}

/// The folder of resources in a folder of configuration.
fn always(kind: ResourceKind, folder: &Path) -> ResourcePlace {
    ResourcePlace {
        path: folder.join(kind.name()),
        layout: if kind == ResourceKind::Skill { FolderLayout::Skills } else { FolderLayout::Prompts },
        named_by: None,
        source: Cow::Borrowed("auto"),
        base: Base::Folder(folder.to_path_buf()),
    }
}

/// The folder of skills in a folder `.agents`, which is for every agent.
fn shared(folder: &Path) -> ResourcePlace {
    ResourcePlace { layout: FolderLayout::SharedSkills, ..always(ResourceKind::Skill, folder) }
}

impl ResourcePlace {
    /// The source that a file found here is listed with.
    pub(super) fn source_info(&self, file: &Path, scope: SourceScope) -> SourceInfo {
        let base = match &self.base {
            Base::None => None,
            Base::Folder(folder) => Some(folder.as_path()),
            Base::OfFile => file.parent(),
        };
        SourceInfo {
            path: file.display().to_string(),
            source: self.source.clone().into_owned(),
            scope,
            origin: SourceOrigin::TopLevel,
            base_dir: base.map(|folder| folder.display().to_string()),
        }
    }
}

/// The source of what an extension names, as pi words it.
fn extension_label(extension: &Path) -> String {
    let name = extension.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".ts").or(name.strip_suffix(".js")).unwrap_or(&name);
    format!("extension:{name}")
}

/// The patterns of one list.
#[derive(Debug, Clone, Default)]
pub(super) struct Patterns {
    base: PathBuf,
    out: GlobSet,
    exactly_out: Vec<String>,
    exactly_in: Vec<String>,
    /// The faults of the patterns.
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Patterns {
    /// `entries` begin with `!`, `+` or `-`; paths in them are taken from `base`, the folder of the settings file.
    pub(super) fn new(entries: &[&String], base: &Path, setting: &str) -> Self {
        let mut patterns = Self { base: base.to_path_buf(), ..Self::default() };
        let mut globs = GlobSetBuilder::new();
        for entry in entries {
            let (sign, text) = entry.split_at(1);
            let text = text.strip_prefix("./").unwrap_or(text).trim_end_matches('/').to_owned();
            match sign {
                "+" => patterns.exactly_in.push(text),
                "-" => patterns.exactly_out.push(text),
                _ => match GlobBuilder::new(&text).literal_separator(true).build() {
                    Ok(glob) => {
                        globs.add(glob);
                    }
                    Err(error) => patterns.warn(setting, entry, error.kind()),
                },
            }
        }
        match globs.build() {
            Ok(globs) => patterns.out = globs,
            Err(error) => patterns.warn(setting, "!", error.kind()),
        }
        patterns
    }

    fn warn(&mut self, setting: &str, entry: &str, why: &globset::ErrorKind) {
        let message = format!("the entry \"{entry}\" of \"{setting}\" is not used: {why}");
        let diagnostic = Diagnostic::warning(DiagnosticKind::Settings, message);
        self.diagnostics.push(diagnostic.at(self.base.join("settings.json")));
    }

    /// Returns whether a file stays.
    pub(super) fn keep(&self, file: &Path) -> bool {
        let names = self.names(file);
        let exactly = |list: &[String]| list.iter().any(|entry| names.contains(entry));
        if exactly(&self.exactly_out) {
            return false;
        }
        exactly(&self.exactly_in) || !names.iter().any(|name| self.out.is_match(name))
    }

    /// The names by which a pattern can match a file: its path, its path from the settings file, its name; and for a skill
    /// those of its folder.
    fn names(&self, file: &Path) -> Vec<String> {
        let is_skill = file.file_name().is_some_and(|name| name == SKILL_FILE);
        let folder = file.parent().filter(|_| is_skill);
        let mut names = Vec::new();
        for path in [Some(file), folder].into_iter().flatten() {
            let below = path.strip_prefix(&self.base).ok();
            let name = path.file_name().map(Path::new);
            names.extend([Some(path), below, name].into_iter().flatten().map(|it| it.display().to_string()));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[&str], kept: &[&str], dropped: &[&str]) {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let patterns = Patterns::new(&entries.iter().collect::<Vec<_>>(), Path::new("/a"), "skills");
        assert!(patterns.diagnostics.is_empty(), "{:?}", patterns.diagnostics);
        for (paths, expected) in [(kept, true), (dropped, false)] {
            for path in paths {
                assert_eq!(patterns.keep(Path::new(path)), expected, "{path} {entries:?}");
            }
        }
    }

    #[test]
    fn globs_and_exact_paths() {
        check(&[], &["/a/skills/x/SKILL.md"], &[]);
        check(&["!skills/x*"], &["/a/skills/y/SKILL.md"], &["/a/skills/x/SKILL.md", "/a/skills/xy.md"]);
        check(&["!**/k2"], &["/b/k1/SKILL.md", "/b/k2/notes.md"], &["/b/k2/SKILL.md", "/a/k2/SKILL.md"]);
        check(&["!*.md", "+keep.md"], &["/b/keep.md"], &["/b/x.md", "/a/x/SKILL.md"]);
        check(&["-./skills/x/", "+skills/x"], &["/a/skills/y/SKILL.md"], &["/a/skills/x/SKILL.md"]);
        check(&["-/b/x.md"], &["/c/x.md"], &["/b/x.md"]);
    }

    #[test]
    fn a_bad_glob_is_told() {
        let entry = "!a[".to_owned();
        let patterns = Patterns::new(&[&entry], Path::new("/a"), "skills");
        assert!(patterns.keep(Path::new("/a/a[")));
        let said = patterns.diagnostics[0].to_string();
        assert!(
            said.starts_with("/a/settings.json: the entry \"!a[\" of \"skills\" is not used: "),
            "{said}"
        );
    }
}
