//! Finding files in folders that a user fills: in the order of their names, each file once, within bounds.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use agentd_files::is_absent;
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::resource_file;
use crate::real_folders::real_path;

/// The number of files and folders that are looked at for all resources of a kind.
const MAX_ENTRIES: usize = 20_000;

/// The depth to which folders are searched.
const MAX_DEPTH: usize = 24;

/// The files of a folder that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderLayout {
    /// Skills: folders with `SKILL.md` at any depth, and files `*.md` of the folder itself.
    Skills,
    /// Skills where others keep them too: folders with `SKILL.md` at any depth, and files `*.md` below the folder itself.
    SharedSkills,
    /// Prompt templates: the files `*.md` of the folder itself.
    Prompts,
    /// Prompt templates: the files `*.md` at any depth.
    PromptsBelow,
    /// Themes: the files `*.json` at any depth.
    ThemesBelow,
}

/// An entry of a folder, behind symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderChild {
    /// Its path, with symbolic links as they are.
    pub path: PathBuf,
    /// True for a folder, false for a regular file.
    pub is_folder: bool,
}

/// The name of the file that makes its folder a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// Looks for the files of one kind: hidden ones, `node_modules` and what ignore files say are left out, and at most 20,000 files and
/// folders are looked at. Reads folders; blocks.
#[derive(Debug)]
pub struct FolderWalk {
    kind: DiagnosticKind,
    /// The number of further files and folders that are looked at.
    left: usize,
    /// The folders that were searched, with links resolved.
    seen: HashSet<PathBuf>,
    /// The faults on the way.
    pub diagnostics: Vec<Diagnostic>,
}

impl FolderWalk {
    /// A walk that has looked at nothing yet. Faults are of that kind.
    #[must_use]
    pub fn new(kind: DiagnosticKind) -> Self {
        Self { kind, left: MAX_ENTRIES, seen: HashSet::new(), diagnostics: Vec::new() }
    }

    /// The files in a folder and below it that count. A folder that is not there has none; nor has a folder or file that was
    /// found before, in this call or an earlier one.
    pub fn files(&mut self, folder: &Path, layout: FolderLayout) -> Vec<PathBuf> {
        let mut found = Vec::new();
        // Most places that are looked at are not there.
        if is_absent(folder) {
            return found;
        }
        let mut step = Step { walk: self, layout, rules: IgnoreRules::default(), found: &mut found };
        let real = real_path(folder);
        if step.is_new(real.clone()) {
            step.folder(folder, &real, 0);
        }
        found
    }

    /// The files and folders right in a folder, by name. A folder that is not there has none.
    pub fn children(&mut self, folder: &Path) -> Vec<FolderChild> {
        let mut found = Vec::new();
        let mut step = Step {
            walk: self,
            layout: FolderLayout::ThemesBelow,
            rules: IgnoreRules::default(),
            found: &mut Vec::new(),
        };
        let names = match step.names(folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
            Err(error) => {
                self.warn(folder, format!("this folder cannot be read: {error}"));
                return found;
            }
        };
        step.rules.enter(folder, step.walk.kind, &mut step.walk.diagnostics);
        for name in names {
            let path = folder.join(name);
            let Some(about) = step.about(&path) else { continue };
            let is_folder = about.is_dir();
            if (is_folder || about.is_file()) && !step.rules.ignore(&path, is_folder) {
                found.push(FolderChild { path, is_folder });
            }
        }
        found
    }

    /// Returns whether a file that was named by itself has not been found before.
    pub fn is_new_file(&mut self, file: &Path) -> bool {
        self.seen.insert(real_path(file))
    }

    fn warn(&mut self, path: &Path, message: String) {
        self.diagnostics.push(Diagnostic::warning(self.kind, message).at(path));
    }
}

/// The walk through one folder that was named.
struct Step<'a> {
    walk: &'a mut FolderWalk,
    layout: FolderLayout,
    rules: IgnoreRules,
    found: &'a mut Vec<PathBuf>,
}

impl Step<'_> {
    fn is_new(&mut self, real: PathBuf) -> bool {
        self.walk.seen.insert(real)
    }

    /// Looks into a folder. `real` is its path without symbolic links.
    fn folder(&mut self, folder: &Path, real: &Path, depth: usize) {
        let finds_skills = matches!(self.layout, FolderLayout::Skills | FolderLayout::SharedSkills);
        let skill = folder.join(SKILL_FILE);
        if finds_skills && skill.is_file() {
            if self.is_new(real_path(&skill)) {
                self.found.push(skill);
            }
            return;
        }
        let names = match self.names(folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.walk.warn(folder, format!("this folder cannot be read: {error}")),
        };
        self.rules.enter(folder, self.walk.kind, &mut self.walk.diagnostics);
        for name in names {
            self.entry(&folder.join(&name), &real.join(&name), depth);
        }
        self.rules.leave();
    }

    /// The names in a folder that are no hidden ones, sorted.
    fn names(&mut self, folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            if name.as_encoded_bytes().starts_with(b".") || name == "node_modules" {
                continue;
            }
            if self.walk.left == 0 {
                self.too_many(folder);
                break;
            }
            self.walk.left -= 1;
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    fn too_many(&mut self, folder: &Path) {
        let message = format!(
            "there are more than {MAX_ENTRIES} files and folders; from here on they are not looked at"
        );
        // Said once.
        if self.walk.diagnostics.last().is_none_or(|last| last.message != message) {
            self.walk.warn(folder, message);
        }
    }

    /// The facts of what is there, behind links; `None` where there is nothing to read, which is told unless it is gone.
    fn about(&mut self, path: &Path) -> Option<fs::Metadata> {
        let link = path.is_symlink();
        match fs::metadata(path) {
            Ok(about) => Some(about),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !link => None,
            Err(error) => {
                let what = if link { "where this symbolic link leads" } else { "this" };
                self.walk.warn(path, format!("{what} cannot be read: {error}"));
                None
            }
        }
    }

    fn entry(&mut self, path: &Path, real: &Path, depth: usize) {
        let link = path.is_symlink();
        let Some(about) = self.about(path) else { return };
        if self.rules.ignore(path, about.is_dir()) {
            return;
        }
        let real = if link { real_path(path) } else { real.to_owned() };
        if about.is_dir() {
            let enters = self.layout != FolderLayout::Prompts;
            if enters && depth == MAX_DEPTH {
                let message = format!("folders below the {MAX_DEPTH}th are not looked into");
                return self.walk.warn(path, message);
            }
            if enters && self.is_new(real.clone()) {
                self.folder(path, &real, depth + 1);
            }
        } else if about.is_file() && self.counts(path, depth) && self.is_new(real) {
            self.found.push(path.to_owned());
        }
    }

    fn counts(&self, path: &Path, depth: usize) -> bool {
        let here = match self.layout {
            FolderLayout::Skills | FolderLayout::Prompts => depth == 0,
            FolderLayout::SharedSkills => depth > 0,
            FolderLayout::PromptsBelow | FolderLayout::ThemesBelow => true,
        };
        let ending = if self.layout == FolderLayout::ThemesBelow { "json" } else { "md" };
        here && path.extension() == Some(OsStr::new(ending))
    }
}

const NAMES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// The rules of the folders on the way to where the walk is, the outermost first.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules(Vec<Gitignore>);

impl IgnoreRules {
    /// Takes in the rules of a folder that is entered.
    pub(super) fn enter(&mut self, folder: &Path, kind: DiagnosticKind, diagnostics: &mut Vec<Diagnostic>) {
        let mut builder = GitignoreBuilder::new(folder);
        for name in NAMES {
            let path = folder.join(name);
            let Some(text) = resource_file::read(&path, kind, diagnostics) else { continue };
            if let Err(error) = agentd_ignore_files::cost(&text) {
                let message = format!("this file is not used: it {error}");
                diagnostics.push(Diagnostic::warning(kind, message).at(&path));
                continue;
            }
            for (line, number) in text.lines().zip(1..) {
                if let Err(error) = builder.add_line(None, line) {
                    let message = format!("this line is not used: {error}");
                    diagnostics.push(Diagnostic::warning(kind, message).at(&path).line(number));
                }
            }
        }
        // Each line was found good by itself.
        self.0.push(builder.build().unwrap_or_else(|error| {
            let message = format!("the rules of this folder on what to ignore are not used: {error}");
            diagnostics.push(Diagnostic::warning(kind, message).at(folder));
            Gitignore::empty()
        }));
    }

    /// Gives the rules of the innermost folder up.
    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Returns whether something in the innermost folder is ignored. The innermost rule counts.
    pub(super) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let found = self.0.iter().rev().map(|rules| rules.matched(path, is_folder));
        found
            .into_iter()
            .find(|found| !found.is_none())
            .is_some_and(|found| matches!(found, Match::Ignore(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::testing::TestFolder;

    /// Paths below `root`.
    fn walk(place: &TestFolder, root: &str, layout: FolderLayout) -> (Vec<String>, Vec<String>) {
        let mut walk = FolderWalk::new(DiagnosticKind::Skill);
        let root = place.path(root);
        let found = walk.files(&root, layout);
        let shown = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
        (found.iter().map(shown).collect(), walk.diagnostics.iter().map(ToString::to_string).collect())
    }

    fn check(place: &TestFolder, layout: FolderLayout, expected: &[&str]) {
        assert_eq!(
            walk(place, "s", layout),
            (expected.iter().map(|path| (*path).to_owned()).collect(), vec![])
        );
    }

    #[test]
    fn a_folder_with_a_skill_is_not_looked_into() {
        let place = TestFolder::new(&[
            ("s/b/SKILL.md", ""),
            ("s/b/inner/SKILL.md", ""),
            ("s/b/notes.md", ""),
            ("s/a/deep/er/SKILL.md", ""),
            ("s/a/note.md", ""),
            ("s/.hidden/SKILL.md", ""),
            ("s/node_modules/x/SKILL.md", ""),
            ("s/root.md", ""),
            ("s/root.txt", ""),
            ("s/.root.md", ""),
        ]);
        check(&place, FolderLayout::Skills, &["a/deep/er/SKILL.md", "b/SKILL.md", "root.md"]);
        check(&place, FolderLayout::SharedSkills, &["a/deep/er/SKILL.md", "a/note.md", "b/SKILL.md"]);
        check(&place, FolderLayout::Prompts, &["root.md"]);
        let place = TestFolder::new(&[("s/SKILL.md", ""), ("s/a/SKILL.md", ""), ("s/x.md", "")]);
        check(&place, FolderLayout::Skills, &["SKILL.md"]);
        check(&place, FolderLayout::PromptsBelow, &["SKILL.md", "a/SKILL.md", "x.md"]);
        check(&TestFolder::new(&[]), FolderLayout::Skills, &[]);
    }

    #[test]
    fn ignore_files_count_from_the_folder_down() {
        let place = TestFolder::new(&[
            (".gitignore", "s\n"),
            ("s/.gitignore", "out/\n*.md\n!keep.md\n"),
            ("s/out/SKILL.md", ""),
            ("s/drop.md", ""),
            ("s/keep.md", ""),
            ("s/in/.ignore", "!x.md\n/no\n"),
            ("s/in/x.md", ""),
            ("s/in/no/SKILL.md", ""),
            ("s/in/yes/SKILL.md", ""),
        ]);
        check(&place, FolderLayout::Skills, &["in/yes/SKILL.md", "keep.md"]);
        check(&place, FolderLayout::SharedSkills, &["in/x.md", "in/yes/SKILL.md"]);
    }

    #[test]
    fn an_ignore_file_that_would_take_too_much_is_told_and_not_used() {
        let place = TestFolder::new(&[("s/a/SKILL.md", ""), ("s/.gitignore", &"*a*b?[c\n".repeat(20_000))]);
        let (found, said) = walk(&place, "s", FolderLayout::Skills);
        assert_eq!(found, ["a/SKILL.md"]);
        assert!(said.len() == 1 && said[0].contains("this file is not used: it has more rules"), "{said:?}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once_and_never_around() {
        use std::os::unix::fs::symlink;
        let place =
            TestFolder::new(&[("s/a/SKILL.md", ""), ("s/one.md", ""), ("elsewhere/far/SKILL.md", "")]);
        symlink(place.path("s"), place.path("s/loop")).unwrap();
        symlink(place.path("s/a"), place.path("s/z")).unwrap();
        symlink(place.path("s/one.md"), place.path("s/two.md")).unwrap();
        symlink(place.path("elsewhere"), place.path("s/linked")).unwrap();
        symlink(place.path("nowhere"), place.path("s/dead")).unwrap();
        symlink(place.path("s/self"), place.path("s/self")).unwrap();
        let (found, said) = walk(&place, "s", FolderLayout::Skills);
        assert_eq!(found, ["a/SKILL.md", "linked/far/SKILL.md", "one.md"]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("s/dead: where this symbolic link leads cannot be read"), "{said:?}");
    }

    #[test]
    fn children_are_those_right_in_the_folder() {
        let place = TestFolder::new(&[
            ("s/b/x.ts", ""),
            ("s/a.ts", ""),
            ("s/.hidden.ts", ""),
            ("s/node_modules/x.ts", ""),
            ("s/out/x.ts", ""),
            ("s/.gitignore", "out/\n*.js\n"),
            ("s/c.js", ""),
        ]);
        std::os::unix::fs::symlink(place.path("s/b"), place.path("s/z")).unwrap();
        let mut walk = FolderWalk::new(DiagnosticKind::Extension);
        let found = walk.children(&place.path("s"));
        let shown: Vec<_> = found.iter().map(|it| (place.below(&it.path), it.is_folder)).collect();
        let expected = [("s/a.ts", false), ("s/b", true), ("s/z", true)];
        assert_eq!(shown, expected.map(|(path, is_folder)| (path.to_owned(), is_folder)));
        assert_eq!(walk.children(&place.path("none")), []);
        assert!(walk.diagnostics.is_empty(), "{:?}", walk.diagnostics);
    }

    #[test]
    fn the_same_folder_counts_once() {
        let place = TestFolder::new(&[("s/a/SKILL.md", ""), ("s/b.md", "")]);
        let mut walk = FolderWalk::new(DiagnosticKind::Skill);
        assert_eq!(walk.files(&place.path("s/a"), FolderLayout::Skills).len(), 1);
        assert_eq!(walk.files(&place.path("s"), FolderLayout::Skills), [place.path("s/b.md")]);
        assert_eq!(walk.files(&place.path("s"), FolderLayout::Skills), Vec::<PathBuf>::new());
        assert!(!walk.is_new_file(&place.path("s/b.md")));
    }

    #[test]
    fn bounds_are_told() {
        let place = TestFolder::new(&[("s/b.md", ""), ("s/c.md", "")]);
        let deep = format!("s{}/x.md", "/d".repeat(MAX_DEPTH + 1));
        place.write(&deep, "");
        let (found, said) = walk(&place, "s", FolderLayout::PromptsBelow);
        assert_eq!(found, ["b.md", "c.md"]);
        assert!(said.len() == 1 && said[0].contains("below the 24th"), "{said:?}");
        let mut walk = FolderWalk::new(DiagnosticKind::Skill);
        walk.left = 1;
        assert_eq!(walk.files(&place.path("s"), FolderLayout::Prompts).len(), 1);
        assert!(walk.diagnostics[0].message.contains("more than 20000"), "{:?}", walk.diagnostics);
    }
}
