//! The files and shells that tools work on, on any machine.
//!
//! A [`FileHost`] provides files: those of this machine ([`LocalHost`], and [`GuardedHost`] for sessions), of memory
//! ([`MemoryHost`], for tests), or of another machine ([`SshHost`]). It gives each call of a tool its own
//! [`FileSystem`], which stops when the call is aborted. Commands run in a [`Shell`](agentd_process::Shell).

mod file_system;
mod guarded;
mod local;
mod memory;
mod ssh;
mod unreachable;
mod write_error;

pub use file_system::{
    FileFacts, FileHost, FileKind, FileSnapshot, FileStamp, FileSystem, FolderEntry, OpenFile, TakeFile,
};
pub use guarded::GuardedHost;
pub use local::{LocalFiles, LocalHost};
pub use memory::MemoryHost;
pub use ssh::{SshHost, SshOptions, SshTarget, SshTargetError};
pub use unreachable::Unreachable;
pub use write_error::WriteError;

#[cfg(test)]
mod tests;
