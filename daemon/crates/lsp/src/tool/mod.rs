//! The tool `lsp`: questions to language servers, and edits that they make.

mod changes;
mod code_actions;
mod control;
mod looks;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::tool::{ToolResult, ToolSpec};
use agentd_tools::resolve_path_argument;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    client::Client,
    connection::RequestError,
    position::{Lines, Position, occurrences, split_number, symbol_in_line},
    report::bounded,
    session::{SessionServers, Target},
    table::language_of,
    uri::file_uri,
};

/// The tool's name.
pub const LSP_TOOL: &str = "lsp";

/// Seconds for a call.
const TIMEOUT: u64 = 20;
const MIN_TIMEOUT: u64 = 5;
const MAX_TIMEOUT: u64 = 300;

/// Lines that an error names, in which a symbol stands.
const MAX_HINTS: usize = 8;

/// Questions to language servers.
pub struct LspTool {
    servers: Arc<SessionServers>,
}

impl LspTool {
    /// The tool of the session that has these servers.
    #[must_use]
    pub fn new(servers: Arc<SessionServers>) -> Self {
        Self { servers }
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| Arc::new(spec()));

fn spec() -> ToolSpec {
    ToolSpec {
        name: LSP_TOOL.to_owned(),
        description: "Ask the language server of a file, which knows the code: where a symbol is defined and used, its type, \
                      what is wrong. rename changes every use of a symbol, rename_file moves a file and the imports of it. \
                      A position is a line and the text of the symbol in it; name#2 is the second one in the line."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ACTIONS,
                    "description": "diagnostics: of file, or all that are known. symbols: of file, or those of the project that \
                                    fit query. code_actions: fixes and refactorings at line; with apply, the one that query \
                                    names by number or title. status: the servers. reload: start the servers anew. \
                                    capabilities: what the server of file can do. request: any method (query) with payload",
                },
                "file": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                "line": {"type": "integer", "minimum": 1, "description": "The line, from 1"},
                "symbol": {"type": "string", "description": "The name in that line, as it stands there"},
                "query": {"type": "string", "description": "For symbols, code_actions and request"},
                "new_name": {"type": "string", "description": "rename: the new name; rename_file: the new path"},
                "apply": {
                    "type": "boolean",
                    "description": "rename, rename_file: false shows what would change. code_actions: true does it",
                },
                "timeout": {
                    "type": "integer",
                    "minimum": MIN_TIMEOUT,
                    "maximum": MAX_TIMEOUT,
                    "description": "Seconds, default 20; a server that starts may need more",
                },
                "payload": {"description": "request: the parameters, as JSON"},
            },
            "required": ["action"],
        }),
        constrained_sampling: None,
    }
}

const ACTIONS: [&str; 14] = [
    "diagnostics",
    "definition",
    "references",
    "hover",
    "symbols",
    "rename",
    "rename_file",
    "code_actions",
    "type_definition",
    "implementation",
    "status",
    "reload",
    "capabilities",
    "request",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LspAction {
    Diagnostics,
    Definition,
    References,
    Hover,
    Symbols,
    Rename,
    RenameFile,
    CodeActions,
    TypeDefinition,
    Implementation,
    Status,
    Reload,
    Capabilities,
    Request,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LspArguments {
    action: LspAction,
    file: Option<String>,
    line: Option<u64>,
    symbol: Option<String>,
    query: Option<String>,
    new_name: Option<String>,
    apply: Option<bool>,
    timeout: Option<u64>,
    payload: Option<Value>,
}

/// One call.
pub(crate) struct Call<'a> {
    servers: &'a Arc<SessionServers>,
    arguments: LspArguments,
    call_id: String,
    cwd: PathBuf,
    cancel: CancellationToken,
    until: Instant,
}

/// A file of a call, and the servers for it. The first one is the language's, unless there are only linters.
struct CallFile {
    path: PathBuf,
    /// As the model gave it.
    given: String,
    language: String,
    targets: Vec<Target>,
}

/// A place in a file that a server has.
struct CallPlace {
    client: Arc<Client>,
    text: Arc<str>,
    position: Position,
}

impl Tool for LspTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Ask language servers: definitions, references, types, diagnostics; rename symbols and files")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "Use lsp references before you change what others may use, and lsp rename instead of many edits.",
        ]
    }

    fn prepare(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        // Models know the argument of other tools, and write numbers as texts.
        if let (None, Some(path)) = (arguments.get("file"), arguments.get("path").cloned()) {
            arguments.insert("file".to_owned(), path);
            arguments.shift_remove("path");
        }
        for name in ["line", "timeout"] {
            if let Some(number) =
                arguments.get(name).and_then(Value::as_str).and_then(|it| it.parse::<u64>().ok())
            {
                arguments.insert(name.to_owned(), number.into());
            }
        }
        arguments
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            let arguments: LspArguments =
                serde_json::from_value(invocation.arguments).map_err(|error| ToolError(error.to_string()))?;
            let seconds = arguments.timeout.unwrap_or(TIMEOUT).clamp(MIN_TIMEOUT, MAX_TIMEOUT);
            let call = Call {
                servers: &self.servers,
                arguments,
                call_id: invocation.call_id,
                cwd: invocation.cwd,
                cancel: invocation.cancel,
                until: Instant::now() + Duration::from_secs(seconds),
            };
            call.run().await.map_err(ToolError)
        })
    }
}

impl Call<'_> {
    async fn run(&self) -> Result<ToolResult, String> {
        let text = match self.arguments.action {
            LspAction::Diagnostics => self.diagnostics().await,
            LspAction::Definition => self.locations("textDocument/definition", "definitionProvider").await,
            LspAction::TypeDefinition => {
                self.locations("textDocument/typeDefinition", "typeDefinitionProvider").await
            }
            LspAction::Implementation => {
                self.locations("textDocument/implementation", "implementationProvider").await
            }
            LspAction::References => self.locations("textDocument/references", "referencesProvider").await,
            LspAction::Hover => self.hover().await,
            LspAction::Symbols => self.symbols().await,
            LspAction::Rename => return self.rename().await,
            LspAction::RenameFile => return self.rename_file().await,
            LspAction::CodeActions => return self.code_actions().await,
            LspAction::Status => self.status().await,
            LspAction::Reload => self.reload().await,
            LspAction::Capabilities => self.show_capabilities().await,
            LspAction::Request => self.any_request().await,
        };
        Ok(ToolResult::text(bounded(text?)))
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// An argument that the action needs.
    fn need<'b>(&self, value: Option<&'b String>, name: &str, what: &str) -> Result<&'b str, String> {
        let value = value.map(String::as_str).filter(|value| !value.trim().is_empty());
        value.ok_or_else(|| format!("{name} is missing: {what}"))
    }

    fn absolute(&self, given: &str) -> Result<PathBuf, String> {
        resolve_path_argument(given, &self.cwd, &self.servers.place.home)
    }

    /// The file of the call and the servers for it.
    async fn file(&self) -> Result<CallFile, String> {
        let given = self.need(self.arguments.file.as_ref(), "file", "the file that it is about")?.to_owned();
        let path = self.servers.real_path(self.absolute(&given)?).await?;
        let targets = self.servers.targets(&path).await;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if targets.found.is_empty() {
            let mut why = Vec::new();
            if !targets.missing.is_empty() {
                why.push(format!("none of these is on PATH: {}", targets.missing.join(", ")));
            }
            if !targets.without_root.is_empty() {
                why.push(format!("no project was found for {}", targets.without_root.join(", ")));
            }
            if why.is_empty() {
                why.push("no server is known for this kind of file; one can be named in lsp.json".to_owned());
            }
            return Err(format!("There is no language server for {given}: {}.", why.join("; ")));
        }
        Ok(CallFile { language: language_of(&name), path, given, targets: targets.found })
    }

    /// The server for the language of a file, which has its text.
    async fn main_client(&self, file: &CallFile) -> Result<(Arc<Client>, Arc<str>), String> {
        let Some(target) = file.targets.iter().find(|target| !target.server.is_linter) else {
            let names: Vec<&str> = file.targets.iter().map(|target| target.server.name.as_str()).collect();
            return Err(format!(
                "There is no language server for {}, only {}, which says what is wrong.",
                file.given,
                names.join(", ")
            ));
        };
        let client = self.client(target).await?;
        client.refresh().await;
        let synced = client.sync(&file.path, &file.language).await?;
        self.ready(&client).await?;
        Ok((client, synced.text))
    }

    /// Waits until a server that has just begun has read the project, as far as it tells; at most three quarters of the time of the call.
    async fn ready(&self, client: &Client) -> Result<(), String> {
        if client.age() > READING {
            return Ok(());
        }
        let mut news = client.news();
        let until = Instant::now() + self.left().mul_f64(0.75);
        let reading = async {
            loop {
                let wait = if client.is_busy() { READING } else { FIRST_WORD.saturating_sub(client.age()) };
                if client.ended().is_some() || wait.is_zero() {
                    return;
                }
                // A server that says nothing for so long has nothing to tell.
                let _ = tokio::time::timeout(wait, news.changed()).await;
            }
        };
        match self.cancel.run_until_cancelled(tokio::time::timeout_at(until, reading)).await {
            Some(_) => Ok(()),
            None => Err("Operation aborted".to_owned()),
        }
    }

    async fn client(&self, target: &Target) -> Result<Arc<Client>, String> {
        self.servers.client(target, &self.call_id, self.left(), &self.cancel).await
    }

    /// The position that the call names.
    async fn place(&self, file: &CallFile) -> Result<CallPlace, String> {
        let (client, text) = self.main_client(file).await?;
        let position = self.position(&text, &client)?;
        Ok(CallPlace { client, text, position })
    }

    fn position(&self, text: &str, client: &Client) -> Result<Position, String> {
        let lines = Lines::of(text);
        let (line, symbol) = (self.arguments.line, self.arguments.symbol.as_deref());
        let Some(number) = line else {
            let symbol =
                symbol.ok_or("line is missing: the line of the symbol, from 1, beside the text of it")?;
            let (name, which) = split_number(symbol);
            let found = occurrences(text, name).get(which - 1).copied();
            let at = found.ok_or_else(|| format!("\"{name}\" is not in the file"))?;
            let (index, start) = line_at(text, at);
            let line = lines.line(index).unwrap_or_default();
            return Ok(Position { line: index as u64, column: client.encoding().column(line, at - start) });
        };
        let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let line = lines.line(index).ok_or_else(|| format!("the file has only {} lines", lines.count()))?;
        let byte = match symbol {
            Some(symbol) => symbol_in_line(line, symbol).map_err(|why| {
                let hint = hints(&lines, split_number(symbol).0);
                format!("{why} {number}, which is: {}{hint}", line.trim())
            })?,
            None => line.len() - line.trim_start().len(),
        };
        Ok(Position { line: index as u64, column: client.encoding().column(line, byte) })
    }

    /// Asks a server about a file in the time of the call.
    async fn ask(&self, client: &Client, method: &str, params: &Value) -> Result<Value, String> {
        loop {
            let answer = client.request(method, params, self.left(), &self.cancel).await;
            match answer {
                Ok(answer) => return Ok(answer),
                // A server that has not finished reading the project, or whose text was changed just now, says so by these codes.
                Err(RequestError::Refused(error))
                    if matches!(error.code, CONTENT_MODIFIED | SERVER_CANCELLED)
                        && !self.left().is_zero() =>
                {
                    let mut news = client.news();
                    let pause = tokio::time::timeout(RETRY_PAUSE.min(self.left()), news.changed());
                    if self.cancel.run_until_cancelled(pause).await.is_none() {
                        return Err("Operation aborted".to_owned());
                    }
                }
                Err(error @ RequestError::Aborted) => return Err(error.to_string()),
                Err(error) => return Err(format!("{}: {error}", client.name)),
            }
        }
    }

    /// Refuses what the server says that it cannot do.
    fn check(&self, client: &Client, provider: &str, method: &str) -> Result<(), String> {
        if client.can(provider, method) {
            return Ok(());
        }
        Err(format!("{} cannot do that: it has no {provider}", client.name))
    }
}

/// The codes of servers that were not ready, or that had another text meanwhile.
const CONTENT_MODIFIED: i64 = -32801;
const SERVER_CANCELLED: i64 = -32802;

/// For how long a server counts as having just begun.
const READING: Duration = Duration::from_secs(300);

/// Time in which a server that begins says that it reads the project.
const FIRST_WORD: Duration = Duration::from_millis(400);

/// Time after which a server that was not ready is asked again, unless it says something before.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The line at a byte of a text, and where that begins.
fn line_at(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte];
    let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    (Lines::of(before).count() - 1, start)
}

/// Lines in which a symbol stands, for a model that is wrong about the line.
fn hints(lines: &Lines<'_>, name: &str) -> String {
    let all = (0..lines.count()).filter(|index| lines.line(*index).is_some_and(|line| line.contains(name)));
    let found: Vec<String> = all.take(MAX_HINTS).map(|index| (index + 1).to_string()).collect();
    match found.as_slice() {
        [] => String::new(),
        found => format!(". It stands in line {}", found.join(", ")),
    }
}

/// The parameter that names a file.
fn document(path: &Path) -> Value {
    json!({"uri": file_uri(path)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_actions_are_those_that_models_are_told() {
        for action in ACTIONS {
            let read = serde_json::from_value::<LspArguments>(json!({"action": action}));
            assert!(read.is_ok(), "{action}");
        }
        assert!(serde_json::from_value::<LspArguments>(json!({"action": "else"})).is_err());
    }

    #[test]
    fn the_line_of_a_byte() {
        let text = "a\r\nb\rc";
        assert_eq!([0, 3, 5].map(|byte| line_at(text, byte)), [(0, 0), (1, 3), (2, 5)]);
        assert_eq!(hints(&Lines::of("x\ny x\nz"), "x"), ". It stands in line 1, 2");
    }
}
