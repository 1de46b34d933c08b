//! Commands and files of other hosts: the tool `ssh`.

/// The name of the tool.
pub const SSH_TOOL: &str = "ssh";

/// What URLs of files on other hosts begin with; the host and the path there follow.
pub const SSH_URL: &str = "ssh://";
