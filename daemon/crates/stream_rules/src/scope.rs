//! Where a rule looks: text, thinking, the arguments of tools.

use globset::{GlobBuilder, GlobMatcher};

/// A kind of stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Text,
    Thinking,
    Tool,
}

/// One entry of a rule's `scope`.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    Text,
    Thinking,
    /// Calls of a tool, of all without a name; of those the ones about files that match, of all without a glob.
    Tool {
        name: Option<String>,
        files: Option<GlobMatcher>,
    },
}

impl Scope {
    /// Reads `text`, `thinking`, `tool`, `toolcall`, `tool:NAME`, `tool:NAME(GLOB)`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let unknown =
            || format!("the scope {text:?} is none of text, thinking, tool, tool:NAME and tool:NAME(GLOB)");
        match text {
            "text" => return Ok(Self::Text),
            "thinking" => return Ok(Self::Thinking),
            "tool" | "toolcall" => return Ok(Self::Tool { name: None, files: None }),
            _ => {}
        }
        let rest =
            text.strip_prefix("tool:").or_else(|| text.strip_prefix("toolcall:")).ok_or_else(unknown)?;
        let (name, files) = match rest.split_once('(') {
            Some((name, files)) => (name, Some(files.strip_suffix(')').ok_or_else(unknown)?)),
            None => (rest, None),
        };
        let name = Some(name.trim()).filter(|name| !name.is_empty() && *name != "*").map(str::to_owned);
        Ok(Self::Tool { name, files: files.map(glob).transpose()? })
    }

    /// Calls of a tool about files that match.
    ///
    /// # Errors
    /// The glob cannot be used.
    pub(crate) fn of_files(tool: &str, files: &str) -> Result<Self, String> {
        Ok(Self::Tool { name: Some(tool.to_owned()), files: Some(glob(files)?) })
    }

    pub(crate) fn stream(&self) -> Stream {
        match self {
            Self::Text => Stream::Text,
            Self::Thinking => Stream::Thinking,
            Self::Tool { .. } => Stream::Tool,
        }
    }
}

/// A glob of files: one without a slash is about names in any folder.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn glob(text: &str) -> Result<GlobMatcher, String> {
    let text = text.trim();
    let anywhere =
        if text.contains('/') { text.trim_start_matches("./").to_owned() } else { format!("**/{text}") };
    // Paths of calls may be absolute.
    let anywhere = if anywhere.starts_with('/') || anywhere.starts_with("**") {
        anywhere
    } else {
        format!("**/{anywhere}")
    };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("the glob {text:?}: {}", error.kind()))
}

/// Whether a condition is a glob of files rather than a regular expression: `*.rs`, `src/**/*.ts`.
pub(crate) fn is_glob(condition: &str) -> bool {
    let has_wildcard = condition.contains('*') || condition.contains('?');
    let is_of_regex = |letter: char| matches!(letter, '\\' | '(' | ')' | '|' | '^' | '$' | '+');
    has_wildcard
        && !condition.contains(char::is_whitespace)
        && !condition.chars().any(is_of_regex)
        && !condition.contains(".*")
        && !condition.contains("://")
        && (condition.starts_with("*.") || condition.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read() {
        assert!(matches!(Scope::parse("tool"), Ok(Scope::Tool { name: None, files: None })));
        assert!(
            matches!(Scope::parse("tool:bash"), Ok(Scope::Tool { name: Some(name), files: None }) if name == "bash")
        );
        let Ok(Scope::Tool { files: Some(files), .. }) = Scope::parse("tool:edit(*.rs)") else {
            panic!("a glob")
        };
        assert!(files.is_match("/w/src/a.rs") && files.is_match("a.rs") && !files.is_match("a.rst"));
        for wrong in ["", "texts", "tool:edit(*.rs", "tool:edit([)"] {
            assert!(Scope::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_glob_with_a_folder_is_about_the_end_of_a_path() {
        let files = glob("src/**/*.ts").unwrap();
        for (path, expected) in [
            ("src/a.ts", true),
            ("/w/src/x/a.ts", true),
            ("./src/a.ts", true),
            ("lib/a.ts", false),
            ("src/a.tsx", false),
        ] {
            assert_eq!(files.is_match(path), expected, "{path}");
        }
    }

    #[test]
    fn globs_are_told_from_regular_expressions() {
        for (text, expected) in [
            ("*.rs", true),
            ("src/**/*.ts", true),
            ("docs/?.md", true),
            (r"unwrap\(\)", false),
            ("TODO", false),
            ("a.*b", false),
            ("https?://x", false),
            ("TODO *: x/y", false),
        ] {
            assert_eq!(is_glob(text), expected, "{text}");
        }
    }
}
