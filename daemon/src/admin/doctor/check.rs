//! What all checks share: the set-up that they look at, their names, and the words of their results.

use std::{path::Path, sync::Arc};

use agentd_auth::Auth;
use agentd_config::{
    AgentDir, JsonFileError,
    models::ModelRegistry,
    settings::{self, LoadedSettings},
};
use agentd_protocol::doctor::{Check, CheckStatus};

use crate::admin::Context;

/// The set-up as a session that started now would find it.
pub(super) struct LoadedSetup {
    pub(super) agent_dir: AgentDir,
    pub(super) settings: LoadedSettings,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) auth: Auth,
}

impl LoadedSetup {
    /// Reads all files. Blocks.
    pub(super) fn read(context: &Context) -> Option<Self> {
        let agent_dir = context.agent_dir().ok()?;
        let settings = settings::load(&agent_dir, &context.cwd, &context.environment, None);
        let (registry, auth) = context.load().ok()?;
        Some(Self { agent_dir, settings, registry, auth })
    }
}

/// The name of a check: its id for programs, its title for people.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckName(pub(super) &'static str, pub(super) &'static str);

impl CheckName {
    /// The check passed.
    pub(super) fn ok(self, detail: impl Into<String>) -> Check {
        self.check(CheckStatus::Ok, detail, None)
    }

    /// The check passed, with advice on something that the user could do.
    pub(super) fn ok_but(self, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        self.check(CheckStatus::Ok, detail, Some(advice.into()))
    }

    /// It works, but not as the user may expect.
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

/// The advice for a JSON file that cannot be used.
pub(super) fn first_aid(error: &JsonFileError) -> &'static str {
    match error {
        JsonFileError::Unreadable(_) => "Make it a file that your user can read, or remove it.",
        JsonFileError::NotUtf8 { .. } | JsonFileError::Syntax { .. } => "Repair the file or remove it.",
    }
}

/// A number with its noun, in the plural where needed.
pub(super) fn counted(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// The advice for a user without a model.
pub(super) const NO_MODEL: &str = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, store a key with `agentctl login PROVIDER`, or \
                                   use a model server of your own with `agentctl setup local`.";

/// A path for messages.
pub(super) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The path as one word of a shell.
pub(super) fn shell_word(path: &Path) -> String {
    let text = show(path);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let name = CheckName("a", "b");
        assert_eq!(summary(&[name.ok("x")]), "Everything is in order.");
        assert_eq!(summary(&[name.warning("x", "y"), name.ok("x")]), "1 warning.");
        let many = [name.problem("x", "y"), name.warning("x", "y"), name.warning("x", "y")];
        assert_eq!(summary(&many), "1 problem, 2 warnings.");
    }

    #[test]
    fn paths_are_one_word_of_a_shell() {
        assert_eq!(shell_word(Path::new("/a b/it's")), r"'/a b/it'\''s'");
        assert_eq!(shell_word(Path::new("/a/b")), "/a/b");
    }
}
