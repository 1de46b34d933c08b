//! An extension as it was found, before anything of it runs.

use std::{ffi::OsString, path::PathBuf};

use agentd_protocol::resources::SourceInfo;

/// An extension as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionSource {
    /// Its name in errors: the path that was given or found.
    pub path: String,
    /// The file that is imported; of a native extension its manifest.
    pub entry: PathBuf,
    /// The folder that it belongs to.
    pub base_dir: PathBuf,
    /// Where it comes from, for clients.
    pub source_info: SourceInfo,
    /// What runs it.
    pub kind: ExtensionKind,
}

/// What runs an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionKind {
    /// TypeScript or JavaScript: the Node host, together with all others of the session.
    Node,
    /// A program of its own that speaks the host protocol.
    Native {
        /// The program and its arguments; a program with a folder in its name is relative to `base_dir`.
        command: Vec<OsString>,
    },
}
