//! What both tools take: a pattern, a language, a place.

use std::{path::Path, sync::Arc, time::Duration};

use agentd_agent::ToolError;
use agentd_syntax::{LANGUAGES, LanguageFacts, Query, by_extension, by_name};
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::program::SyntaxProgram;
use crate::{home::Home, operations::FileHost};

/// What a session's tools for structures work with.
#[derive(Clone)]
pub(super) struct SyntaxContext {
    pub(super) program: SyntaxProgram,
    pub(super) home: Home,
    pub(super) host: Arc<dyn FileHost>,
    /// How long the program may take for a request.
    pub(super) timeout: Duration,
}

/// The arguments that say what to look for, and where.
#[derive(Debug, Deserialize)]
pub(super) struct Target {
    pattern: String,
    language: Option<String>,
    selector: Option<String>,
    pub(super) path: Option<String>,
    glob: Option<String>,
}

/// The schema of these arguments.
pub(super) fn properties() -> serde_json::Map<String, Value> {
    let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
    let properties = json!({
        "pattern": {
            "type": "string",
            "description": "Code in which $NAME stands for one node and $$$NAME for any number; the same name twice for the same code. \
                            Such as: console.log($$$ARGS)",
        },
        "language": {
            "type": "string",
            "description": format!("The language of the pattern: {}. Without it, the files of all languages in which the pattern is code", names.join(", ")),
        },
        "path": {"type": "string", "description": "The file or folder; by default the working directory"},
        "glob": {"type": "string", "description": "Only files that match it, such as src/**/*.ts"},
        "selector": {
            "type": "string",
            "description": "For code that cannot stand alone: the kind of syntax node that is meant within the pattern, which holds the \
                            code around it, too. Such as public_field_definition in: class A { $F = $V }",
        },
    });
    match properties {
        Value::Object(properties) => properties,
        _ => serde_json::Map::new(),
    }
}

impl Target {
    /// The query in a language.
    pub(super) fn query(&self, language: &LanguageFacts, rewrite: Option<&str>) -> Query {
        Query {
            language: language.name.to_owned(),
            pattern: self.pattern.clone(),
            selector: self.selector.clone(),
            rewrite: rewrite.map(str::to_owned),
        }
    }

    /// The languages that count.
    ///
    /// # Errors
    /// There is no such language.
    pub(super) fn languages(&self) -> Result<Languages, ToolError> {
        let Some(name) = self.language.as_deref().filter(|name| !name.trim().is_empty()) else {
            return Ok(Languages::Any);
        };
        let Some(language) = by_name(name.trim()) else {
            let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
            return Err(ToolError(format!("Unknown language {name:?}. There are: {}", names.join(", "))));
        };
        let with = language.with.and_then(by_name);
        Ok(Languages::Named(std::iter::once(language).chain(with).collect()))
    }

    /// The globs that select files, in ripgrep's form.
    ///
    /// # Errors
    /// The glob is not valid.
    pub(super) fn overrides(&self, root: &Path) -> Result<Override, ToolError> {
        let Some(glob) = self.glob.as_deref().filter(|glob| !glob.is_empty()) else {
            return Ok(Override::empty());
        };
        let mut builder = OverrideBuilder::new(root);
        let built = builder.add(glob.strip_prefix("./").unwrap_or(glob)).and_then(|builder| builder.build());
        built.map_err(|error| ToolError(error.to_string()))
    }
}

/// The languages whose files are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Languages {
    /// All.
    Any,
    /// These: the first one for a file whose name says nothing.
    Named(Vec<&'static LanguageFacts>),
}

impl Languages {
    /// The language of a file; `None` for one that does not count. One that the call names itself counts whatever its name is.
    pub(super) fn of(&self, path: &Path, is_named: bool) -> Option<&'static LanguageFacts> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match self {
            Self::Any => by_extension(extension),
            Self::Named(languages) => {
                let is_also = |language: &&&LanguageFacts| {
                    language.also.contains(&extension.to_ascii_lowercase().as_str())
                };
                let by_name = by_extension(extension).filter(|language| languages.contains(language));
                let found = by_name.or_else(|| languages.iter().find(is_also).copied());
                found.or_else(|| languages.first().copied().filter(|_| is_named))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_language_that_the_call_means() {
        let target = |language: Option<&str>| Target {
            pattern: "x".into(),
            language: language.map(str::to_owned),
            selector: None,
            path: None,
            glob: None,
        };
        let of = |language: Option<&str>, path: &str, is_named: bool| {
            target(language).languages().unwrap().of(Path::new(path), is_named).map(|found| found.name)
        };
        for (language, path, is_named, expected) in [
            (None, "a.rs", false, Some("rust")),
            (None, "a.h", false, Some("c")),
            (None, "Makefile", true, None),
            (Some("cpp"), "a.h", false, Some("cpp")),
            (Some("C++"), "a.cc", false, Some("cpp")),
            (Some("ts"), "a.tsx", false, Some("tsx")),
            (Some("typescript"), "a.ts", false, Some("typescript")),
            (Some("rust"), "a.py", false, None),
            (Some("rust"), "a.py", true, Some("rust")),
            (Some("bash"), "configure", true, Some("bash")),
            (Some(" "), "a.PY", false, Some("python")),
        ] {
            assert_eq!(of(language, path, is_named), expected, "{language:?} {path}");
        }
        assert!(target(Some("cobol")).languages().unwrap_err().0.starts_with("Unknown language \"cobol\""));
    }
}
