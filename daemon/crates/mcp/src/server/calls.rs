//! Calls of a server's tools, and other requests.

use std::sync::Arc;

use agentd_agent::{Invocation, ToolError};
use agentd_process::OutputStorage;
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Attempt, McpServer, clean};
use crate::{
    peer::{ProgressReport, RequestError, RequestTerms},
    result::{Spill, tool_result},
};

/// The result of a call that was stopped.
const ABORTED: &str = "Operation aborted";

impl McpServer {
    /// Calls a tool.
    ///
    /// # Errors
    /// The text for the model.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        invocation: Invocation,
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
            if !self.tools().iter().any(|known| known.name == tool) {
                return Err(ToolError(format!("MCP tool \"{name}\" is no longer available.")));
            }
            let progress = progress.clone();
            let report: ProgressReport =
                Box::new(move |text| progress.report(ToolResult::text(clean(&text))));
            let terms =
                RequestTerms { timeout: self.config.timeout, cancel: Some(&cancel), progress: Some(report) };
            let params = json!({"name": tool, "arguments": arguments});
            let answer = connection.peer.request("tools/call", params, terms).await;
            // The one case in which it is known that the call did not run.
            if answer != Err(RequestError::SessionExpired) || std::mem::replace(&mut is_repeated, true) {
                break answer;
            }
        };
        if matches!(answer, Err(RequestError::Unauthorized(_))) {
            self.tell(false);
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
        let (server, tool, storage) = (self.config.name.clone(), tool.to_owned(), storage.clone());
        let made = tokio::task::spawn_blocking(move || {
            tool_result(answer, &Spill { storage: &storage, server: &server, tool: &tool })
        });
        made.await.unwrap_or_else(|error| Err(error.to_string())).map_err(ToolError)
    }

    /// Asks for something that changes nothing; once again where the connection was at fault. `Err(None)`: given up by `cancel`.
    pub(crate) async fn ask_raw(
        self: &Arc<Self>,
        method: &str,
        params: Value,
        cancel: Option<&CancellationToken>,
    ) -> Result<Value, Option<RequestError>> {
        let mut is_repeated = false;
        loop {
            let connection = match self.connection(cancel, Attempt::AfterPause).await {
                Ok(connection) => connection,
                Err(error) => return Err(error.map(|error| RequestError::Closed(error.into()))),
            };
            let terms = RequestTerms { timeout: self.config.timeout, cancel, progress: None };
            let error = match connection.peer.request(method, params.clone(), terms).await {
                Ok(answer) => return Ok(answer),
                Err(RequestError::Cancelled) => return Err(None),
                Err(error) => error,
            };
            let is_of_connection = matches!(
                error,
                RequestError::SessionExpired | RequestError::Closed(_) | RequestError::Http(_)
            );
            if !is_of_connection || std::mem::replace(&mut is_repeated, true) {
                return Err(Some(error));
            }
        }
    }

    /// The same, with an error for the model.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        method: &str,
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
