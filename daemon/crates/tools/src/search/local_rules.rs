//! Reads ignore files on this machine, which come with any folder that is searched.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_ignore_files::{CompiledRules, RulesBudget, UnusedIgnoreFile, read_along};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules, owner_of};
use ignore::overrides::Override;

use super::rules::{FolderRules, UnusedFiles, WalkRules, is_left_out};

/// The rules of a walk on this machine.
pub(super) struct LocalRules<'a> {
    /// A path without links.
    pub(super) root: &'a Path,
    own_ignore_file: &'static str,
    require_git: bool,
    overrides: Override,
    pub(super) budget: Arc<RulesBudget>,
    pub(super) unused: &'a UnusedFiles,
    /// Whose ignore files count: this user's, root's, and those of the searched folder's owner. In a folder for all,
    /// such as `/tmp`, other users could otherwise decide what is found.
    pub(super) owner: AcceptedOwner,
    /// The user's rules for all repositories.
    global: Option<CompiledRules>,
}

/// Which ignore files and repositories a folder has, by name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Names {
    own: bool,
    plain: bool,
    git: bool,
    repository: bool,
    is_jujutsu: bool,
}

impl<'a> LocalRules<'a> {
    pub(super) fn new(rules: WalkRules<'a>) -> Self {
        let WalkRules { root, own_ignore_file, require_git, overrides, unused } = rules;
        let owner = owner_of(root).map_or(AcceptedOwner::Own, AcceptedOwner::OwnOr);
        let budget = Arc::new(RulesBudget::default());
        let mut rules =
            Self { root, own_ignore_file, require_git, overrides, budget, unused, owner, global: None };
        rules.global = global(&rules);
        rules
    }

    /// The rules of the folders above the root, which apply in it, too.
    pub(super) fn above_root(&self) -> Option<Arc<FolderRules>> {
        let mut folders: Vec<&Path> = self.root.ancestors().skip(1).collect();
        folders.reverse();
        folders.into_iter().fold(None, |above, folder| {
            let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
            let names = Names {
                own: has(self.own_ignore_file),
                plain: has(".ignore"),
                git: has(".gitignore"),
                repository: has(".git"),
                is_jujutsu: has(".jj"),
            };
            Some(self.enter(folder, names, above.as_ref()))
        })
    }

    /// Notes the name of an entry of a folder.
    pub(super) fn note(&self, names: &mut Names, name: &OsStr) {
        let bytes = name.as_encoded_bytes();
        if bytes.first() != Some(&b'.') {
            return;
        }
        match bytes {
            b".ignore" => names.plain = true,
            b".gitignore" => names.git = true,
            b".git" => names.repository = true,
            b".jj" => names.is_jujutsu = true,
            _ if bytes == self.own_ignore_file.as_bytes() => names.own = true,
            _ => {}
        }
    }

    /// The rules in a folder with these names.
    pub(super) fn enter(
        &self,
        folder: &Path,
        names: Names,
        above: Option<&Arc<FolderRules>>,
    ) -> Arc<FolderRules> {
        let read = |has: bool, name: &str| {
            if has { self.text(&folder.join(name), LinkPolicy::Refused) } else { String::new() }
        };
        let texts = [
            read(names.own, self.own_ignore_file),
            read(names.plain, ".ignore"),
            read(names.git, ".gitignore"),
            if names.repository { exclude(folder, self) } else { String::new() },
        ];
        let is_repository = names.repository || names.is_jujutsu;
        FolderRules::below(above, folder, texts, is_repository, (&self.budget, self.unused))
    }

    /// The text of an ignore file; empty without one, and when it is not used.
    pub(super) fn text(&self, path: &Path, links: LinkPolicy<'_>) -> String {
        match read_along(path, links, self.owner) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                self.unused.add(path, &error.into());
                String::new()
            }
        }
    }

    /// Whether an entry of a folder with these rules is left out.
    pub(super) fn leaves_out(&self, path: &Path, is_folder: bool, rules: &FolderRules) -> bool {
        is_left_out(&self.overrides, (path, is_folder), || {
            let global = self.global.as_ref().map(CompiledRules::rules);
            rules.ignore(path, is_folder, self.require_git, global)
        })
    }
}

/// The longest pointer file that is read, in bytes: git writes one line.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// The text of `info/exclude` of the repository at `folder`; empty without one. In a worktree, that of the main
/// repository.
fn exclude(folder: &Path, rules: &LocalRules<'_>) -> String {
    let git = folder.join(".git");
    let Some(repository) = (if git.is_dir() { Some(git) } else { common_folder(folder, &git, rules.owner) })
    else {
        return String::new();
    };
    rules.text(&repository.join("info/exclude"), LinkPolicy::Beneath(&repository))
}

/// The main repository's `.git` of a worktree: there `.git` is a file with `gitdir: FOLDER`, and that folder has a file
/// with the path of the common one.
fn common_folder(worktree: &Path, pointer: &Path, owner: AcceptedOwner) -> Option<PathBuf> {
    let read = |path: &Path| {
        let read = OpenRules::new(LinkPolicy::Refused).owner(owner).max_bytes(MAX_POINTER_BYTES).read(path);
        Some(String::from_utf8_lossy(&read.ok()??).into_owned())
    };
    let pointer = read(pointer)?;
    let of_worktree = worktree.join(pointer.lines().next()?.strip_prefix("gitdir: ")?);
    let common = read(&of_worktree.join("commondir"))?;
    Some(of_worktree.join(common.lines().next()?))
}

/// The user's ignore file for all repositories: `core.excludesFile` of git's configuration, or `git/ignore` beside it.
fn global(rules: &LocalRules<'_>) -> Option<CompiledRules> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let config = env::var_os("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(home.as_ref()?.join(".config")));
    let named = [
        home.as_ref().map(|home| home.join(".gitconfig")),
        config.as_ref().map(|config| config.join("git/config")),
    ]
    .into_iter()
    .flatten()
    .find_map(|file| {
        let text = read_along(&file, LinkPolicy::Followed, AcceptedOwner::Own).ok()??;
        excludes_file(&text, home.as_deref())
    });
    let path = named.or_else(|| Some(config?.join("git/ignore")))?;
    let compiled = read_along(&path, LinkPolicy::Followed, AcceptedOwner::Own)
        .map_err(UnusedIgnoreFile::from)
        .and_then(|text| Ok(CompiledRules::compile(rules.root, &text.unwrap_or_default(), &rules.budget)?));
    compiled.unwrap_or_else(|error| {
        rules.unused.add(&path, &error);
        None
    })
}

/// The user's ignore file in a git configuration.
fn excludes_file(config: &str, home: Option<&Path>) -> Option<PathBuf> {
    let mut is_core = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("[core]"));
        }
        let entry = line
            .strip_prefix('[')
            .map_or(line, |rest| rest.split_once(']').map_or("", |(_, entry)| entry.trim()));
        if let Some((key, value)) = entry.split_once('=')
            && is_core
            && key.trim().eq_ignore_ascii_case("excludesfile")
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    let path = found.filter(|path| !path.is_empty())?;
    match path.strip_prefix("~/") {
        Some(below) => Some(home?.join(below)),
        None => Some(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::search::local_rules::*;

    #[test]
    fn the_users_ignore_file_is_found_in_gits_configuration() {
        let found = |config: &str| excludes_file(config, Some(Path::new("/home/u")));
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(found("[core]\n\texcludesFile = ~/ignored\n"), path("/home/u/ignored"));
        assert_eq!(found("[CORE]\nexcludesfile=\"/a b\"\n[user]\nexcludesfile = /no\n"), path("/a b"));
        assert_eq!(found("[core] excludesfile = /one\n"), path("/one"));
        assert_eq!(found("[core]\nexcludesfile = /one\nexcludesfile = /two\n"), path("/two"));
        assert_eq!(found("[corelike]\nexcludesfile = /no\n"), None);
        assert_eq!(found("[core]\nexcludesfile =\n"), None);
    }
}
