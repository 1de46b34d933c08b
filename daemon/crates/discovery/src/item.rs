//! What a provider finds.

use std::{fmt, path::PathBuf};

use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
use serde_json::{Map, Value};

use crate::provider::Provider;

/// An item as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its kind.
    pub kind: CapabilityKind,
    /// Its name.
    pub name: String,
    /// Of two items of one kind with the same key, the first counts.
    pub key: String,
    /// The id by which it is switched off.
    pub id: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The file, absolute.
    pub path: PathBuf,
    /// The provider that found it.
    pub provider: Provider,
    /// Whose it is.
    pub level: CapabilityLevel,
    /// The front matter of a Markdown file, keys in camel case.
    pub fields: Map<String, Value>,
    /// What its kind has beyond that.
    pub detail: ItemDetail,
    /// True if its own file switches it off. It then shadows others, and does not count itself.
    pub is_switched_off: bool,
    /// Why it has no effect although it is found.
    pub no_effect: Option<&'static str>,
}

/// What the kind of an item has beyond names and paths.
#[derive(Clone, PartialEq)]
pub enum ItemDetail {
    /// Nothing.
    None,
    /// Of a context file: how many folders above the working directory it counts for; `None` for the user's.
    Context(Option<usize>),
    /// Of an MCP server: its entry in the form of `mcp.json`. Variables are not filled in.
    Server(Map<String, Value>),
    /// Of a hook in a settings file.
    SettingsHook {
        /// The event, such as `PreToolUse`.
        event: String,
        /// The tools that it is for.
        matcher: Option<String>,
        /// The entry, such as `{"type": "command", "command": "check.sh"}`.
        entry: Map<String, Value>,
    },
    /// Of a hook that is an executable file.
    FileHook {
        /// Whether it comes before or after the call.
        is_pre: bool,
        /// The tool, or `*`.
        tool: String,
    },
}

/// Without values, which may be secrets.
impl fmt::Debug for ItemDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Context(_) => "Context",
            Self::Server(_) => "Server",
            Self::SettingsHook { .. } => "SettingsHook",
            Self::FileHook { .. } => "FileHook",
        })
    }
}

/// An item that another crate found, with why it does not count.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnItem {
    /// The item.
    pub item: Item,
    /// True if it waits for the project's trust.
    pub waits_for_trust: bool,
    /// Why else it does not count, such as that it is a link that leads out of the project.
    pub reason: Option<String>,
}

impl Item {
    /// An item whose key is its name.
    #[must_use]
    pub fn new(
        kind: CapabilityKind,
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        (provider, level): (Provider, CapabilityLevel),
    ) -> Self {
        let name = name.into();
        Self {
            kind,
            key: name.clone(),
            id: format!("{}:{name}", kind.id_prefix()),
            name,
            description: None,
            path: path.into(),
            provider,
            level,
            fields: Map::new(),
            detail: ItemDetail::None,
            is_switched_off: false,
            no_effect: None,
        }
    }

    /// A context file: at most one counts for each folder, and one for the user. `distance` is how many folders above the working directory
    /// it counts for.
    #[must_use]
    pub fn context(
        path: impl Into<PathBuf>,
        distance: Option<usize>,
        (provider, level): (Provider, CapabilityLevel),
    ) -> Self {
        let path = path.into();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of = match level {
            CapabilityLevel::User => "user",
            CapabilityLevel::Project => "project",
        };
        let key = distance.map_or_else(|| "user".to_owned(), |distance| format!("project:{distance}"));
        Self {
            key,
            id: format!("context-file:{of}:{name}"),
            detail: ItemDetail::Context(distance),
            ..Self::new(CapabilityKind::ContextFiles, name, path, (provider, level))
        }
    }

    /// The same with that description.
    #[must_use]
    pub fn described(mut self, description: impl Into<Option<String>>) -> Self {
        self.description = description.into();
        self
    }

    /// A text of the front matter that is not empty.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// A field of the front matter that is true or false; `None` where it is neither.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.fields.get(key)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The texts of a field that is a list, or a text with commas.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<String> {
        self.fields.get(key).map(texts_of).unwrap_or_default()
    }
}

/// The texts of a list, or of a text with commas. A comma between braces, as of a glob, divides nothing.
fn texts_of(value: &Value) -> Vec<String> {
    let kept = |text: &str| {
        let text = text.trim().trim_matches(['"', '\'']).trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).filter_map(kept).collect(),
        Value::String(text) => {
            let text = text.trim();
            let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            let mut depth = 0_usize;
            let parts = inside.split(|letter| {
                match letter {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                letter == ',' && depth == 0
            });
            parts.filter_map(kept).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_written_in_several_ways() {
        for (value, expected) in [
            (json!("*.ts, **/*.{js,jsx}"), vec!["*.ts", "**/*.{js,jsx}"]),
            (json!(["a", " b ", 3, ""]), vec!["a", "b"]),
            (json!("[\"a\", *.b]"), vec!["a", "*.b"]),
            (json!(""), vec![]),
            (json!(null), vec![]),
            (json!("}a,b"), vec!["}a", "b"]),
        ] {
            assert_eq!(texts_of(&value), expected, "{value}");
        }
    }
}
