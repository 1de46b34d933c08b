//! Calls of a server's tools, and other requests.

use std::sync::Arc;

use agentd_agent::{Invocation, ToolError};
use agentd_memory::{MemoryPurpose, MemoryRefused};
use agentd_process::OutputStorage;
use agentd_protocol::tool::ToolResult;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{McpServer, clean, connecting::Attempt, handshake::Connection, rounds};
use crate::{
    elicitation::{UserInput, ask_page, required_pages},
    header_arguments,
    http::is_transient,
    message::{self, ServerError},
    peer::{ProgressReport, RequestError, RequestTerms},
    result::{Spill, tool_result},
    revision::PAGE_REQUIRED,
};

/// Why nothing was made of an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unbuilt {
    /// There is no memory for it.
    #[error("its answer was given up: {why}. {hint}", why = .0, hint = .0.hint())]
    NoMemory(MemoryRefused),
    /// What is wrong with it.
    #[error("{0}")]
    Failed(String),
}

/// The result of a call that was stopped.
const ABORTED: &str = "Operation aborted";

impl McpServer {
    /// Calls a tool. `user` answers what the server asks meanwhile.
    ///
    /// # Errors
    /// The text for the model.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        invocation: Invocation,
        user: Option<Arc<dyn UserInput>>,
        storage: &OutputStorage,
    ) -> Result<ToolResult, ToolError> {
        let name = format!("{}/{tool}", self.config.name);
        let Invocation { arguments, cancel, progress, .. } = invocation;
        let mut is_repeated = false;
        let answer = loop {
            let connection = match self.connection(Some(&cancel), Attempt::AfterPause).await {
                Ok(connection) => connection,
                Err(None) => return Err(ToolError(ABORTED.to_owned())),
                Err(Some(error)) if self.needed_sign_in().is_some() => return Err(ToolError(error)),
                Err(Some(error)) => {
                    let server = &self.config.name;
                    return Err(ToolError(format!("The MCP server \"{server}\" is not there: {error}")));
                }
            };
            self.renew_tools();
            let tools = self.tools();
            let Some(definition) = tools.iter().find(|known| known.name == tool) else {
                return Err(ToolError(format!("MCP tool \"{name}\" is no longer available.")));
            };
            let progress = progress.clone();
            let report: ProgressReport =
                Arc::new(move |text| progress.report(ToolResult::text(clean(&text))));
            let terms = RequestTerms {
                cancel: Some(&cancel),
                progress: Some(report),
                user: user.clone(),
                header_arguments: header_arguments::values(&definition.header_arguments, &arguments),
                ..RequestTerms::within(self.config.timeout)
            };
            let params = json!({"name": tool, "arguments": arguments});
            let answer = self.request(&connection, "tools/call", params, terms).await;
            // The one case in which it is known that the call did not run.
            if answer != Err(RequestError::SessionExpired) || std::mem::replace(&mut is_repeated, true) {
                break answer;
            }
        };
        if matches!(answer, Err(RequestError::Unauthorized(_))) {
            self.tell(false);
        }
        if let Err(RequestError::Server(error)) = &answer
            && error.code == PAGE_REQUIRED
            && let Some(text) = self.show_pages(&name, error, user.as_deref(), &cancel).await
        {
            return Err(ToolError(text));
        }
        let answer = answer.map_err(|error| {
            ToolError(match error {
                RequestError::Cancelled => ABORTED.to_owned(),
                RequestError::Unauthorized(text) => clean(&text),
                RequestError::Closed(reason) => {
                    format!("MCP tool {name} failed: {}. The call may have run.", clean(&reason))
                }
                error => format!("MCP tool {name} failed: {}", clean(&error.to_string())),
            })
        })?;
        let reads_resources = self.has_resources();
        let (server, tool, storage) = (self.config.name.clone(), tool.to_owned(), storage.clone());
        let made = self.build(answer, move |answer| {
            tool_result(answer, &Spill { storage: &storage, server: &server, tool: &tool, reads_resources })
        });
        made.await.map_err(|problem| match problem {
            Unbuilt::NoMemory(refused) => {
                ToolError(format!("MCP tool {name} failed: {}", RequestError::NoMemory(refused)))
            }
            Unbuilt::Failed(problem) => ToolError(problem),
        })
    }

    /// Makes something of an answer, which may be long, on a thread for blocking work. The answer is charged until then.
    pub(crate) async fn build<T: Send + 'static>(
        &self,
        answer: Value,
        make: impl FnOnce(Value) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Unbuilt> {
        let mut charge = self.context.memory.open(MemoryPurpose::Servers);
        let made = tokio::task::spawn_blocking(move || {
            charge.grow_to(message::size(&answer)).map_err(Unbuilt::NoMemory)?;
            make(answer).map_err(Unbuilt::Failed)
        });
        made.await.unwrap_or_else(|error| Err(Unbuilt::Failed(error.to_string())))
    }

    /// Makes a request; in the stateless revision it may take several rounds.
    async fn request(
        &self,
        connection: &Connection,
        method: &'static str,
        params: Value,
        terms: RequestTerms<'_>,
    ) -> Result<Value, RequestError> {
        let roots = self.config.roots.then(|| self.context.roots());
        rounds::request(&connection.peer, &self.config.name, (method, params), terms, roots.as_ref()).await
    }

    /// Asks the user to open the pages that a server wants to be opened before a call: the text for the model. The call is not repeated:
    /// nobody knows when the user is done there. `None` where the server names no page.
    async fn show_pages(
        &self,
        name: &str,
        error: &ServerError,
        user: Option<&dyn UserInput>,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let pages = required_pages(&error.data);
        let mut said = Vec::new();
        for (message, url) in &pages {
            let asking = async {
                match user.filter(|user| user.is_there()) {
                    Some(user) => ask_page(&self.config.name, message, url, user).await,
                    None => "cancel",
                }
            };
            let Some(action) = cancel.run_until_cancelled(asking).await else {
                return Some(ABORTED.to_owned());
            };
            let outcome = match action {
                "accept" => {
                    "The user was shown it and opens it; call the tool again when they say that they are done."
                }
                "decline" => "The user declined.",
                _ => "Nobody was there to be asked; tell the user of it.",
            };
            said.push(format!("{message} {url}\n{outcome}"));
        }
        let text = clean(&said.join("\n"));
        (!pages.is_empty()).then(|| format!("MCP tool {name} needs the user to open a page first: {text}"))
    }

    /// Asks for something that changes nothing; once again where the connection was at fault. `Err(None)`: given up by `cancel`.
    pub(crate) async fn ask_raw(
        self: &Arc<Self>,
        method: &'static str,
        params: Value,
        cancel: Option<&CancellationToken>,
    ) -> Result<Value, Option<RequestError>> {
        let mut is_repeated = false;
        loop {
            let connection = match self.connection(cancel, Attempt::AfterPause).await {
                Ok(connection) => connection,
                Err(error) => return Err(error.map(|error| RequestError::Closed(error.into()))),
            };
            let user = self.only_user();
            let terms = RequestTerms { cancel, user, ..RequestTerms::within(self.config.timeout) };
            let error = match self.request(&connection, method, params.clone(), terms).await {
                Ok(answer) => return Ok(answer),
                Err(RequestError::Cancelled) => return Err(None),
                Err(error) => error,
            };
            let is_of_connection = match &error {
                RequestError::SessionExpired | RequestError::Closed(_) | RequestError::Http(_) => true,
                RequestError::Status { status, .. } => StatusCode::from_u16(*status).is_ok_and(is_transient),
                _ => false,
            };
            if !is_of_connection || std::mem::replace(&mut is_repeated, true) {
                return Err(Some(error));
            }
        }
    }

    /// The same, with an error for the model.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        method: &'static str,
        params: Value,
        cancel: Option<&CancellationToken>,
    ) -> Result<Value, Option<String>> {
        let answer = self.ask_raw(method, params, cancel).await;
        answer.map_err(|error| error.map(|error| self.describe(&error)))
    }

    /// An error as the model is told it: without secrets, and of bounded length.
    pub(crate) fn describe(&self, error: &RequestError) -> String {
        clean(&error.to_string())
    }
}
