//! Settings of permissions: what tools and commands may do, what is asked, what is refused.

use serde::{Deserialize, Serialize};

/// What tools and commands may do. Without it, everything is allowed, as in pi.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PermissionSettings {
    /// The verdict where no rule matches; default `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "full")))]
    pub preset: Option<PermissionPreset>,
    /// The time that a question waits for an answer, in milliseconds; default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub ask_timeout_ms: Option<u64>,
    /// The decision when nobody answers in time, or nobody is there who could; default `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "deny")))]
    pub on_timeout: Option<TimeoutDecision>,
    /// The rules. Of those that match, `deny` wins over `ask`, and `ask` over `allow`, wherever they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub rules: Option<Vec<PermissionRule>>,
}

/// A rule about calls of a tool. Without `command`, `path` and `domain` it matches every call of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PermissionRule {
    /// The tool, with `*` for any part of its name. `edit` counts as `write`; `grep`, `find` and `ls` count as `read`. `read` of a
    /// page of the web counts as `web_fetch`.
    pub tool: String,
    /// For `bash`: the command, word by word. A last `*` stands for any further words, none too; another `*` for one word; a word may
    /// be a glob. The rule holds for a shell command when it holds for each simple command in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// For `read` and `write`: the path as a glob, in which `**` stands for any folders. `./` begins at the session's folder, `~/` at
    /// the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// For `web_fetch`: the host, with `*` for any part of its name. `example.org` means the hosts below it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// What is done with a call that matches.
    pub action: PermissionAction,
    /// The reason, for the user who is asked and the model that is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The verdict about a call, from the least to the most strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PermissionAction {
    /// The call runs.
    Allow,
    /// The user is asked.
    Ask,
    /// The call is refused.
    Deny,
}

impl PermissionAction {
    /// The word in settings and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The verdict where no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionPreset {
    /// Reads are allowed, everything else is refused.
    ReadOnly,
    /// Reads are allowed, everything else is asked.
    Ask,
    /// Reads, writes below the session's folder and commands that only look are allowed, everything else is asked.
    Workspace,
    /// Everything is allowed.
    #[default]
    Full,
}

impl PermissionPreset {
    /// All presets, from the strictest.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::Workspace, Self::Full];

    /// The word in settings and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::Workspace => "workspace",
            Self::Full => "full",
        }
    }

    /// The stricter of two: the one that allows less.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let place = |preset| Self::ALL.into_iter().position(|one| one == preset);
        if place(other) < place(self) { other } else { self }
    }

    /// The preset with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name)
    }
}

/// The decision about a question that nobody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TimeoutDecision {
    /// The call is refused.
    #[default]
    Deny,
    /// The call runs.
    Allow,
}
