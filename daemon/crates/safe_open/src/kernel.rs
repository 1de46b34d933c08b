//! Recognises files that the kernel generates while they are read.

use std::{fs::File, io};

/// The number by which `statfs` reports `/proc`.
const PROC: u64 = 0x9fa0;

/// The file systems of generated files, by their `statfs` numbers.
const KERNEL_FILE_SYSTEMS: [u64; 8] = [
    PROC,
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
];

/// Whether the kernel generates a file while it is read. Such a file may have no end, and its length is unknown.
///
/// # Errors
/// The system's, from asking for the file system.
pub fn is_of_kernel(file: &File) -> io::Result<bool> {
    file_system(file).map(|kind| KERNEL_FILE_SYSTEMS.contains(&kind))
}

/// Whether a file is in `/proc`, and so shows the state of processes and of the kernel: also this process's environment
/// and the kernel's messages.
///
/// # Errors
/// The system's, from asking for the file system.
pub fn is_of_processes(file: &File) -> io::Result<bool> {
    file_system(file).map(|kind| kind == PROC)
}

fn file_system(file: &File) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        // `f_type` is signed on some platforms, and has 32 bits on others.
        Ok(rustix::fs::fstatfs(file)?.f_type as u64 & 0xffff_ffff)
    }
    #[cfg(not(target_os = "linux"))]
    {
        // Only Linux has such files.
        let _ = file;
        Ok(0)
    }
}
