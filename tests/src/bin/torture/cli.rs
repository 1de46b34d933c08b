//! The command line, the lines on the way, and the outcome of a sub-command.

use std::{
    io::{self, Write},
    path::PathBuf,
    str::FromStr,
};

use agentd_e2e::{binaries, random};
use serde_json::Value;

/// What the command line asks for.
pub(crate) struct Options {
    /// What every random decision follows from.
    pub(crate) seed: u64,
    /// Nothing but the summary is to be said.
    pub(crate) is_quiet: bool,
    /// Flags that nobody has asked for yet.
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

    /// Whether a flag is there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.rest.len();
        self.rest.retain(|arg| arg != name);
        self.rest.len() < before
    }

    /// The value behind a flag: the last one, when it is there several times.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let mut found = None;
        while let Some(at) = self.rest.iter().position(|arg| arg == name) {
            let value = self.rest.get(at + 1).ok_or_else(|| format!("{name}: a value is missing"))?;
            found = Some(value.parse().map_err(|_| format!("{name}: not \"{value}\""))?);
            self.rest.drain(at..=at + 1);
        }
        Ok(found)
    }

    /// To be called when all flags were asked for: what is left is wrong.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("not understood: {}", self.rest.join(" "))) }
    }
}

/// What a sub-command found.
pub(crate) struct Outcome {
    /// Whether all promises held.
    pub(crate) held: bool,
    /// The summary: an object, to which name, seed and `held` are added.
    pub(crate) summary: Value,
}

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
