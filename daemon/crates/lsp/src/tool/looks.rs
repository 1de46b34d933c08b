//! Actions that only look.

use std::path::PathBuf;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::{Call, CallFile, document};
use crate::{
    client::Client,
    diagnostics::{Diagnostic, Severity},
    edit_diagnostics::settle,
    position::Range,
    report::{MAX_PLACES, Place, Sources, diagnostic_line, hover_text, kind_name},
};

/// The deepest nesting of symbols.
const MAX_NESTING: usize = 8;

/// Symbols that a result has.
const MAX_SYMBOLS: usize = 400;

impl Call<'_> {
    pub(super) async fn diagnostics(&self) -> Result<String, String> {
        if self.arguments.file.is_none() {
            return Ok(self.all_diagnostics().await);
        }
        let file = self.file().await?;
        let mut all: Vec<(PathBuf, Diagnostic)> = Vec::new();
        let (mut silent, mut failed, mut complaints) = (Vec::new(), Vec::new(), Vec::new());
        let asked = file.targets.iter().map(|target| async {
            let client = self.client(target).await?;
            let has_settled = self.settled(&client, &file).await?;
            Ok::<_, String>((client, has_settled))
        });
        for asked in join_all(asked).await {
            match asked {
                Ok((client, has_settled)) => {
                    let of_file = client.diagnostics_of(&file.path).all();
                    all.extend(of_file.into_iter().map(|it| (file.path.clone(), it)));
                    if !has_settled {
                        silent.push(client.name.clone());
                    }
                    complaints.extend(client.complaint().map(|why| format!("{} says: {why}", client.name)));
                }
                Err(error) => failed.push(error),
            }
        }
        if failed.len() == file.targets.len() {
            return Err(failed.join("; "));
        }
        let mut text = self.told(all, &format!("No diagnostics in {}.", file.given));
        if !silent.is_empty() {
            text.push_str(&format!("\n[{} was still at work: there may be more]", silent.join(", ")));
        }
        for error in failed.into_iter().chain(complaints) {
            text.push_str(&format!("\n[{error}]"));
        }
        Ok(text)
    }

    /// Gives a server the file and waits for what it says; whether it had finished.
    async fn settled(&self, client: &Client, file: &CallFile) -> Result<bool, String> {
        client.refresh().await;
        let synced = client.sync(&file.path, &file.language).await?;
        if synced.is_new || synced.reports == 0 || client.is_busy() {
            // What was given before may be what is waited for.
            let seen = if synced.is_new { synced.reports } else { 0 };
            let settling = settle(client, &file.path, (seen, synced.version), self.until, &self.cancel);
            return Ok(timeout_at(self.until, settling).await.is_ok() && !client.is_busy());
        }
        let _ =
            client.pull(&file.path, self.left(), &self.cancel).await.map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// What the running servers of this session's projects have said so far.
    async fn all_diagnostics(&self) -> String {
        let (mut all, mut names) = (Vec::new(), Vec::new());
        for client in self.running_here() {
            client.refresh().await;
            names.push(client.name.clone());
            let of_files = client.all_diagnostics().into_iter();
            all.extend(
                of_files.flat_map(|(path, items)| items.into_iter().map(move |it| (path.clone(), it))),
            );
        }
        if names.is_empty() {
            return "No language server runs; diagnostics of a file start the one for it.".to_owned();
        }
        self.told(all, &format!("No diagnostics of {} so far.", names.join(", ")))
    }

    fn told(&self, mut all: Vec<(PathBuf, Diagnostic)>, none: &str) -> String {
        all.sort_by(|(one, first), (other, second)| {
            (first.severity, one, first.range).cmp(&(second.severity, other, second.range))
        });
        all.dedup();
        if all.is_empty() {
            return none.to_owned();
        }
        let count = |severity: Severity| all.iter().filter(|(_, it)| it.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let mut lines = vec![format!("{errors} error(s), {warnings} warning(s):")];
        lines.extend(all.iter().take(MAX_PLACES).map(|(path, it)| diagnostic_line(self.servers, path, it)));
        if all.len() > MAX_PLACES {
            lines.push(format!("[{} more are left out]", all.len() - MAX_PLACES));
        }
        lines.join("\n")
    }

    /// Places that belong to a symbol.
    pub(super) async fn locations(&self, method: &str, provider: &str) -> Result<String, String> {
        let file = self.file().await?;
        let place = self.place(&file).await?;
        self.check(&place.client, provider, method)?;
        let mut params = json!({"textDocument": document(&file.path), "position": place.position.to_json()});
        if method == "textDocument/references" {
            params["context"] = json!({"includeDeclaration": true});
        }
        let answer = self.ask(&place.client, method, &params).await?;
        let places = Place::list(&answer);
        if places.is_empty() {
            return Ok(format!("{} found nothing.{}", place.client.name, excuse(&place.client)));
        }
        let count = places.len();
        let text = Sources::new(self.servers).places(places, place.client.encoding(), &self.cancel).await;
        Ok(if count > 1 { format!("{count} places:\n{text}") } else { text })
    }

    pub(super) async fn hover(&self) -> Result<String, String> {
        let file = self.file().await?;
        let place = self.place(&file).await?;
        self.check(&place.client, "hoverProvider", "textDocument/hover")?;
        let params = json!({"textDocument": document(&file.path), "position": place.position.to_json()});
        let answer = self.ask(&place.client, "textDocument/hover", &params).await?;
        let text = hover_text(answer.get("contents").unwrap_or(&Value::Null));
        if text.is_empty() {
            return Ok(format!("{} says nothing about it.{}", place.client.name, excuse(&place.client)));
        }
        Ok(text)
    }

    pub(super) async fn symbols(&self) -> Result<String, String> {
        let query = self.arguments.query.as_deref().map(str::trim).filter(|query| !query.is_empty());
        match (&self.arguments.file, query) {
            (Some(_), None) => self.symbols_of_file().await,
            (None, None) => Err("file or query is missing: the file, or a name to look for".to_owned()),
            (_, Some(query)) => self.symbols_of_project(query).await,
        }
    }

    async fn symbols_of_file(&self) -> Result<String, String> {
        let file = self.file().await?;
        let (client, _) = self.main_client(&file).await?;
        self.check(&client, "documentSymbolProvider", "textDocument/documentSymbol")?;
        let params = json!({"textDocument": document(&file.path)});
        let answer = self.ask(&client, "textDocument/documentSymbol", &params).await?;
        let mut lines = Vec::new();
        outline(&answer, 0, &mut lines);
        if lines.is_empty() {
            return Ok(format!("{} has no symbols.", file.given));
        }
        Ok(format!("{} (line: kind name)\n{}", file.given, lines.join("\n")))
    }

    async fn symbols_of_project(&self, query: &str) -> Result<String, String> {
        let clients = match self.arguments.file {
            Some(_) => {
                let file = self.file().await?;
                vec![self.main_client(&file).await?.0]
            }
            None => self.running_here(),
        };
        if clients.is_empty() {
            return Err("no language server runs: give a file of the language beside query".to_owned());
        }
        let (mut texts, mut failed) = (Vec::new(), Vec::new());
        for client in clients {
            if !client.can("workspaceSymbolProvider", "workspace/symbol") {
                failed.push(format!("{} cannot look for symbols", client.name));
                continue;
            }
            match self.ask(&client, "workspace/symbol", &json!({"query": query})).await {
                Ok(answer) => {
                    let items = answer.as_array().into_iter().flatten();
                    let places: Vec<Place> = items.filter_map(symbol_place).collect();
                    if !places.is_empty() {
                        let mut sources = Sources::new(self.servers);
                        texts.push(sources.places(places, client.encoding(), &self.cancel).await);
                    }
                }
                Err(error) => failed.push(error),
            }
        }
        match (texts.is_empty(), failed.is_empty()) {
            (true, true) => Ok(format!("No symbol fits \"{query}\".")),
            (true, false) => Err(failed.join("; ")),
            (false, _) => Ok(texts.join("\n")),
        }
    }
}

/// Why a server may have found nothing: it is still reading the project, or says what is wrong with it.
fn excuse(client: &Client) -> String {
    match client.complaint() {
        Some(why) => format!(" It says: {why}"),
        None if client.is_busy() => " It is still reading the project: try again.".to_owned(),
        None => String::new(),
    }
}

/// A symbol of the project as a place.
fn symbol_place(symbol: &Value) -> Option<Place> {
    let mut place = Place::list(symbol.get("location")?).into_iter().next()?;
    let name = symbol.get("name").and_then(Value::as_str).unwrap_or_default();
    let container = symbol.get("containerName").and_then(Value::as_str).filter(|name| !name.is_empty());
    let container = container.map(|name| format!(" in {name}")).unwrap_or_default();
    place.label = format!("{} {name}{container}", kind_name(symbol.get("kind")));
    Some(place)
}

/// The symbols of a file, a line each, indented as they are nested.
fn outline(symbols: &Value, depth: usize, lines: &mut Vec<String>) {
    for symbol in symbols.as_array().into_iter().flatten() {
        if lines.len() == MAX_SYMBOLS {
            lines.push("[more are left out]".to_owned());
        }
        if lines.len() > MAX_SYMBOLS {
            return;
        }
        let Some(name) = symbol.get("name").and_then(Value::as_str) else { continue };
        let range = ["/selectionRange", "/range", "/location/range"];
        let range = range.iter().find_map(|at| symbol.pointer(at)).and_then(Range::of).unwrap_or_default();
        let detail = symbol.get("detail").and_then(Value::as_str).filter(|detail| !detail.is_empty());
        let detail = detail.map(|detail| format!(" {}", detail.lines().next().unwrap_or_default()));
        let (indent, kind) = ("  ".repeat(depth), kind_name(symbol.get("kind")));
        let line = range.start.line + 1;
        lines.push(format!("{indent}{line}: {kind} {name}{}", detail.unwrap_or_default()));
        if let Some(children) = symbol.get("children").filter(|_| depth < MAX_NESTING) {
            outline(children, depth + 1, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_of_both_forms() {
        let range = |line: u64| {
            let start = json!({"line": line, "character": 0});
            json!({"start": start, "end": start})
        };
        let symbols = json!([
            {"name": "A", "kind": 5, "selectionRange": range(0), "range": range(0), "children": [
                {"name": "m", "kind": 6, "detail": "() -> x\nmore", "selectionRange": range(2)},
            ]},
            {"name": "f", "kind": 12, "location": {"uri": "file:///a", "range": range(7)}},
            {"kind": 1},
        ]);
        let mut lines = Vec::new();
        outline(&symbols, 0, &mut lines);
        assert_eq!(lines, ["1: class A", "  3: method m () -> x", "8: function f"]);
    }
}
