//! Globs over models.

use agentd_protocol::model::Model;
use globset::{GlobBuilder, GlobMatcher};

/// A glob (`*`, `?`, `[`) over `provider/id` and the id, where `*` does not cross `/` and case does not count.
#[derive(Debug, Clone)]
pub struct ModelGlob(GlobMatcher);

/// The fault in a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GlobError(String);

/// Returns whether a text is meant as a glob.
#[must_use]
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl ModelGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// When it is none, such as one with a bracket that is not closed.
    pub fn new(text: &str) -> Result<Self, GlobError> {
        let glob = GlobBuilder::new(text).literal_separator(true).case_insensitive(true).build();
        glob.map(|glob| Self(glob.compile_matcher())).map_err(|error| GlobError(error.kind().to_string()))
    }

    /// Returns whether it matches a model.
    #[must_use]
    pub fn fits(&self, model: &Model) -> bool {
        self.0.is_match(&model.id) || self.0.is_match(format!("{}/{}", model.provider, model.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::testing::model;

    #[test]
    fn a_star_stays_between_slashes() {
        let fits = |glob: &str, id: &str| ModelGlob::new(glob).unwrap().fits(&model("p", id));
        assert!(fits("GPT-*", "gpt-6") && fits("p/gpt-?", "gpt-6") && fits("*/[g]pt-6", "gpt-6"));
        assert!(!fits("p/*", "deep/model") && fits("p/*/*", "deep/model") && !fits("gpt", "gpt-6"));
        assert_eq!(ModelGlob::new("a[").unwrap_err().to_string(), "unclosed character class; missing ']'");
        assert!(is_glob("a?") && !is_glob("a.b/c:d"));
    }
}
