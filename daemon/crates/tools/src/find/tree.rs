//! Walks a folder with several threads, and keeps the first results in the order of the walk.

use std::{
    collections::BinaryHeap,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use agentd_agent::ToolError;
use globset::{GlobBuilder, GlobMatcher};
use tokio_util::sync::CancellationToken;

use crate::{
    operations::FileKind,
    search::{self, Next, Unread, WalkRules, Walked, walk_parallel},
};

/// The most threads: one search must not occupy a big machine alone.
const MOST_THREADS: usize = 8;

/// The most results for which threads are used, since their paths are in memory. One thread finds more, in order.
pub(super) const MOST_KEPT: usize = 100_000;

/// Unreadable folders whose paths are kept; more are only counted.
const MOST_UNREADABLE: usize = 10_000;

/// The results in the order of the walk.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) results: Vec<Entry>,
    /// Whether there are more results than wanted.
    pub(super) has_more: bool,
    /// Unreadable folders before the last result.
    pub(super) unreadable: usize,
}

/// A result, in the order of the walk: depth first, the entries of a folder by the bytes of their names. Paths compare
/// the same way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
}

impl From<search::Entry> for Entry {
    fn from(entry: search::Entry) -> Self {
        Self { is_folder: entry.kind == FileKind::Folder, path: entry.path }
    }
}

/// The first `limit` matching entries, [`MOST_KEPT`] at most. Blocks; ends early when `cancel` fires.
///
/// Threads visit entries in any order. Once there is one result too many, folders behind the last kept result are not
/// entered, so little is walked beyond the limit.
pub(super) fn first(
    rules: WalkRules<'_>,
    pattern: &Pattern,
    limit: usize,
    cancel: &CancellationToken,
) -> Found {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let shared = Shared {
        pattern,
        cancel,
        most: limit.min(MOST_KEPT) + 1,
        is_full: AtomicBool::new(false),
        kept: Mutex::default(),
    };
    walk_parallel(rules, threads, |entry| shared.visit(entry));
    shared.kept.into_inner().unwrap_or_else(PoisonError::into_inner).finish(limit)
}

struct Shared<'a> {
    pattern: &'a Pattern,
    cancel: &'a CancellationToken,
    /// One more than wanted.
    most: usize,
    /// Whether that many were found.
    is_full: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The last one in order is on top.
    results: BinaryHeap<Entry>,
    unreadable: Vec<PathBuf>,
    unreadable_anywhere: usize,
}

impl Shared<'_> {
    fn visit(&self, entry: Walked) -> Next {
        if self.cancel.is_cancelled() {
            return Next::Stop;
        }
        match entry {
            Ok(entry) => self.meet(entry),
            Err(unread) => {
                self.lock().on_error(unread);
                Next::GoOn
            }
        }
    }

    fn meet(&self, entry: search::Entry) -> Next {
        if self.is_full.load(Ordering::Relaxed)
            && self.lock().results.peek().is_some_and(|last| last.path < entry.path)
        {
            // Its contents come later, too.
            return Next::PassOver;
        }
        if self.pattern.fits(&entry.path) {
            let mut kept = self.lock();
            kept.results.push(entry.into());
            if kept.results.len() > self.most {
                kept.results.pop();
            }
            if kept.results.len() == self.most {
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
        Next::GoOn
    }

    /// No holder of this lock leaves a half-made change.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn on_error(&mut self, unread: Unread) {
        if self.unreadable.len() < MOST_UNREADABLE {
            self.unreadable.push(unread.path);
        } else {
            self.unreadable_anywhere += 1;
        }
    }

    fn finish(self, limit: usize) -> Found {
        let Self { results, unreadable, unreadable_anywhere } = self;
        let mut results = results.into_sorted_vec();
        // Folders behind that one may or may not have been visited, so they do not count.
        let end = if results.len() > limit { results.pop() } else { None };
        let counts = |path: &PathBuf| end.as_ref().is_none_or(|end| *path < end.path);
        Found {
            results,
            has_more: end.is_some(),
            unreadable: unreadable_anywhere + unreadable.iter().filter(|path| counts(path)).count(),
        }
    }
}

/// A glob for names, or for whole paths.
pub(super) struct Pattern {
    glob: GlobMatcher,
    of_paths: bool,
}

impl Pattern {
    /// Parses a glob. A glob with a slash is matched against whole paths, at any depth unless anchored; one without
    /// upper-case letters ignores case; an empty one matches everything.
    ///
    /// # Errors
    /// The problem of the glob.
    pub(super) fn new(text: &str) -> Result<Self, ToolError> {
        let text = if text.is_empty() { "*" } else { text };
        let of_paths = text.contains('/');
        let is_anchored = text.starts_with('/') || text.starts_with("**/") || text == "**";
        let glob = if of_paths && !is_anchored { format!("**/{text}") } else { text.to_owned() };
        let built = GlobBuilder::new(&glob)
            .literal_separator(true)
            .case_insensitive(!text.chars().any(char::is_uppercase))
            .build()
            .map_err(|error| ToolError(format!("Invalid glob {text:?}: {}", error.kind())))?;
        Ok(Self { glob: built.compile_matcher(), of_paths })
    }

    /// Whether it matches an entry, given by its absolute path.
    pub(super) fn fits(&self, path: &Path) -> bool {
        if self.of_paths {
            return self.glob.is_match(path);
        }
        path.file_name().is_some_and(|name| self.glob.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use ignore::overrides::Override;
    use proptest::prelude::*;

    use super::*;
    use crate::search::{UnusedFiles, Walk};

    fn rules<'a>(root: &'a Path, unused: &'a UnusedFiles) -> WalkRules<'a> {
        WalkRules {
            root,
            own_ignore_file: ".fdignore",
            require_git: false,
            overrides: Override::empty(),
            unused,
        }
    }

    /// The same results from a walk in order.
    fn in_order(root: &Path, pattern: &Pattern) -> Vec<Entry> {
        let unused = UnusedFiles::default();
        let walk = Walk::new(rules(root, &unused)).map(Result::unwrap);
        walk.filter(|entry| pattern.fits(&entry.path)).map(Entry::from).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn threads_find_what_a_walk_in_order_finds_first(
            files in prop::collection::vec(r"\.?[abAB-]{1,2}d?(/[ab0]{1,2}d){0,3}/[a-c!]{1,3}", 1..60),
            ignored in prop::option::of("[abAB]{1,2}d?"),
            limit in 1usize..40,
            pattern in prop_oneof![Just("*"), Just("a*"), Just("*/a?"), Just("**/*d/*")],
        ) {
            let folder = tempfile::tempdir().unwrap();
            for file in &files {
                let path = folder.path().join(file);
                // Some names are a folder in one path and a file in another: the first one stays.
                if fs::create_dir_all(path.parent().unwrap()).is_ok() {
                    let _ = fs::write(path, "");
                }
            }
            fs::write(folder.path().join(".gitignore"), ignored.unwrap_or_default()).unwrap();
            let pattern = Pattern::new(pattern).unwrap();
            let mut expected = in_order(folder.path(), &pattern);
            let has_more = expected.len() > limit;
            expected.truncate(limit);
            let unused = UnusedFiles::default();
            let found = first(rules(folder.path(), &unused), &pattern, limit, &CancellationToken::new());
            prop_assert_eq!((found.results, found.has_more, found.unreadable), (expected, has_more, 0));
        }
    }

    #[test]
    fn unreadable_folders_count_where_a_walk_in_order_would_meet_them() {
        let at = |path: &str, errors: &[&str]| {
            let mut kept = Kept { results: BinaryHeap::new(), ..Kept::default() };
            kept.results.extend(["/w/a", path].map(|path| Entry { path: path.into(), is_folder: false }));
            for path in errors {
                kept.on_error(Unread { path: path.into(), error: std::io::Error::other("no") });
            }
            kept.finish(1)
        };
        let found = at("/w/m", &["/w/b", "/w/c/x", "/w/m/x", "/w/z"]);
        assert_eq!((found.results.len(), found.has_more, found.unreadable), (1, true, 2));
    }
}

#[cfg(test)]
mod pattern_tests {
    use crate::find::tree::*;

    #[test]
    fn names_and_paths() {
        let check = |pattern: &str, path: &str, fits: bool| {
            assert_eq!(Pattern::new(pattern).unwrap().fits(Path::new(path)), fits, "{pattern} {path}");
        };
        check("*.rs", "/w/src/a.rs", true);
        check("*.rs", "/w/src/a.rs/b", false);
        check("**", "/w/a", true);
        check("a", "/w/b/A", true);
        check("A", "/w/b/a", false);
        check("src/*.rs", "/w/src/a.rs", true);
        check("src/*.rs", "/w/src/deep/a.rs", false);
        check("src/**/*.rs", "/w/deep/src/x/y/a.rs", true);
        check("**/a.rs", "/w/a.rs", true);
        check("/w/*.rs", "/w/a.rs", true);
        check("/w/*.rs", "/x/w/a.rs", false);
        check("{a,b}?.[ch]", "/w/b1.h", true);
        check("*", "/w/.hidden", true);
        check("", "/w/.hidden", true);
        assert_eq!(
            Pattern::new("[a").err().unwrap().0,
            "Invalid glob \"[a\": unclosed character class; missing ']'"
        );
    }
}
