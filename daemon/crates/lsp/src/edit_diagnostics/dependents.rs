//! The files that use what a change is of: many servers check only the files that they have.

use std::path::{Path, PathBuf};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settling::first_report;
use crate::{
    client::Client, diagnostics::LineShift, position::Range, report::Place, session::SessionServers,
    table::language_of, uri::file_uri,
};

/// Symbols of a change whose uses are looked for.
const MAX_SYMBOLS: usize = 4;

/// Files that use them, and are given to the server.
const MAX_DEPENDENTS: usize = 8;

/// A file that uses what changes, and the lines of the uses.
pub(crate) struct Dependent {
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<u64>,
}

/// Gives the server the files that use what changed, while it still has the old text; those files.
pub(crate) async fn open_dependents(
    servers: &SessionServers,
    client: &Client,
    path: &Path,
    shift: LineShift,
    until: Instant,
    cancel: &CancellationToken,
) -> Vec<Dependent> {
    let left = || until.saturating_duration_since(Instant::now());
    if !client.can("documentSymbolProvider", "textDocument/documentSymbol")
        || !client.can("referencesProvider", "textDocument/references")
    {
        return Vec::new();
    }
    let document = json!({"uri": file_uri(path)});
    let params = json!({"textDocument": document});
    let symbols = client.request("textDocument/documentSymbol", &params, left(), cancel).await;
    let Ok(symbols) = symbols else { return Vec::new() };
    let mut places = Vec::new();
    changed_symbols(&symbols, *shift.changed().start(), *shift.changed().end(), &mut places);
    let asked = places.into_iter().take(MAX_SYMBOLS).map(|place| {
        let params = json!({
            "textDocument": document,
            "position": place.start.to_json(),
            "context": {"includeDeclaration": false},
        });
        async move { client.request("textDocument/references", &params, left(), cancel).await }
    });
    let mut files: Vec<Dependent> = Vec::new();
    for place in join_all(asked).await.into_iter().flatten().flat_map(|found| Place::list(&found)) {
        if place.path == path || !servers.is_inside(&place.path) {
            continue;
        }
        let is_full = files.len() >= MAX_DEPENDENTS;
        match files.iter_mut().find(|file| file.path == place.path) {
            Some(file) => file.lines.push(place.start.line),
            None if is_full => {}
            None => files.push(Dependent { path: place.path, lines: vec![place.start.line] }),
        }
    }
    let mut opened = Vec::new();
    for file in files {
        let name = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Ok(synced) = client.sync(&file.path, &language_of(&name)).await else { continue };
        if synced.is_new {
            opened.push((file, synced.reports));
        }
    }
    let reports =
        opened.iter().map(|(file, reports)| first_report(client, &file.path, *reports, until, cancel));
    join_all(reports).await;
    opened.into_iter().map(|(file, _)| file).collect()
}

/// The names of symbols that stand in changed lines, and of the innermost ones around these lines.
fn changed_symbols(symbols: &Value, first: u64, last: u64, places: &mut Vec<Range>) {
    for symbol in symbols.as_array().into_iter().flatten() {
        let Some(range) =
            symbol.get("range").or_else(|| symbol.pointer("/location/range")).and_then(Range::of)
        else {
            continue;
        };
        if range.end.line < first || range.start.line > last {
            continue;
        }
        let known = places.len();
        if let Some(children) = symbol.get("children") {
            changed_symbols(children, first, last, places);
        }
        let name = symbol.get("selectionRange").and_then(Range::of).unwrap_or(range);
        if places.len() == known || (first..=last).contains(&name.start.line) {
            places.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_changed_lines() {
        let range = |first: u64, last: u64| json!({"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}});
        let symbols = json!([
            {"range": range(0, 9), "selectionRange": range(0, 0), "children": [
                {"range": range(1, 3), "selectionRange": range(1, 1)},
                {"range": range(5, 8), "selectionRange": range(5, 5)},
            ]},
            {"location": {"range": range(10, 12)}},
        ]);
        let of = |first, last| {
            let mut places = Vec::new();
            changed_symbols(&symbols, first, last, &mut places);
            places.iter().map(|place| place.start.line).collect::<Vec<_>>()
        };
        assert_eq!(of(2, 2), [1]);
        assert_eq!(of(4, 4), [0]);
        assert_eq!(of(0, 5), [1, 5, 0]);
        assert_eq!(of(11, 11), [10]);
        assert!(of(20, 20).is_empty());
    }
}
