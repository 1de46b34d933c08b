//! Reads and compiles `.gitignore` and similar files. They come with any project that is searched, so they are opened
//! as files that others may have made ([`agentd_safe_open`]) and compiled within limits.
//!
//! A file that is not acceptable is not used at all: a rule dropped from the middle may be one that says what is *not*
//! ignored, and files would silently be missing. Without the file, a search finds more than it should, and reports why.

mod budget;
mod cost;

use std::{path::Path, sync::Arc};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenError, OpenRules};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

pub use budget::{BudgetReservation, RulesBudget};
pub use cost::{MAX_EXPRESSION_BYTES, MAX_LINE_BYTES, MAX_LINES, TooManyRules, cost};

/// The longest ignore file that is read: 1 MiB.
pub const MAX_BYTES: u64 = 1 << 20;

/// Why an ignore file is not used.
#[derive(Debug, thiserror::Error)]
pub enum UnusedIgnoreFile {
    /// It is not acceptable as a file, or cannot be read.
    #[error(transparent)]
    File(#[from] OpenError),
    /// Compiling its rules would take too much.
    #[error(transparent)]
    Rules(#[from] TooManyRules),
}

/// Reads an ignore file; `None` when there is none. Links are not followed, as in git.
///
/// # Errors
/// As [`agentd_safe_open::OpenRules::read`]: it is a link, a pipe, of an owner that is not accepted, longer than [`MAX_BYTES`].
pub fn read(path: &Path, owner: AcceptedOwner) -> Result<Option<String>, OpenError> {
    read_along(path, LinkPolicy::Refused, owner)
}

/// [`read`] along the links that the caller allows: for the user's own file.
///
/// # Errors
/// As [`read`].
pub fn read_along(
    path: &Path,
    links: LinkPolicy<'_>,
    owner: AcceptedOwner,
) -> Result<Option<String>, OpenError> {
    let bytes = OpenRules::new(links).owner(owner).max_bytes(MAX_BYTES).read(path)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The rules of one ignore file, in memory.
#[derive(Debug)]
pub struct CompiledRules {
    globs: Gitignore,
    _reservation: BudgetReservation,
}

impl CompiledRules {
    /// Compiles the text of an ignore file whose rules are relative to `folder`. Lines that are no rules are skipped.
    /// `None` when there is no rule.
    ///
    /// # Errors
    /// [`TooManyRules`]; nothing has been compiled then.
    pub fn compile(
        folder: &Path,
        text: &str,
        budget: &Arc<RulesBudget>,
    ) -> Result<Option<Self>, TooManyRules> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let reservation = budget.reserve(cost(text)?).ok_or(TooManyRules::Together)?;
        let mut builder = GitignoreBuilder::new(folder);
        for line in text.lines() {
            // git skips such a line, too.
            let _ = builder.add_line(None, line);
        }
        let globs = builder.build().map_err(|_| TooManyRules::Expressions)?;
        Ok((!globs.is_empty()).then_some(Self { globs, _reservation: reservation }))
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Gitignore {
        &self.globs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str) -> Result<Option<CompiledRules>, TooManyRules> {
        CompiledRules::compile(Path::new("/w"), text, &Arc::new(RulesBudget::default()))
    }

    #[test]
    fn rules_are_those_of_the_lines() {
        let globs = compile("\u{feff}*.o\n# no rule\n!keep.o\nbuild/\n").unwrap().unwrap();
        let says = |path: &str, is_folder| globs.rules().matched(path, is_folder);
        assert!(says("/w/a.o", false).is_ignore() && says("/w/keep.o", false).is_whitelist());
        assert!(says("/w/build", true).is_ignore() && says("/w/build", false).is_none());
        assert!(compile("\n# nothing\n").unwrap().is_none());
    }

    #[test]
    fn what_rules_take_comes_back_with_them() {
        let budget = Arc::new(RulesBudget::new(40_000));
        let compile = |text: &str| CompiledRules::compile(Path::new("/w"), text, &budget);
        let text: String = (0..20).map(|number| format!("name{number}\n")).collect();
        let first = compile(&text).unwrap();
        assert!(matches!(compile(&text), Err(TooManyRules::Together)));
        drop(first);
        assert!(compile(&text).unwrap().is_some());
    }

    #[test]
    fn links_and_foreign_kinds_of_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".gitignore");
        assert!(read(&path, AcceptedOwner::Own).unwrap().is_none());
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let text = read(&path, AcceptedOwner::Own).unwrap_err().to_string();
        assert!(text.contains(".gitignore is a symbolic link"), "{text}");
        assert!(
            read_along(&path, LinkPolicy::Followed, AcceptedOwner::Own)
                .unwrap_err()
                .to_string()
                .contains("is a device")
        );
    }
}
