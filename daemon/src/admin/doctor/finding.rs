//! The results of checks.

use agentd_config::JsonFileError;
use agentd_protocol::doctor::{Check, CheckStatus};

/// What a check is called: its id for programs, its title for people.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name(pub(super) &'static str, pub(super) &'static str);

impl Name {
    /// All is well.
    pub(super) fn ok(self, detail: impl Into<String>) -> Check {
        self.check(CheckStatus::Ok, detail, None)
    }

    /// All is well, and there is something that the user could do.
    pub(super) fn ok_but(self, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        self.check(CheckStatus::Ok, detail, Some(advice.into()))
    }

    /// It works, but not as someone may expect.
    pub(super) fn warning(self, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        self.check(CheckStatus::Warning, detail, Some(advice.into()))
    }

    /// It does not work.
    pub(super) fn problem(self, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        self.check(CheckStatus::Problem, detail, Some(advice.into()))
    }

    fn check(self, status: CheckStatus, detail: impl Into<String>, advice: Option<String>) -> Check {
        Check { id: self.0.into(), title: self.1.into(), status, detail: detail.into(), advice }
    }
}

/// All checks in one sentence.
pub(super) fn summary(checks: &[Check]) -> String {
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let some = |number, one: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {one}s")),
    };
    let found = [some(count(CheckStatus::Problem), "problem"), some(count(CheckStatus::Warning), "warning")];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() { "Everything is in order.".into() } else { format!("{}.", found.join(", ")) }
}

/// What to do about a JSON file that cannot be used.
pub(super) fn first_aid(error: &JsonFileError) -> &'static str {
    match error {
        JsonFileError::Unreadable(_) => "Make it a file that your user can read, or remove it.",
        JsonFileError::NotUtf8 { .. } | JsonFileError::Syntax { .. } => "Repair the file or remove it.",
    }
}

/// How many there are, in words.
pub(super) fn counted(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let name = Name("a", "b");
        assert_eq!(summary(&[name.ok("x")]), "Everything is in order.");
        assert_eq!(summary(&[name.warning("x", "y"), name.ok("x")]), "1 warning.");
        let many = [name.problem("x", "y"), name.warning("x", "y"), name.warning("x", "y")];
        assert_eq!(summary(&many), "1 problem, 2 warnings.");
    }
}
