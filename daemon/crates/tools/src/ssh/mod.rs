//! The tool `ssh`, and `ssh://HOST/PATH` for `read` and `write`: commands and files of hosts that the user has configured.
//!
//! Each host has one connection, opened when first needed, by the same means as a session that works on another host
//! ([`SshHost`](crate::operations::SshHost)). It ends with the session's tools. A host that is not configured is refused.

mod hosts;
mod tool;
mod url;

pub use hosts::{RemoteHost, RemoteHostOptions, RemoteHosts};
pub use tool::SshTool;
pub use url::SshUrls;
