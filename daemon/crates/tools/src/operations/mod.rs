//! The files and shells that tools work on, on any machine.
//!
//! A [`FileHost`] provides files: those of this machine ([`LocalHost`], and [`GuardedHost`] for sessions), with an editor in front of them ([`EditorHost`]), of memory
//! ([`MemoryHost`], for tests), or of another machine ([`SshHost`]). It gives each call of a tool its own
//! [`FileSystem`], which stops when the call is aborted. Commands run in a [`Shell`](agentd_process::Shell), which can be the terminal of an
//! editor ([`EditorShell`]).
//!
//! The tools themselves know no disk. On this machine a file system makes the system's own calls, at full speed. The interface blocks, as
//! files do, and its errors are the system's, so that messages are the same everywhere. A remote host is asked in batches: the remote walk
//! (`search/far_walk.rs`) follows the rules of the local walk, and asks for many folders in one request. The shell also runs the user's own
//! commands. [`SshHost`] is one object that is both file host and shell: scripts that never change, by the user's own `ssh`, under the
//! guard like every command (`docs/decisions/010-other-hosts-by-scripts.md`).

mod editor;
mod editor_terminal;
mod file_system;
mod guarded;
mod local;
mod memory;
#[cfg(target_os = "linux")]
mod sandboxed;
mod ssh;
mod unreachable;
mod write_error;

pub use editor::{EditorFiles, EditorHost};
pub use editor_terminal::{
    EditorAnswer, EditorShell, EditorTerminals, TerminalCommand, TerminalExit, TerminalOutput,
};
pub use file_system::{
    FileFacts, FileHost, FileKind, FileSnapshot, FileStamp, FileSystem, FolderEntry, OpenFile, TakeFile,
};
pub use guarded::GuardedHost;
pub use local::{LocalFiles, LocalHost};
pub use memory::MemoryHost;
#[cfg(target_os = "linux")]
pub use sandboxed::SandboxedHost;
pub use ssh::{SshHost, SshOptions, SshTarget, SshTargetError};
pub use unreachable::Unreachable;
pub use write_error::WriteError;

/// An editor for the tools of its sessions.
#[derive(Clone)]
pub struct EditorAccess {
    /// Its files.
    pub files: std::sync::Arc<dyn EditorFiles>,
    /// Its terminals.
    pub terminals: std::sync::Arc<dyn EditorTerminals>,
}

#[cfg(test)]
mod tests;
