//! What is said on the way and at the end.

use std::io::{self, Write};

use serde_json::Value;

use crate::options::Options;

/// A line for people, on stderr, unless only the summary is wanted.
pub(crate) fn line(options: &Options, text: &str) {
    if !options.is_quiet {
        error(text);
    }
}

/// A line on stderr. Whoever has closed it does not want to know.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The summary, on stdout.
pub(crate) fn summary(line: &Value) {
    let _ = writeln!(io::stdout(), "{line}");
}
