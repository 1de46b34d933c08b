//! Patterns of lists in settings and manifests: globs that include, `!glob`, `+path` and `-path`.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// The most patterns of one list that are looked at.
const MAX_PATTERNS: usize = 500;

/// The name of the file that makes its folder a skill.
const SKILL_FILE: &str = "SKILL.md";

/// One entry of a list.
#[derive(Debug, Clone)]
enum Pattern {
    Include(Matcher),
    Exclude(Matcher),
    ForceInclude(String),
    ForceExclude(String),
}

/// A glob; one that cannot be read matches the text itself.
#[derive(Debug, Clone)]
enum Matcher {
    Glob(GlobMatcher),
    Text(String),
}

/// The patterns of a list, in their order. Paths in them count from one folder.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    base: PathBuf,
    patterns: Vec<Pattern>,
}

/// Whether an entry of a list takes something out or in, rather than naming a place.
pub(crate) fn is_override(entry: &str) -> bool {
    entry.starts_with(['!', '+', '-'])
}

/// Whether an entry holds a glob.
pub(crate) fn is_glob(entry: &str) -> bool {
    entry.contains(['*', '?'])
}

impl Patterns {
    /// The patterns of these entries.
    pub(crate) fn new<'a>(entries: impl IntoIterator<Item = &'a String>, base: &Path) -> Self {
        let pattern = |entry: &'a String| match entry.split_at_checked(1) {
            Some(("!", glob)) => Pattern::Exclude(Matcher::new(glob)),
            Some(("+", path)) => Pattern::ForceInclude(exact(path)),
            Some(("-", path)) => Pattern::ForceExclude(exact(path)),
            _ => Pattern::Include(Matcher::new(entry)),
        };
        let patterns = entries.into_iter().take(MAX_PATTERNS).map(pattern).collect();
        Self { base: base.to_owned(), patterns }
    }

    /// The patterns of those entries that take out or in.
    pub(crate) fn overrides<'a>(entries: impl IntoIterator<Item = &'a String>, base: &Path) -> Self {
        Self::new(entries.into_iter().filter(|entry| is_override(entry)), base)
    }

    /// Whether a file is in: included, where anything is; not excluded; or forced in, and not forced out.
    pub(crate) fn allow(&self, file: &Path) -> bool {
        let names = Names::of(file, &self.base);
        let any = |test: &dyn Fn(&Pattern) -> bool| self.patterns.iter().any(test);
        if any(&|it| matches!(it, Pattern::ForceExclude(path) if names.is_exactly(path))) {
            return false;
        }
        if any(&|it| matches!(it, Pattern::ForceInclude(path) if names.is_exactly(path))) {
            return true;
        }
        let includes = any(&|it| matches!(it, Pattern::Include(_)));
        let included = !includes || any(&|it| matches!(it, Pattern::Include(glob) if names.match_glob(glob)));
        included && !any(&|it| matches!(it, Pattern::Exclude(glob) if names.match_glob(glob)))
    }

    /// What the last pattern that fits says of a file; `None` where none fits. For lists that change another choice.
    pub(crate) fn say(&self, file: &Path) -> Option<bool> {
        let names = Names::of(file, &self.base);
        self.patterns.iter().rev().find_map(|pattern| match pattern {
            Pattern::Include(glob) => names.match_glob(glob).then_some(true),
            Pattern::Exclude(glob) => names.match_glob(glob).then_some(false),
            Pattern::ForceInclude(path) => names.is_exactly(path).then_some(true),
            Pattern::ForceExclude(path) => names.is_exactly(path).then_some(false),
        })
    }
}

impl Matcher {
    fn new(glob: &str) -> Self {
        let text = glob.strip_prefix("./").unwrap_or(glob);
        match GlobBuilder::new(text).literal_separator(true).build() {
            Ok(glob) => Self::Glob(glob.compile_matcher()),
            Err(_) => Self::Text(text.to_owned()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.is_match(name),
            Self::Text(text) => text == name,
        }
    }
}

/// An exact path as it is compared.
fn exact(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).trim_end_matches('/').to_owned()
}

/// The names by which a pattern can mean a file: its path from the base, its path, its name; for a skill also those of its folder.
struct Names {
    paths: Vec<String>,
    names: Vec<String>,
}

impl Names {
    fn of(file: &Path, base: &Path) -> Self {
        let is_skill = file.file_name().is_some_and(|name| name == SKILL_FILE);
        let folder = file.parent().filter(|_| is_skill);
        let (mut paths, mut names) = (Vec::new(), Vec::new());
        for path in [Some(file), folder].into_iter().flatten() {
            paths.extend([relative(path, base), path.to_owned()].map(|path| path.display().to_string()));
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        Self { paths, names }
    }

    fn is_exactly(&self, path: &str) -> bool {
        self.paths.iter().any(|name| name == path)
    }

    fn match_glob(&self, glob: &Matcher) -> bool {
        self.paths.iter().chain(&self.names).any(|name| glob.matches(name))
    }
}

/// The path from a folder, with `..` where it is outside of it. By the text of both, which are absolute.
pub(crate) fn relative(path: &Path, base: &Path) -> PathBuf {
    let (path, base): (Vec<Component<'_>>, Vec<_>) =
        (path.components().collect(), base.components().collect());
    let common = path.iter().zip(&base).take_while(|(ours, theirs)| ours == theirs).count();
    let up = base[common..].iter().map(|_| Component::ParentDir);
    up.chain(path[common..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn check(entries: &[&str], kept: &[&str], dropped: &[&str]) {
        let entries = owned(entries);
        let patterns = Patterns::new(&entries, Path::new("/p"));
        for (paths, expected) in [(kept, true), (dropped, false)] {
            for path in paths {
                assert_eq!(patterns.allow(Path::new(path)), expected, "{path} {entries:?}");
            }
        }
    }

    #[test]
    fn what_is_in() {
        check(&[], &["/p/a.ts"], &[]);
        check(&["extensions/*.ts"], &["/p/extensions/a.ts"], &["/p/extensions/a.js", "/p/extensions/b/a.ts"]);
        check(&["./extensions/*.ts", "!**/old.ts"], &["/p/extensions/a.ts"], &["/p/extensions/old.ts"]);
        check(&["!*.ts", "+extensions/a.ts"], &["/p/extensions/a.ts"], &["/p/extensions/b.ts"]);
        check(&["+a.ts", "-./a.ts"], &["/p/b.ts"], &["/p/a.ts"]);
        check(&["-a.ts"], &["/p/sub/a.ts"], &["/p/a.ts"]);
        check(&["skills/x"], &["/p/skills/x/SKILL.md"], &["/p/skills/y/SKILL.md", "/p/skills/x/notes.md"]);
        check(&["x"], &["/p/skills/x/SKILL.md"], &[]);
        check(&["-skills/x/"], &["/p/skills/y/SKILL.md"], &["/p/skills/x/SKILL.md"]);
        check(&["!a["], &["/p/b"], &["/p/a["]);
        check(&["-../q/a.ts", "-/r/a.ts"], &["/p/a.ts"], &["/q/a.ts", "/r/a.ts"]);
    }

    #[test]
    fn a_list_of_changes_says_something_only_of_what_it_names() {
        let entries = owned(&["!*.ts", "+a.ts", "-b.ts", "c.ts"]);
        let patterns = Patterns::new(&entries, Path::new("/p"));
        let say = |path: &str| patterns.say(Path::new(path));
        assert_eq!(say("/p/a.ts"), Some(true));
        assert_eq!(say("/p/b.ts"), Some(false));
        assert_eq!(say("/p/c.ts"), Some(true));
        assert_eq!(say("/p/d.ts"), Some(false));
        assert_eq!(say("/p/d.js"), None);
    }

    #[test]
    fn paths_from_a_folder() {
        let check = |path: &str, base: &str, expected: &str| {
            assert_eq!(relative(Path::new(path), Path::new(base)), Path::new(expected));
        };
        check("/a/b/c", "/a", "b/c");
        check("/a/b", "/a/c/d", "../../b");
        check("/a", "/a", "");
        check("/x/y", "/a", "../x/y");
    }
}
