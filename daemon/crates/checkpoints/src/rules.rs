//! Which paths of a tree are left out: git's own files, ignored ones, the agent directory.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_ignore_files::{CompiledRules, RulesBudget, read};
use agentd_safe_open::AcceptedOwner;

/// The files with rules, in the order in which they win.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// The rules of a tree.
#[derive(Clone)]
pub(crate) struct Rules {
    root: PathBuf,
    /// Folders that are left out whole: absolute.
    left_out: Vec<PathBuf>,
    is_on: bool,
    budget: Arc<RulesBudget>,
    /// The rules of folders above the root, the nearest first.
    above: Vec<Arc<CompiledRules>>,
    /// The rules of a folder, by its path relative to the root.
    of: HashMap<PathBuf, Vec<Arc<CompiledRules>>>,
}

impl Rules {
    pub(crate) fn new(root: &Path, left_out: Vec<PathBuf>, is_on: bool) -> Self {
        let mut rules = Self {
            root: root.to_owned(),
            left_out,
            is_on,
            budget: Arc::new(RulesBudget::default()),
            above: Vec::new(),
            of: HashMap::new(),
        };
        // Rules count up to the top of the repository, which may be the root itself.
        let top = root.ancestors().find(|folder| folder.join(".git").exists());
        if let Some(top) = top.filter(|_| is_on) {
            for folder in root.ancestors().skip(1).take_while(|folder| folder.starts_with(top)) {
                let found = NAMES.iter().filter_map(|name| rules.compile(folder, &folder.join(name)));
                let found: Vec<_> = found.collect();
                rules.above.extend(found);
            }
            let of_repository = rules.compile(top, &top.join(".git/info/exclude"));
            rules.above.extend(of_repository);
        }
        rules
    }

    fn compile(&self, folder: &Path, file: &Path) -> Option<Arc<CompiledRules>> {
        // A file that cannot be used is not used: more is kept than need be.
        let text = read(file, AcceptedOwner::Anybody).ok().flatten()?;
        CompiledRules::compile(folder, &text, &self.budget).ok().flatten().map(Arc::new)
    }

    /// Whether a file of this name has rules.
    pub(crate) fn is_rules_file(&self, relative: &Path) -> bool {
        self.is_on && relative.file_name().is_some_and(|name| NAMES.iter().any(|it| name == *it))
    }

    /// Reads the rules of a folder again.
    pub(crate) fn load(&mut self, relative: &Path) {
        if !self.is_on {
            return;
        }
        let folder = self.root.join(relative);
        let found: Vec<_> =
            NAMES.iter().filter_map(|name| self.compile(&folder, &folder.join(name))).collect();
        if found.is_empty() {
            self.of.remove(relative);
        } else {
            self.of.insert(relative.to_owned(), found);
        }
    }

    /// Whether a path itself is left out. Its parents are not looked at.
    pub(crate) fn leave_out(&self, relative: &Path, is_folder: bool) -> bool {
        if relative.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        let path = self.root.join(relative);
        if self.left_out.contains(&path) {
            return true;
        }
        // A file with rules is never left out by one: its changes say what comes into sight.
        if self.is_rules_file(relative) || self.of.is_empty() && self.above.is_empty() {
            return false;
        }
        let inside = relative.ancestors().skip(1).filter_map(|folder| self.of.get(folder)).flatten();
        for rules in inside.chain(&self.above) {
            let verdict = rules.rules().matched(&path, is_folder);
            if !verdict.is_none() {
                return verdict.is_ignore();
            }
        }
        false
    }
}
