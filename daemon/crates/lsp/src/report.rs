//! Results as compact text: `path:line:column`, and the line of the source.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_protocol::text_bounds;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    client::read_text,
    diagnostics::Diagnostic,
    position::{Encoding, Lines, Position},
    session::SessionServers,
    uri::path_of,
};

/// Places that one result has.
pub(crate) const MAX_PLACES: usize = 100;

/// The longest line of a source that is shown, in bytes.
const MAX_LINE_BYTES: usize = 200;

/// The longest text of a result, in bytes.
const MAX_TEXT_BYTES: usize = 30_000;

/// A diagnostic in a line: `src/a.rs:3:5: error[E0308]: mismatched types`.
pub(crate) fn diagnostic_line(servers: &SessionServers, path: &Path, it: &Diagnostic) -> String {
    let code = it.code.as_deref().map(|code| format!("[{code}]")).unwrap_or_default();
    let Position { line, column } = it.range.start;
    let message =
        it.message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let (path, message) = (servers.shown(path), text_bounds::head(&message, 600));
    format!("{path}:{}:{}: {}{code}: {message}", line + 1, column + 1, it.severity.name())
}

/// Diagnostics for clients.
pub(crate) fn diagnostics_json(servers: &SessionServers, all: &[(PathBuf, Diagnostic)]) -> Value {
    let one = |(path, it): &(PathBuf, Diagnostic)| {
        let mut value = json!({
            "path": servers.shown(path),
            "line": it.range.start.line + 1,
            "column": it.range.start.column + 1,
            "severity": it.severity.name(),
            "message": it.message,
        });
        if let Some(code) = &it.code {
            value["code"] = code.as_str().into();
        }
        if let Some(source) = &it.source {
            value["source"] = source.as_str().into();
        }
        value
    };
    all.iter().map(one).collect()
}

/// A place in a file, in the columns of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) start: Position,
    /// What stands there, where the server says so.
    pub(crate) label: String,
}

impl Place {
    /// The places of a `Location`, a `LocationLink`, or lists of both. Those in no file are passed over.
    pub(crate) fn list(value: &Value) -> Vec<Self> {
        let items = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Null => Vec::new(),
            one => vec![one],
        };
        items.into_iter().filter_map(Self::of).collect()
    }

    fn of(value: &Value) -> Option<Self> {
        let uri = value.get("uri").or_else(|| value.get("targetUri"))?.as_str()?;
        let range = ["targetSelectionRange", "targetRange", "range"].iter().find_map(|name| value.get(*name));
        let start = range.and_then(|range| range.get("start")).map(Position::of).unwrap_or_default();
        Some(Self { path: path_of(uri)?, start, label: String::new() })
    }
}

/// Reads the lines that results show. Each file once.
pub(crate) struct Sources<'a> {
    servers: &'a SessionServers,
    texts: HashMap<PathBuf, Option<Arc<str>>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(servers: &'a SessionServers) -> Self {
        Self { servers, texts: HashMap::new() }
    }

    async fn text(&mut self, path: &Path, cancel: &CancellationToken) -> Option<Arc<str>> {
        if let Some(known) = self.texts.get(path) {
            return known.clone();
        }
        let read = read_text(&self.servers.place.host, path, cancel).await.ok().map(|read| read.text);
        self.texts.insert(path.to_owned(), read.clone());
        read
    }

    /// Places as lines, in the order of files and lines, each once.
    pub(crate) async fn places(
        &mut self,
        mut places: Vec<Place>,
        encoding: Encoding,
        cancel: &CancellationToken,
    ) -> String {
        places.sort();
        places.dedup();
        let count = places.len();
        let mut lines = Vec::new();
        for place in places.into_iter().take(MAX_PLACES) {
            let text = self.text(&place.path, cancel).await;
            lines.push(self.shown(&place, text.as_deref(), encoding));
        }
        if count > MAX_PLACES {
            lines.push(format!("[{} more are left out]", count - MAX_PLACES));
        }
        lines.join("\n")
    }

    fn shown(&self, place: &Place, text: Option<&str>, encoding: Encoding) -> String {
        let index = usize::try_from(place.start.line).unwrap_or(usize::MAX);
        let line = text.and_then(|text| Lines::of(text).line(index));
        let column = match line {
            Some(line) => line[..encoding.byte(line, place.start.column)].chars().count() as u64,
            None => place.start.column,
        };
        let at = format!("{}:{}:{}", self.servers.shown(&place.path), place.start.line + 1, column + 1);
        let line = line.map(|line| text_bounds::head(line.trim(), MAX_LINE_BYTES)).unwrap_or_default();
        match (place.label.as_str(), line) {
            ("", "") => at,
            ("", line) => format!("{at}: {line}"),
            (label, "") => format!("{at}: {label}"),
            (label, line) => format!("{at}: {label} | {line}"),
        }
    }
}

/// A text that is not too long for a result.
pub(crate) fn bounded(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let head = text_bounds::head(&text, MAX_TEXT_BYTES);
    format!("{head}\n[{} bytes more are left out]", text.len() - head.len())
}

/// The name of a `SymbolKind`.
pub(crate) fn kind_name(kind: Option<&Value>) -> &'static str {
    const NAMES: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    let number = kind.and_then(Value::as_u64).and_then(|kind| usize::try_from(kind).ok());
    number.and_then(|kind| NAMES.get(kind.checked_sub(1)?)).copied().unwrap_or("symbol")
}

/// The text of a hover: marked-up text, plain text, or a list of both.
pub(crate) fn hover_text(contents: &Value) -> String {
    match contents {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(parts) => {
            let parts = parts.iter().map(hover_text).filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("\n\n")
        }
        Value::Object(part) => {
            let text = part.get("value").and_then(Value::as_str).unwrap_or_default().trim();
            match part.get("language").and_then(Value::as_str) {
                Some(language) if !text.is_empty() => format!("```{language}\n{text}\n```"),
                _ => text.to_owned(),
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_all_forms() {
        let start = json!({"line": 2, "character": 3});
        let range = json!({"start": start, "end": start});
        let other = json!({"start": {"line": 9, "character": 9}, "end": start});
        let place = |path: &str| Place {
            path: path.into(),
            start: Position { line: 2, column: 3 },
            label: String::new(),
        };
        let location = json!({"uri": "file:///a", "range": range});
        let link = json!({"targetUri": "file:///b", "targetRange": other, "targetSelectionRange": range});
        assert_eq!(Place::list(&location), [place("/a")]);
        assert_eq!(
            Place::list(&json!([location, link, {"uri": "jar:x", "range": range}, 3])),
            [place("/a"), place("/b"),]
        );
        assert!(Place::list(&Value::Null).is_empty());
    }

    #[test]
    fn hovers_of_all_forms() {
        assert_eq!(hover_text(&json!({"kind": "markdown", "value": " a "})), "a");
        let parts = json!(["x", {"language": "rust", "value": "fn"}, {"value": ""}]);
        assert_eq!(hover_text(&parts), "x\n\n```rust\nfn\n```");
        assert_eq!(hover_text(&json!(3)), "");
        assert_eq!((kind_name(Some(&json!(12))), kind_name(Some(&json!(99)))), ("function", "symbol"));
    }
}
