//! The sandbox of a session: what its shell commands and file tools may touch.
//!
//! A [`SandboxPolicy`] says it in real paths. File tools ask it before each access ([`SandboxPolicy::check_read`],
//! [`SandboxPolicy::check_write`]). A shell command is confined by the system ([`confine`]): its process calls that between its fork
//! and its program, so that everything which the command starts is confined, too. Three layers add up, and each is used only where
//! the system has it ([`SandboxSupport`]):
//!
//! * **mounts**: in a mount namespace of its own everything is read-only, the writable folders are mounted over that, and protected and
//!   denied paths over these. No other layer can take a folder out of a writable one.
//! * **landlock**: the same writable folders again, TCP, and what the mounts do not cover: signals, abstract sockets and tracing of
//!   processes outside of the sandbox.
//! * **seccomp**: calls that lead out: new namespaces and mounts, other socket families, tracing, io_uring, memory files that can be
//!   executed.
//!
//! Nothing here decides whether a command may run: that is the policy of permissions.

mod bwrap;
#[cfg(target_os = "linux")]
mod capabilities;
mod confine;
#[cfg(target_os = "linux")]
mod device_files;
#[cfg(target_os = "linux")]
mod mounts;
mod policy;
mod reserved;
#[cfg(target_os = "linux")]
mod restrictions;
mod step;
mod support;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod view;

pub use bwrap::{EXEC_ARGUMENT, command_line, exec_confined};
pub use confine::confine;
pub use policy::{AccessRefusal, SandboxPolicy};
pub use reserved::ReservedPaths;
pub use step::{ConfineError, ConfineStep};
pub use support::{Layer, SandboxSupport, probe};
