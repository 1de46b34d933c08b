//! `agentd --mcp-edit`: a change of `mcp.json`, for `agentctl mcp add` and its like. The request comes on stdin; stdout gets one line.

use std::{
    io::{self, BufRead, Write},
    path::Path,
};

use agentd_config::{AgentDir, Environment, NoAgentDir, ProjectFolders, settings::load};
use agentd_mcp::{EditedConfig, McpEditError, edit_mcp_config};
use agentd_protocol::mcp_edit::{McpEditRequest, McpEdited};

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum McpEditRequestError {
    /// The folder of the user's file is unknown.
    #[error(transparent)]
    NoAgentDir(#[from] NoAgentDir),
    /// Stdin holds no request. The error quotes no value of it.
    #[error("--mcp-edit is for agentctl mcp, which says on stdin what to change (line {line}, column {column})", line = .0.line(), column = .0.column())]
    Request(serde_json::Error),
    /// The change is refused.
    #[error(transparent)]
    Refused(#[from] McpEditError),
    /// Stdin or stdout failed.
    #[error("the answer cannot be passed on: {0}")]
    Io(#[from] io::Error),
}

/// Answers one request.
///
/// # Errors
/// [`McpEditRequestError`].
pub fn run(environment: &Environment, compat: bool, cwd: &Path) -> Result<(), McpEditRequestError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: McpEditRequest = serde_json::from_str(&line).map_err(McpEditRequestError::Request)?;
    let agent_dir = AgentDir::find(environment, compat, cwd)?;
    let folders = ProjectFolders::of(cwd, &agent_dir);
    let EditedConfig { path, changed, warnings } = edit_mcp_config(&agent_dir, &folders, &request)?;
    let used = !request.project || load(&agent_dir, cwd, environment, None).trust.trusted;
    let edited = McpEdited { path: path.display().to_string(), changed, used, warnings };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &edited).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n").and_then(|()| out.flush())?)
}
