//! Decides by ignore files what a walk leaves out.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_ignore_files::{CompiledRules, RulesBudget, UnusedIgnoreFile};
use ignore::{Match, gitignore::Gitignore, overrides::Override};

/// Unused ignore files that are named; others are counted.
const MOST_NAMED: usize = 3;

/// The caller's rules for a walk.
pub(crate) struct WalkRules<'a> {
    pub(crate) root: &'a Path,
    /// The name of an additional ignore file.
    pub(crate) own_ignore_file: &'static str,
    /// Whether `.gitignore` counts only in git repositories, up to their root.
    pub(crate) require_git: bool,
    /// Globs that precede all ignore files.
    pub(crate) overrides: Override,
    /// Collects ignore files that are not used.
    pub(crate) unused: &'a UnusedFiles,
}

/// The kinds of ignore files, the most specific first: the walk's own, `.ignore`, `.gitignore`, `.git/info/exclude`.
const KINDS: usize = 4;

/// The number of kinds that do not belong to git.
const KINDS_BESIDE_GIT: usize = 2;

/// The rules of a folder: those of its own ignore files, and of the folders above it.
pub(super) struct FolderRules {
    of: [Option<CompiledRules>; KINDS],
    is_repository: bool,
    above: Option<Arc<Self>>,
}

impl FolderRules {
    /// The rules of a folder below `above`, from the texts of its ignore files. A folder without rules of its own
    /// shares those above it.
    pub(super) fn below(
        above: Option<&Arc<Self>>,
        folder: &Path,
        texts: [String; KINDS],
        is_repository: bool,
        (budget, unused): (&Arc<RulesBudget>, &UnusedFiles),
    ) -> Arc<Self> {
        let of = texts.map(|text| {
            if text.is_empty() {
                return None;
            }
            CompiledRules::compile(folder, &text, budget).unwrap_or_else(|error| {
                unused.add(folder, &error.into());
                None
            })
        });
        match above {
            Some(above) if !is_repository && of.iter().all(Option::is_none) => Arc::clone(above),
            _ => Arc::new(Self { of, is_repository, above: above.cloned() }),
        }
    }

    /// These rules, then those above them.
    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.above.as_deref())
    }

    pub(super) fn is_in_repository(&self) -> bool {
        self.levels().any(|rules| rules.is_repository)
    }

    /// Whether an entry of the folder is left out. Among files of one kind the innermost verdict counts, among kinds
    /// the more specific; `global`, the user's own file for git, comes last.
    pub(super) fn ignore(
        &self,
        path: &Path,
        is_folder: bool,
        require_git: bool,
        global: Option<&Gitignore>,
    ) -> bool {
        let counts_git = !require_git || self.is_in_repository();
        let mut verdicts = [Verdict::None; KINDS];
        let mut left_repository = false;
        for rules in self.levels() {
            let kinds = if counts_git && !left_repository { KINDS } else { KINDS_BESIDE_GIT };
            for (verdict, globs) in verdicts.iter_mut().zip(&rules.of).take(kinds) {
                if let Some(globs) = globs {
                    verdict.settle(globs.rules(), path, is_folder);
                }
            }
            left_repository |= require_git && rules.is_repository;
        }
        let mut last = Verdict::None;
        if let Some(global) = global.filter(|_| counts_git) {
            last.settle(global, path, is_folder);
        }
        verdicts.into_iter().chain([last]).find(|verdict| *verdict != Verdict::None) == Some(Verdict::Ignore)
    }
}

/// Whether an entry is left out, by the caller's globs or by rules.
pub(super) fn is_left_out(
    overrides: &Override,
    (path, is_folder): (&Path, bool),
    by_rules: impl FnOnce() -> bool,
) -> bool {
    match overrides.matched(path, is_folder) {
        Match::None => by_rules(),
        found => found.is_ignore(),
    }
}

/// The verdict of the files of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    None,
    Ignore,
    Keep,
}

impl Verdict {
    fn settle(&mut self, globs: &Gitignore, path: &Path, is_folder: bool) {
        if *self == Self::None {
            *self = match globs.matched(path, is_folder) {
                Match::None => Self::None,
                Match::Ignore(_) => Self::Ignore,
                Match::Whitelist(_) => Self::Keep,
            };
        }
    }
}

/// Ignore files that a search does not use, so that it may find more than expected.
#[derive(Debug, Default)]
pub(crate) struct UnusedFiles(Mutex<Unused>);

#[derive(Debug, Default)]
struct Unused {
    named: Vec<String>,
    count: usize,
}

impl UnusedFiles {
    /// Adds one: the file, or the folder that its rules are for.
    pub(super) fn add(&self, place: &Path, why: &UnusedIgnoreFile) {
        let mut unused = self.lock();
        unused.count += 1;
        if unused.named.len() < MOST_NAMED {
            unused.named.push(match why {
                UnusedIgnoreFile::File(error) => error.to_string(),
                UnusedIgnoreFile::Rules(error) => format!("one of {} {error}", place.display()),
            });
        }
    }

    /// The notice for the model and the user; `None` when every file is used.
    pub(crate) fn notice(&self) -> Option<String> {
        let unused = self.lock();
        let more = unused.count - unused.named.len();
        let names = unused.named.join("; ");
        match (unused.count, more) {
            (0, _) => None,
            (1, _) => Some(format!("An ignore file was not used: {names}")),
            (count, 0) => Some(format!("{count} ignore files were not used: {names}")),
            (count, more) => Some(format!("{count} ignore files were not used: {names}; and {more} more")),
        }
    }

    /// No holder of this lock leaves a half-made change.
    fn lock(&self) -> MutexGuard<'_, Unused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
