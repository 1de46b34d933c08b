//! Language servers: which there are, one of each kind and folder for the whole daemon, the tool `lsp`, diagnostics after edits.
//!
//! [`LspConfig`] says which servers there are: a table, and `lsp.json`. [`SharedLanguageServers`] holds those of a daemon: sessions with
//! the same rights share them. A server is a program that runs under the process guard; it is started when it is first asked for, ends
//! when nobody uses it, and is started anew after a crash. [`SessionServers`] is the view of one session, [`LspTool`] the tool of models,
//! and [`DiagnosedTool`] adds what servers say to the results of tools that change files.
//!
//! Servers are read leniently: what is off the protocol is passed over, and everything that they send is bounded.

mod client;
mod config;
mod connection;
mod diagnosed_tool;
mod diagnostics;
mod doctor;
mod edit_diagnostics;
mod find;
mod framing;
mod message;
mod position;
mod report;
mod session;
mod slot;
mod table;
mod text_edit;
mod tool;
mod uri;
mod workspace_edit;

pub use config::{LSP_FILE, LspConfig};
pub use diagnosed_tool::DiagnosedTool;
pub use doctor::{FoundServer, found_servers};
pub use session::{
    DiagnosticsOnEdit, LspOptions, LspParts, LspPermissions, LspPlace, ProjectTrust, ProposedChange,
    SessionServers,
};
pub use slot::SharedLanguageServers;
pub use tool::{LSP_TOOL, LspTool};

/// The log of what language servers say, in the agent directory.
pub const LSP_LOG: &str = "lsp.log";
