//! The limits of what a tool shows a model. Each is named once; the texts for models take the numbers from here.

/// The most lines of a result, 2000: `read`, `bash` and the output of processes.
pub const MAX_LINES: usize = agentd_process::MAX_LINES;

/// The most bytes of UTF-8 of a result: 50 KiB.
pub const MAX_BYTES: usize = agentd_process::MAX_BYTES;

/// [`MAX_BYTES`] as texts for models write it.
pub(crate) const MAX_SIZE: &str = "50KB";

/// The most matches of `grep` where a call does not say another number.
pub(crate) const GREP_MATCHES: usize = 100;

/// The most characters of a line that `grep` shows, counted as UTF-16 units like pi.
pub(crate) const GREP_LINE_UNITS: usize = 500;

/// The most results of `find` where a call does not say another number.
pub(crate) const FIND_RESULTS: usize = 1000;

/// The most entries of `ls` where a call does not say another number.
pub(crate) const LS_ENTRIES: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_in_texts_is_the_limit() {
        assert_eq!(MAX_SIZE, format!("{}KB", MAX_BYTES / 1024));
    }
}
