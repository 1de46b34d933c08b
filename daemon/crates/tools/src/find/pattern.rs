//! The glob, and what it is matched against.

use std::path::Path;

use agentd_agent::ToolError;
use globset::{GlobBuilder, GlobMatcher};

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
    use super::*;

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
