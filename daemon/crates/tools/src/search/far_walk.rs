//! The files and folders below a folder of any file system, in the order of [`super::Walk`] and by the same rules.

use std::{
    collections::VecDeque,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
    overrides::Override,
};

use super::WalkRules;
use crate::operations::{FileKind, FileSystem, Listed};

/// Bytes of an ignore file that are looked at.
const MAX_IGNORE_FILE: u64 = 1 << 20;

/// Something below the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FarEntry {
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
}

/// Depth first; the entries of a folder by the bytes of their names. Folders are asked for in batches, those that come next
/// first, so in memory are the names of one batch and of the folders on the way down. Ignore files of the folder and of those
/// above it count; git's settings of the user do not. Whether the folder belongs to a repository is found out on the way: where
/// `require_git` is not set, it counts as set in one.
///
/// An error is a folder that could not be read, or the end: the files are out of reach.
pub(crate) struct FarWalk<'a> {
    files: &'a dyn FileSystem,
    own_ignore_file: &'static str,
    require_git: bool,
    overrides: Override,
    /// What is to come, the next one last.
    left: Vec<Waiting>,
    /// Errors that come before that.
    errors: VecDeque<io::Error>,
}

enum Waiting {
    Entry(FarEntry, Arc<Rules>),
    /// What is in a folder whose entry is behind us, or why that is not known.
    Inside(io::Result<Vec<Listed>>, Arc<Rules>, PathBuf),
}

/// The rules that hold in a folder.
struct Rules {
    own: Gitignore,
    plain: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
    above: Option<Arc<Rules>>,
}

impl<'a> FarWalk<'a> {
    /// # Errors
    /// When nothing can be asked.
    pub(crate) fn new(files: &'a dyn FileSystem, rules: WalkRules<'_>) -> io::Result<Self> {
        let WalkRules { root, own_ignore_file, require_git, overrides } = rules;
        let mut walk = Self {
            files,
            own_ignore_file,
            require_git,
            overrides,
            left: Vec::new(),
            errors: VecDeque::new(),
        };
        // From the root of everything down to the folder itself.
        let mut folders: Vec<PathBuf> = root.ancestors().map(Path::to_owned).collect();
        folders.reverse();
        let mut lists = Vec::with_capacity(folders.len());
        for batch in folders.chunks(files.batch().max(1)) {
            lists.extend(files.list(batch)?);
        }
        let found: Vec<(PathBuf, &[Listed])> = folders
            .iter()
            .cloned()
            .zip(lists.iter().map(|list| list.as_deref().unwrap_or_default()))
            .collect();
        let mut rules = None;
        for own in walk.read_rules(&found)? {
            rules = Some(Arc::new(Rules { above: rules, ..own }));
        }
        if let (Some(list), Some(rules)) = (lists.pop(), rules) {
            walk.require_git |= rules.levels().any(|rules| rules.is_repository);
            walk.left.push(Waiting::Inside(list, rules, root.to_owned()));
        }
        Ok(walk)
    }

    /// The rules of each folder by itself, from its ignore files.
    fn read_rules(&self, folders: &[(PathBuf, &[Listed])]) -> io::Result<Vec<Rules>> {
        let mut wanted = Vec::new();
        for (number, (folder, list)) in folders.iter().enumerate() {
            let has = |name: &str| list.iter().any(|entry| entry.name == name);
            for (which, name) in [self.own_ignore_file, ".ignore", ".gitignore"].into_iter().enumerate() {
                if has(name) {
                    wanted.push((number, which, folder.join(name)));
                }
            }
            if has(".git") {
                wanted.push((number, 3, folder.join(".git/info/exclude")));
            }
        }
        let mut texts: Vec<[String; 4]> = (0..folders.len()).map(|_| Default::default()).collect();
        let paths: Vec<PathBuf> = wanted.iter().map(|(.., path)| path.clone()).collect();
        for (batch, names) in
            paths.chunks(self.files.batch().max(1)).zip(wanted.chunks(self.files.batch().max(1)))
        {
            self.files.read_each(batch, &mut |number, file| {
                let (folder, which, _) = names[number];
                // An ignore file that cannot be read has no rules; the walk goes on, as on a disk.
                if let Ok(file) = file {
                    let mut bytes = Vec::new();
                    if file.take(MAX_IGNORE_FILE).read_to_end(&mut bytes).is_ok() {
                        texts[folder][which] = String::from_utf8_lossy(&bytes).into_owned();
                    }
                }
                true
            })?;
        }
        let rules = folders.iter().zip(&texts).map(|((folder, list), [own, plain, git, exclude])| Rules {
            own: globs(folder, own),
            plain: globs(folder, plain),
            git: globs(folder, git),
            exclude: globs(folder, exclude),
            is_repository: list.iter().any(|entry| entry.name == ".git"),
            above: None,
        });
        Ok(rules.collect())
    }

    /// Asks for what is in the folders that come next: the one that is last in `left`, and others before it.
    fn look_inside(&mut self) -> io::Result<()> {
        let next: Vec<usize> = (0..self.left.len())
            .rev()
            .filter(|place| matches!(&self.left[*place], Waiting::Entry(entry, _) if entry.kind == FileKind::Folder))
            .filter(|place| !matches!(self.left.get(place.wrapping_sub(1)), Some(Waiting::Inside(_, _, of)) if self.is_of(*place, of)))
            .take(self.files.batch().max(1))
            .collect();
        let folders: Vec<PathBuf> = next.iter().filter_map(|place| self.folder_at(*place)).collect();
        let lists = self.files.list(&folders)?;
        let found: Vec<(PathBuf, &[Listed])> = folders
            .iter()
            .cloned()
            .zip(lists.iter().map(|list| list.as_deref().unwrap_or_default()))
            .collect();
        let rules = self.read_rules(&found)?;
        // From the last place to the first, so that places stay what they are.
        for ((place, list), own) in next.into_iter().zip(lists).zip(rules) {
            let Waiting::Entry(entry, above) = &self.left[place] else { continue };
            let (rules, path) =
                (Arc::new(Rules { above: Some(Arc::clone(above)), ..own }), entry.path.clone());
            self.left.insert(place, Waiting::Inside(list, rules, path));
        }
        Ok(())
    }

    fn folder_at(&self, place: usize) -> Option<PathBuf> {
        match self.left.get(place)? {
            Waiting::Entry(entry, _) => Some(entry.path.clone()),
            Waiting::Inside(..) => None,
        }
    }

    fn is_of(&self, place: usize, folder: &Path) -> bool {
        matches!(&self.left[place], Waiting::Entry(entry, _) if entry.path == folder)
    }

    /// Puts what is in a folder before everything else that is left.
    fn enter(&mut self, list: io::Result<Vec<Listed>>, rules: &Arc<Rules>, folder: &Path) {
        let mut list = match list {
            Ok(list) => list,
            Err(error) => return self.errors.push_back(error),
        };
        list.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        for Listed { name, kind, .. } in list {
            let path = folder.join(name);
            if !self.is_ignored(&path, kind == FileKind::Folder, rules) {
                self.left.push(Waiting::Entry(FarEntry { path, kind }, Arc::clone(rules)));
            }
        }
    }

    fn is_ignored(&self, path: &Path, is_folder: bool, rules: &Arc<Rules>) -> bool {
        match self.overrides.matched(path, is_folder) {
            Match::None => rules.ignore(path, is_folder, self.require_git),
            found => found.is_ignore(),
        }
    }
}

impl Rules {
    /// These rules and those above them.
    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.above.as_deref())
    }

    /// Of each kind of file the innermost that says something counts, and of kinds the more special one.
    fn ignore(&self, path: &Path, is_folder: bool, require_git: bool) -> bool {
        let counts_git = !require_git || self.levels().any(|rules| rules.is_repository);
        let (mut own, mut plain, mut git, mut exclude) =
            (Verdict::None, Verdict::None, Verdict::None, Verdict::None);
        let mut left_repository = false;
        for rules in self.levels() {
            own.settle(&rules.own, path, is_folder);
            plain.settle(&rules.plain, path, is_folder);
            if counts_git && !left_repository {
                git.settle(&rules.git, path, is_folder);
                exclude.settle(&rules.exclude, path, is_folder);
            }
            left_repository |= require_git && rules.is_repository;
        }
        [own, plain, git, exclude].into_iter().find(|verdict| *verdict != Verdict::None)
            == Some(Verdict::Ignore)
    }
}

/// What the files of one kind say.
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

fn globs(folder: &Path, text: &str) -> Gitignore {
    if text.is_empty() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        // A line that is no glob says nothing, as on a disk.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

impl Iterator for FarWalk<'_> {
    type Item = io::Result<FarEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.errors.pop_front() {
                return Some(Err(error));
            }
            match self.left.pop()? {
                Waiting::Inside(list, rules, folder) => self.enter(list, &rules, &folder),
                Waiting::Entry(entry, rules) if entry.kind == FileKind::Folder => {
                    let is_known = matches!(self.left.last(), Some(Waiting::Inside(_, _, folder)) if *folder == entry.path);
                    if !is_known {
                        self.left.push(Waiting::Entry(entry.clone(), rules));
                        if let Err(error) = self.look_inside() {
                            self.left.clear();
                            return Some(Err(error));
                        }
                        continue;
                    }
                    return Some(Ok(entry));
                }
                Waiting::Entry(entry, _) => return Some(Ok(entry)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
