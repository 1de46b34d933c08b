//! Formats system errors as pi does: first the code word, then the call and the path.

use std::{io, path::Path};

use agentd_sandbox::AccessRefusal;
use rustix::io::Errno;

use crate::operations::Unreachable;

/// System errors of file operations, each with its code word and sentence: those of libuv's `uv_err_name` and
/// `uv_strerror`, which clients and models know.
const KNOWN: &[(Errno, &str, &str)] = &[
    (Errno::ACCESS, "EACCES", "permission denied"),
    (Errno::AGAIN, "EAGAIN", "resource temporarily unavailable"),
    (Errno::BADF, "EBADF", "bad file descriptor"),
    (Errno::BUSY, "EBUSY", "resource busy or locked"),
    (Errno::DQUOT, "EDQUOT", "disk quota exceeded"),
    (Errno::EXIST, "EEXIST", "file already exists"),
    (Errno::FBIG, "EFBIG", "file too large"),
    (Errno::INTR, "EINTR", "interrupted system call"),
    (Errno::INVAL, "EINVAL", "invalid argument"),
    (Errno::IO, "EIO", "i/o error"),
    (Errno::ISDIR, "EISDIR", "illegal operation on a directory"),
    (Errno::LOOP, "ELOOP", "too many symbolic links encountered"),
    (Errno::MFILE, "EMFILE", "too many open files"),
    (Errno::MLINK, "EMLINK", "too many links"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG", "name too long"),
    (Errno::NFILE, "ENFILE", "file table overflow"),
    (Errno::NODEV, "ENODEV", "no such device"),
    (Errno::NOENT, "ENOENT", "no such file or directory"),
    (Errno::NOMEM, "ENOMEM", "not enough memory"),
    (Errno::NOSPC, "ENOSPC", "no space left on device"),
    (Errno::NOTDIR, "ENOTDIR", "not a directory"),
    (Errno::NOTEMPTY, "ENOTEMPTY", "directory not empty"),
    (Errno::NXIO, "ENXIO", "no such device or address"),
    (Errno::OPNOTSUPP, "ENOTSUP", "operation not supported on socket"),
    (Errno::OVERFLOW, "EOVERFLOW", "value too large for defined data type"),
    (Errno::PERM, "EPERM", "operation not permitted"),
    (Errno::ROFS, "EROFS", "read-only file system"),
    (Errno::STALE, "ESTALE", "stale file handle"),
    (Errno::TIMEDOUT, "ETIMEDOUT", "connection timed out"),
    (Errno::TXTBSY, "ETXTBSY", "text file is busy"),
    (Errno::XDEV, "EXDEV", "cross-device link not permitted"),
];

/// The code word of a system error, such as `ENOENT`; `UNKNOWN` without one.
#[must_use]
pub(crate) fn code(error: &io::Error) -> &'static str {
    known(error).map_or("UNKNOWN", |(_, word, _)| word)
}

/// Describes a failed system call: `ENOENT: no such file or directory, access '/abs/x'`.
#[must_use]
pub(crate) fn describe(error: &io::Error, call: &str, path: &Path) -> String {
    whole_message(error).unwrap_or_else(|| format!("{}, {call} '{}'", sentence(error), path.display()))
}

/// The message of an error that is a whole one, without a call or a path: a host that cannot be reached, or a sandbox.
#[must_use]
pub(crate) fn whole_message(error: &io::Error) -> Option<String> {
    if let Some(unreachable) = Unreachable::of(error) {
        return Some(unreachable.to_string());
    }
    error.get_ref()?.downcast_ref::<AccessRefusal>().map(ToString::to_string)
}

/// The code word and its sentence: `ENOENT: no such file or directory`.
#[must_use]
pub(crate) fn sentence(error: &io::Error) -> String {
    if let Some(message) = whole_message(error) {
        return message;
    }
    match known(error) {
        Some((_, word, meaning)) => format!("{word}: {meaning}"),
        None => format!("UNKNOWN: {error}"),
    }
}

/// The error with this code word.
#[must_use]
pub(crate) fn of_word(word: &str) -> Option<io::Error> {
    KNOWN.iter().find(|(_, known, _)| *known == word).map(|(errno, ..)| io::Error::from(*errno))
}

fn known(error: &io::Error) -> Option<&'static (Errno, &'static str, &'static str)> {
    let errno = Errno::from_io_error(error)?;
    KNOWN.iter().find(|(known, ..)| *known == errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_word_comes_first() {
        let error = std::fs::metadata("/nonexistent/x").unwrap_err();
        assert_eq!(code(&error), "ENOENT");
        assert_eq!(
            describe(&error, "access", Path::new("/nonexistent/x")),
            "ENOENT: no such file or directory, access '/nonexistent/x'"
        );
    }

    #[test]
    fn every_code_has_its_own_word() {
        for (errno, word, meaning) in KNOWN {
            let error = io::Error::from(*errno);
            assert_eq!(sentence(&error), format!("{word}: {meaning}"));
            assert_eq!(of_word(word).as_ref().map(code), Some(*word));
        }
    }

    #[test]
    fn what_is_out_of_reach_speaks_for_itself() {
        let error = io::Error::from(Unreachable("Cannot reach it.".to_owned()));
        assert_eq!(describe(&error, "open", Path::new("/x")), "Cannot reach it.");
        assert_eq!(sentence(&error), "Cannot reach it.");
    }

    #[test]
    fn errors_without_a_code_keep_their_text() {
        let error = io::Error::other("odd");
        assert_eq!(code(&error), "UNKNOWN");
        assert_eq!(sentence(&error), "UNKNOWN: odd");
    }
}
