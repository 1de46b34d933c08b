//! Copies extended attributes: access lists and user attributes.

use std::{ffi::CStr, fs::File};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr},
    io::Errno,
};

/// More than Linux allows for the list or for one value, in bytes.
const MAX_SIZE: usize = 64 * 1024;

/// Copies access lists and user attributes of one file to another; false when one cannot be copied.
///
/// Other attributes belong to the system, which gives new files their own.
#[must_use]
pub fn copy(from: &File, to: &File) -> bool {
    let mut names = vec![0; MAX_SIZE];
    let length = match flistxattr(from, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return true,
        Err(_) => return false,
    };
    if length == 0 {
        return true;
    }
    let mut value = vec![0; MAX_SIZE];
    names[..length].split_inclusive(|byte| *byte == 0).all(|name| {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { return false };
        let text = name.to_bytes();
        if !text.starts_with(b"user.") && text != b"system.posix_acl_access" {
            return true;
        }
        fgetxattr(from, name, &mut value[..])
            .and_then(|length| fsetxattr(to, name, &value[..length], XattrFlags::empty()))
            .is_ok()
    })
}
