//! The effect of each setting, which decides whether a project may set it.
//!
//! A project that is not trusted can set nothing. The settings of a trusted one are in one table, which has a row for every
//! setting: a test walks the schema.

use serde_json::Value;

/// The effect of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingEffect {
    /// The session's conduct. The setting starts, reads, writes and addresses nothing.
    Conduct,
    /// The tools that a model has, and what they take.
    Tools,
    /// Text that reaches the model.
    Text,
    /// The model that gets the conversation.
    Model,
    /// A folder or file that is read or written.
    Place,
    /// A program that is started, or a line that a shell runs.
    Program,
}

impl SettingEffect {
    /// Returns whether the user is shown the setting's name before trusting the project.
    fn is_told(self) -> bool {
        matches!(self, Self::Model | Self::Place | Self::Program)
    }
}

/// The files that may set a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingReach {
    /// The user, and a project that the user trusts.
    Project(SettingEffect),
    /// The user alone: it says where requests go, what is trusted, or what bounds all sessions.
    UserOnly,
}

use SettingEffect::{Conduct, Model, Place, Program, Text, Tools};
use SettingReach::{Project, UserOnly};

/// Every top-level key; what is below one has its reach.
const SETTINGS: &[(&str, SettingReach)] = &[
    ("defaultProvider", Project(Model)),
    ("defaultModel", Project(Model)),
    ("defaultThinkingLevel", Project(Conduct)),
    ("modelThinkingLevels", Project(Conduct)),
    ("enabledModels", Project(Model)),
    ("fallbackModels", Project(Model)),
    ("modelRoles", Project(Model)),
    ("steeringMode", Project(Conduct)),
    ("followUpMode", Project(Conduct)),
    ("interruptMode", Project(Conduct)),
    ("toolExecution", Project(Conduct)),
    ("defaultTools", Project(Tools)),
    ("excludeTools", Project(Tools)),
    ("clientTools", Project(Conduct)),
    ("defaultProjectTrust", UserOnly),
    ("skills", Project(Text)),
    ("prompts", Project(Text)),
    ("extensions", Project(Program)),
    ("packages", Project(Program)),
    ("npmCommand", Project(Program)),
    ("extensionHost", UserOnly),
    ("hooks", Project(Program)),
    ("shellHooks", UserOnly),
    ("enableSkillCommands", Project(Conduct)),
    ("shellPath", Project(Program)),
    ("shellCommandPrefix", Project(Program)),
    ("processes", Project(Conduct)),
    ("childEnvironment", UserOnly),
    ("agentDirWritable", UserOnly),
    ("permissions", UserOnly),
    ("sandbox", UserOnly),
    ("undo", UserOnly),
    ("promptHistory", UserOnly),
    ("todo", Project(Tools)),
    ("eval", UserOnly),
    ("task", Project(Tools)),
    // It says what edits may touch, and bounds servers that sessions share.
    ("lsp", UserOnly),
    ("syntax", Project(Tools)),
    // It says on which hosts commands run.
    ("ssh", UserOnly),
    ("isolation", UserOnly),
    // They say where data may go.
    ("web", UserOnly),
    ("webSearch", UserOnly),
    ("ask", Project(Tools)),
    // A project must not take the mode away that keeps it unchanged.
    ("plan", UserOnly),
    ("ttsr", UserOnly),
    ("bash", Project(Tools)),
    ("async", Project(Tools)),
    // It says which files need trust.
    ("discovery", UserOnly),
    // Another process starts the commands, in an environment of its own.
    ("acp", UserOnly),
    ("sessionDir", Project(Place)),
    ("images", Project(Conduct)),
    ("compaction", Project(Conduct)),
    ("branchSummary", Project(Conduct)),
    ("retry", Project(Conduct)),
    ("thinkingBudgets", Project(Conduct)),
    ("httpIdleTimeoutMs", Project(Conduct)),
    ("deadlines", Project(Conduct)),
    ("httpProxy", UserOnly),
    ("caFile", UserOnly),
    ("durability", Project(Conduct)),
    ("crashRecovery", Project(Conduct)),
    ("daemon", UserOnly),
    ("limits", UserOnly),
    ("storage", UserOnly),
    ("telemetry", UserOnly),
    ("budgets", UserOnly),
    // A setting of pi; agentd does not read it.
    ("cacheWarming", UserOnly),
];

/// The reach of a top-level key; `None` for a key that is no setting of agentd.
#[must_use]
pub fn reach(key: &str) -> Option<SettingReach> {
    SETTINGS.iter().find(|(name, _)| *name == key).map(|(_, reach)| *reach)
}

/// Members of settings of projects that count in the user's settings alone.
const MEMBERS_OF_USER: [(&str, &str); 1] = [
    // It runs the user's own files of the shell.
    ("bash", "snapshot"),
];

/// Returns whether a trusted project may set a key, by its path of names.
pub(super) fn counts_from_project(keys: &[String]) -> bool {
    let Some((top, rest)) = keys.split_first() else { return true };
    let is_of_user =
        rest.first().is_some_and(|member| MEMBERS_OF_USER.contains(&(top.as_str(), member.as_str())));
    reach(top) != Some(UserOnly) && !is_of_user
}

/// What of a project's value of a top-level key counts; `None` for nothing.
pub(super) fn of_project(key: &str, mut value: Value) -> Option<Value> {
    if reach(key) == Some(UserOnly) {
        return None;
    }
    if let Value::Object(members) = &mut value {
        let had = members.len();
        members.retain(|member, _| !MEMBERS_OF_USER.contains(&(key, member.as_str())));
        if members.is_empty() && had > 0 {
            return None;
        }
    }
    Some(value)
}

/// Returns whether the user is shown that a project sets this top-level key, before trusting it.
pub(crate) fn is_told(key: &str) -> bool {
    matches!(reach(key), Some(Project(effect)) if effect.is_told())
}

#[cfg(test)]
mod tests;
