//! Limits reading of files that the kernel generates while they are read: some have no end, and their length is
//! unknown.

use std::{fs::File, io};

use agentd_agent::ToolError;
use agentd_safe_open::is_of_kernel;

use crate::truncate::format_size;

/// The most bytes read of such a file: 16 MiB.
const MAX_BYTES: u64 = 16 << 20;

/// How many bytes of a file are safe to read.
///
/// # Errors
/// The system's, from asking for the file system.
pub(crate) fn limit(file: &File) -> io::Result<u64> {
    Ok(if is_of_kernel(file)? { MAX_BYTES } else { u64::MAX })
}

/// The error of reading or searching a file of `/proc`. A command sees its own environment there, without provider
/// keys; a tool inside the daemon would see the daemon's.
pub(crate) fn of_processes(verb: &str, given: &str) -> ToolError {
    ToolError(format!(
        "Cannot {verb} {given}: it is a file of /proc, which shows the state of processes, of agentd itself too. Use bash to read it."
    ))
}

/// The error of reading a generated file that does not end.
pub(crate) fn endless(given: &str) -> ToolError {
    ToolError(format!(
        "Cannot read {given}: it is a file of the kernel that goes on past {}, perhaps without end. Use bash to read a \
         part of it, such as its start: head -c 51200 {given}",
        format_size(MAX_BYTES)
    ))
}
