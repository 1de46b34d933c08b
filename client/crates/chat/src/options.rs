//! What the program is started with, and how it ends.

use std::path::PathBuf;

use agentd_connect::{ConnectError, Endpoint, LaunchOptions};
use agentd_protocol::daemon::{ClientInfo, OpenSessionParams};
use agentd_rpc::CallError;

/// What the program is started with.
#[derive(Debug, Clone)]
pub struct ChatOptions {
    /// The place of the daemon.
    pub endpoint: Endpoint,
    /// How it is started where none runs.
    pub launch: LaunchOptions,
    /// Our name and version.
    pub client: ClientInfo,
    /// The kind of session to open: its folder and flags, without those that say which one.
    pub open: OpenSessionParams,
    /// The session to begin with.
    pub first: FirstSession,
    /// The file of earlier shell commands.
    pub history: PathBuf,
    /// Whether the screen has colours.
    pub has_colours: bool,
    /// Whether the terminal draws images by Kitty's graphics protocol.
    pub draws_images: bool,
    /// The first message, already typed.
    pub draft: String,
}

/// The session to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstSession {
    /// The one that these flags of agentd name; without any a new one.
    Flags(Vec<String>),
    /// One that the daemon lists, by its whole id.
    Listed(String),
}

/// The reason why the program did not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The daemon cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon refused the first session.
    #[error("{0}")]
    Call(CallError),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] std::io::Error),
}
