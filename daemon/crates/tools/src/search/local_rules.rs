//! Reads ignore files on this machine, which come with any folder that is searched.

use std::{ffi::OsStr, path::Path, sync::Arc};

use agentd_ignore_files::{CompiledRules, RulesBudget, read_along};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, owner_of};
use ignore::overrides::Override;

use super::{
    git,
    rules::{FolderRules, UnusedFiles, WalkRules, is_left_out},
};

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
        rules.global = git::global(&rules);
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
            if names.repository { git::exclude(folder, self) } else { String::new() },
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
