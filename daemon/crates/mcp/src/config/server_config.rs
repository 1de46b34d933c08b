//! What is known of a server before it is connected.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use agentd_protocol::{
    mcp::{McpExposure, McpTransport},
    settings::matches_pattern,
};

use super::oauth_config::SignIn;

/// The name of the file.
pub const MCP_FILE: &str = "mcp.json";

/// The time for a call where the entry says nothing.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A server, as its entry has it. Values with `${NAME}` are not filled in yet.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// The file of its entry.
    pub path: PathBuf,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Whether sessions use it.
    pub enabled: bool,
    /// How the model gets to its tools.
    pub exposure: McpExposure,
    /// The same for some tools: exact names first, then the first pattern that matches.
    pub tool_exposure: Vec<(String, McpExposure)>,
    /// The time for a call.
    pub timeout: Duration,
    /// Which revisions of MCP it may speak.
    pub revision: RevisionChoice,
    /// Whether sessions with the same configuration share it.
    pub shared: bool,
    /// Whether it is told the working directory.
    pub roots: bool,
    /// Whether tools that the server calls read-only count as reading for permissions.
    pub trusts_hints: bool,
    /// Its purpose, for the model.
    pub description: Option<String>,
    /// Whether the values of `env` and `headers` are what they say, and all of them secrets.
    pub is_literal: bool,
}

/// Which revisions of MCP a server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionChoice {
    /// The stateless one, and where the server does not know it, those with `initialize`.
    Auto,
    /// Those with `initialize`.
    WithInitialize,
    /// The stateless one (2026-07-28).
    Stateless,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Endpoint {
    /// A program to start.
    Stdio {
        /// The program: a path, or a name for `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables on top of the session's.
        env: BTreeMap<String, String>,
        /// Its working directory, if it is not the session's.
        cwd: Option<String>,
    },
    /// A URL.
    Http {
        /// The URL.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
        /// How the requests are authorized beside the headers.
        sign_in: SignIn,
    },
}

/// Whether two servers' tools would have the same names.
pub(super) fn is_namesake(one: &str, other: &str) -> bool {
    one != other && one.replace('-', "_") == other.replace('-', "_")
}

/// Without the values, which may be secrets.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, .. } => {
                f.debug_struct("Stdio").field("command", command).finish_non_exhaustive()
            }
            Self::Http { .. } => f.debug_struct("Http").finish_non_exhaustive(),
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, path, endpoint, .. } = self;
        f.debug_struct("ServerConfig")
            .field("name", name)
            .field("path", path)
            .field("endpoint", endpoint)
            .finish_non_exhaustive()
    }
}

impl ServerConfig {
    /// The transport.
    #[must_use]
    pub fn transport(&self) -> McpTransport {
        match self.endpoint {
            Endpoint::Stdio { .. } => McpTransport::Stdio,
            Endpoint::Http { .. } => McpTransport::Http,
        }
    }

    /// Whether its requests carry the token of one of the user's logins.
    #[must_use]
    pub(crate) fn uses_login(&self) -> bool {
        matches!(&self.endpoint, Endpoint::Http { sign_in: SignIn::Login(_), .. })
    }

    /// The time for each request while it is connected: a server that is downloaded first may take longer than its calls.
    #[must_use]
    pub(crate) fn set_up_timeout(&self) -> Duration {
        self.timeout.max(DEFAULT_TIMEOUT)
    }

    /// The exposure of a tool of the server, by the server's own name for it.
    #[must_use]
    pub fn exposure_of(&self, tool: &str) -> McpExposure {
        let exact = self.tool_exposure.iter().find(|(name, _)| name == tool);
        let found = exact.or_else(|| self.tool_exposure.iter().find(|(name, _)| matches_pattern(name, tool)));
        found.map_or(self.exposure, |(_, exposure)| *exposure)
    }

    /// Whether all tools are hidden, so that there is no reason to connect.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.exposure == McpExposure::Hidden
            && self.tool_exposure.iter().all(|(_, exposure)| *exposure == McpExposure::Hidden)
    }

    /// Whether some tools are found by the search alone.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        self.exposure == McpExposure::Deferred
            || self.tool_exposure.iter().any(|(_, exposure)| *exposure == McpExposure::Deferred)
    }

    /// Whether some tools are declared to the model unasked.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.exposure == McpExposure::Direct
            || self.tool_exposure.iter().any(|(_, exposure)| *exposure == McpExposure::Direct)
    }
}
