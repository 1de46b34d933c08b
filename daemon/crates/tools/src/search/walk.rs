//! The files and folders below a folder, in an order that is always the same.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder, WalkParallel, overrides::Override};

/// How a folder is walked: hidden files too, symbolic links not followed, ignore files respected.
pub(crate) struct WalkRules<'a> {
    pub(crate) root: &'a Path,
    /// The name of further ignore files.
    pub(crate) own_ignore_file: &'static str,
    /// Whether `.gitignore` counts only in git repositories.
    pub(crate) require_git: bool,
    /// Globs that come before all ignore files.
    pub(crate) overrides: Override,
}

/// An entry, or a folder or ignore file that could not be read.
pub(crate) type Walked = Result<DirEntry, ignore::Error>;

/// Depth first; the entries of a folder by the bytes of their names. One folder's names at a time are in memory.
pub(crate) struct Walk(ignore::Walk);

impl Walk {
    pub(crate) fn new(rules: WalkRules<'_>) -> Self {
        let mut builder = rules.builder();
        builder.sort_by_file_name(Ord::cmp);
        Self(builder.build())
    }
}

impl WalkRules<'_> {
    /// A walk by that many threads, which meet the entries in any order, folders before what is in them.
    pub(crate) fn parallel(self, threads: usize) -> WalkParallel {
        self.builder().threads(threads).build_parallel()
    }

    fn builder(self) -> WalkBuilder {
        let mut builder = WalkBuilder::new(self.root);
        builder
            .hidden(false)
            .require_git(self.require_git)
            .overrides(self.overrides)
            .add_custom_ignore_filename(self.own_ignore_file);
        builder
    }
}

impl Iterator for Walk {
    type Item = Walked;

    fn next(&mut self) -> Option<Walked> {
        self.0.next()
    }
}
