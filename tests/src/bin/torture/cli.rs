//! The command line, progress lines, and the outcome of a sub-command.

use std::{
    io::{self, Write},
    path::PathBuf,
    str::FromStr,
};

use agentd_e2e::{binaries, random};
use serde_json::Value;

/// The flags of the command line.
pub(crate) struct Options {
    /// The seed of every random decision.
    pub(crate) seed: u64,
    /// Only the summary is printed.
    pub(crate) is_quiet: bool,
    /// Flags that were not read yet.
    rest: Vec<String>,
}

impl Options {
    /// Reads `--seed N`, `--bin-dir DIR` and `--json`, and keeps the others for the sub-command.
    pub(crate) fn read(args: Vec<String>) -> Result<Self, String> {
        let mut options = Self { seed: 0, is_quiet: false, rest: args };
        options.seed = options.value("--seed")?.unwrap_or_else(random::fresh_seed);
        options.is_quiet = options.flag("--json");
        if let Some(folder) = options.value::<PathBuf>("--bin-dir")? {
            let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
            binaries::choose(folder);
        }
        Ok(options)
    }

    /// Returns `true` if the flag is given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.rest.len();
        self.rest.retain(|arg| arg != name);
        self.rest.len() < before
    }

    /// The value of a flag: the last one, if it is given several times.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let mut found = None;
        while let Some(at) = self.rest.iter().position(|arg| arg == name) {
            let value = self.rest.get(at + 1).ok_or_else(|| format!("{name}: a value is missing"))?;
            found = Some(value.parse().map_err(|_| format!("{name}: not \"{value}\""))?);
            self.rest.drain(at..=at + 1);
        }
        Ok(found)
    }

    /// Reports the remaining flags as unknown. Called after all flags were read.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("not understood: {}", self.rest.join(" "))) }
    }
}

/// The outcome of a sub-command.
pub(crate) struct Outcome {
    /// All promises held.
    pub(crate) held: bool,
    /// The summary: an object, to which name, seed and `held` are added.
    pub(crate) summary: Value,
}

/// Prints a progress line on stderr, unless only the summary is wanted.
pub(crate) fn line(options: &Options, text: &str) {
    if !options.is_quiet {
        error(text);
    }
}

/// Prints a line on stderr. A closed stderr is ignored.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints the summary on stdout.
pub(crate) fn summary(line: &Value) {
    let _ = writeln!(io::stdout(), "{line}");
}
