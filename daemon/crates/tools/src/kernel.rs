//! Files that the kernel makes up while they are read. Some have no end, and none says how long it is.

use std::{fs::File, io};

use agentd_agent::ToolError;

use crate::truncate::format_size;

/// How much is read of such a file: 16 MiB.
const MAX_BYTES: u64 = 16 << 20;

/// The file systems that consist of such files, by the numbers that `statfs` tells them by.
const KERNEL_FILE_SYSTEMS: [u64; 8] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
];

/// How much of a file is safe to read.
///
/// # Errors
/// As asking for its file system.
pub(crate) fn limit(file: &File) -> io::Result<u64> {
    // The number is signed on some platforms, and of 32 bits on others.
    let kind = rustix::fs::fstatfs(file)?.f_type as u64 & 0xffff_ffff;
    let is_made_up = KERNEL_FILE_SYSTEMS.contains(&kind);
    Ok(if is_made_up { MAX_BYTES } else { u64::MAX })
}

/// The failure of reading one that goes on.
pub(crate) fn endless(given: &str) -> ToolError {
    ToolError(format!(
        "Cannot read {given}: it is a file of the kernel that goes on past {}, perhaps without end. Use bash to read a \
         part of it, such as its start: head -c 51200 {given}",
        format_size(MAX_BYTES)
    ))
}
