//! Files that the kernel makes up while they are read. Some have no end, and none says how long it is.

use std::{fs::File, io};

use agentd_agent::ToolError;
use agentd_safe_open::is_of_kernel;

use crate::truncate::format_size;

/// How much is read of such a file: 16 MiB.
const MAX_BYTES: u64 = 16 << 20;

/// How much of a file is safe to read.
///
/// # Errors
/// As asking for its file system.
pub(crate) fn limit(file: &File) -> io::Result<u64> {
    Ok(if is_of_kernel(file)? { MAX_BYTES } else { u64::MAX })
}

/// The failure of looking into a file of `/proc`. What a command reads there is its own environment, without the keys of models; the tools
/// that run inside of the daemon would read that of the daemon.
pub(crate) fn of_processes(verb: &str, given: &str) -> ToolError {
    ToolError(format!(
        "Cannot {verb} {given}: it is a file of /proc, which shows the state of processes, of agentd itself too. Use bash to read it."
    ))
}

/// The failure of reading one that goes on.
pub(crate) fn endless(given: &str) -> ToolError {
    ToolError(format!(
        "Cannot read {given}: it is a file of the kernel that goes on past {}, perhaps without end. Use bash to read a \
         part of it, such as its start: head -c 51200 {given}",
        format_size(MAX_BYTES)
    ))
}
