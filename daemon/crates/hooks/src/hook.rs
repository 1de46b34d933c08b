//! One hook.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{dialect::Dialect, event::HookEvent, matcher::Matcher};

/// A program that is run at an event.
#[derive(Debug, Clone)]
pub struct Hook {
    pub(crate) event: HookEvent,
    pub(crate) matcher: Matcher,
    pub(crate) program: HookProgram,
    pub(crate) timeout: Duration,
    pub(crate) dialect: Dialect,
    pub(crate) origin: HookOrigin,
}

/// What a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HookProgram {
    /// A line for the shell.
    Command(String),
    /// An executable file.
    File(PathBuf),
}

/// Where a hook comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOrigin {
    /// The file that names it; of an executable, itself.
    pub path: PathBuf,
    /// Whether it is a project's, so that it counts with the trust in it.
    pub is_of_project: bool,
}

impl Hook {
    /// The event.
    #[must_use]
    pub const fn event(&self) -> HookEvent {
        self.event
    }

    /// What it runs.
    #[must_use]
    pub const fn program(&self) -> &HookProgram {
        &self.program
    }

    /// Where it comes from.
    #[must_use]
    pub const fn origin(&self) -> &HookOrigin {
        &self.origin
    }

    /// The time after which it is killed.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether it does the same as another: then it is run once.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.dialect, &self.program) == (other.dialect, &other.program)
    }
}

impl HookProgram {
    /// The line for the shell.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Command(line) => line.clone(),
            Self::File(path) => quoted(path),
        }
    }
}

/// The longest name of a command, in characters.
const MOST_SHOWN: usize = 80;

/// The hook in a few words, for people: its command's first line, or its file.
impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            HookProgram::Command(line) => {
                let first = line.trim().lines().next().unwrap_or_default();
                let short: String = first.chars().take(MOST_SHOWN).collect();
                let more = if short.len() < line.trim().len() { "…" } else { "" };
                write!(f, "\"{short}{more}\"")
            }
            HookProgram::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_word_of_the_shell() {
        assert_eq!(HookProgram::File("/a b/it's.sh".into()).line(), "'/a b/it'\\''s.sh'");
        assert_eq!(HookProgram::Command("x $y".into()).line(), "x $y");
    }
}
