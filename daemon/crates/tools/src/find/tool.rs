//! The `find` tool: its description and its calls.

use std::{
    io,
    path::Path,
    sync::{Arc, LazyLock},
};

use agentd_agent::ToolError;
use agentd_protocol::tool::{ToolResult, ToolSpec};
use ignore::overrides::Override;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::tree::{Entry, Found, MOST_KEPT, Pattern, first};
use crate::{
    blocking, errno,
    limits::{FIND_RESULTS, MAX_SIZE},
    operations::Unreachable,
    search::{
        FarWalk, List, Notices, SearchCall, SearchKind, SearchTool, UnusedFiles, Walk, WalkRules, limit,
    },
};

/// Finds files and folders by name.
pub type FindTool = SearchTool<Find>;

/// The marker type of [`FindTool`].
pub enum Find {}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: "find".to_owned(),
        description: format!(
            "Find files and folders by a glob. Gives paths relative to the folder that is searched. What .gitignore \
         names is left out, hidden files are not. At most {FIND_RESULTS} results (limit) or {MAX_SIZE} come back, whichever is \
         less."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The glob, such as '*.ts', '**/*.json' or 'src/**/*.spec.ts'"},
                "path": {"type": "string", "description": "The folder to search; by default the working directory"},
                "limit": {"type": "number", "description": format!("How many results to give at most; default {FIND_RESULTS}")},
            },
            "required": ["pattern"],
        }),
        constrained_sampling: None,
    })
});

#[derive(Deserialize)]
pub struct FindArguments {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

impl SearchKind for Find {
    type Arguments = FindArguments;

    const SNIPPET: &'static str = "Find files by a glob; respects .gitignore";

    fn spec() -> &'static Arc<ToolSpec> {
        &SPEC
    }

    fn search(arguments: &FindArguments, here: &SearchCall<'_>) -> Result<ToolResult, ToolError> {
        let place = here.place(arguments.path.as_deref())?;
        let is_folder = place.is_folder();
        if !is_folder {
            return Err(ToolError(format!("Not a directory: {}", place.path.display())));
        }
        let root = here.files.root_of_walk(&place.path);
        let unused = UnusedFiles::default();
        let pattern = Pattern::new(&arguments.pattern)?;
        let limit = limit(arguments.limit, FIND_RESULTS);
        let rules = WalkRules {
            root: &root,
            own_ignore_file: ".fdignore",
            // On another host the walk finds out by itself.
            require_git: here.files.is_local() && is_in_repository(&root),
            overrides: Override::empty(),
            unused: &unused,
        };
        let mut listing = Listing::new(&root, limit);
        if !here.files.is_local() {
            let walk = FarWalk::new(here.files, rules);
            let walk = walk.map_err(|error| ToolError(errno::describe(&error, "scandir", &root)))?;
            listing.walk(walk.map(|entry| entry.map(Entry::from)), &pattern, here.cancel)?;
        } else if limit > MOST_KEPT {
            let walk = Walk::new(rules);
            let walk = walk.map(|entry| entry.map(Entry::from).map_err(|unread| unread.error));
            listing.walk(walk, &pattern, here.cancel)?;
        } else {
            listing.add(first(rules, &pattern, limit, here.cancel));
        }
        if here.cancel.is_cancelled() {
            return Err(blocking::aborted());
        }
        Ok(listing.into_result(unused.notice()))
    }
}

/// The results, formatted.
struct Listing<'a> {
    root: &'a Path,
    limit: usize,
    list: List,
    has_more: bool,
    unreadable: usize,
}

impl<'a> Listing<'a> {
    fn new(root: &'a Path, limit: usize) -> Self {
        Self { root, limit, list: List::default(), has_more: false, unreadable: 0 }
    }

    /// Adds the results of the threads.
    fn add(&mut self, found: Found) {
        found.results.iter().for_each(|entry| self.push(entry));
        self.has_more = found.has_more;
        self.unreadable = found.unreadable;
    }

    /// Takes entries one by one; only the list is in memory.
    fn walk(
        &mut self,
        walk: impl Iterator<Item = io::Result<Entry>>,
        pattern: &Pattern,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        let mut results = 0;
        for entry in walk {
            if cancel.is_cancelled() {
                return Ok(());
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if Unreachable::of(&error).is_some() => return Err(ToolError(error.to_string())),
                Err(_) => {
                    self.unreadable += 1;
                    continue;
                }
            };
            if !pattern.fits(&entry.path) {
                continue;
            }
            if results == self.limit {
                self.has_more = true;
                return Ok(());
            }
            results += 1;
            self.push(&entry);
        }
        Ok(())
    }

    fn push(&mut self, entry: &Entry) {
        let shown = entry.path.strip_prefix(self.root).unwrap_or(&entry.path).to_string_lossy();
        self.list.push(&format!("{shown}{}", if entry.is_folder { "/" } else { "" }));
    }

    fn into_result(self, unused: Option<String>) -> ToolResult {
        let Self { limit, mut list, has_more, unreadable, .. } = self;
        let mut notices = Notices::default();
        if has_more {
            notices.add(format!(
                "{limit} results limit reached. Use limit={} for more, or refine pattern",
                limit.saturating_mul(2)
            ));
            notices.detail("resultLimitReached", limit);
        }
        if list.is_empty() {
            list.push("No files found matching pattern");
        }
        let last = (unreadable > 0).then(|| match unreadable {
            1 => "1 folder could not be read".to_owned(),
            number => format!("{number} folders could not be read"),
        });
        list.into_result_with(notices, last.into_iter().chain(unused))
    }
}

/// Whether a folder belongs to a git repository, in which `.gitignore` files count up to its root.
fn is_in_repository(folder: &Path) -> bool {
    folder.ancestors().any(|folder| folder.join(".git").exists())
}

#[cfg(test)]
mod tests;
