//! The request of `agentctl policy` to `agentd` on its stdin, and the answer: a line of JSON for each example.

use serde::{Deserialize, Serialize};

use crate::settings::{PermissionAction, PermissionPreset, PermissionRule, PermissionSettings};

/// The request: one line on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyCheckRequest {
    /// The session's folder; the working directory if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The home directory; that of the environment if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// The permissions in the place of those of the user's settings and of the project's `.agentd/policy.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionSettings>,
    /// The preset in the place of that of the permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<PermissionPreset>,
    /// Rules besides those of the permissions.
    pub rules: Vec<PermissionRule>,
    /// The calls to judge.
    pub examples: Vec<PolicyExample>,
}

/// A call to judge: a shell command, a file that a tool reads or writes, or another tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyExample {
    /// The tool; `bash` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The shell command of `bash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The path of other tools; relative ones are in the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The host, or a URL, for `web_fetch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// What the example is about: for who reads the file, and not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The verdict wanted, in a file of examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<PermissionAction>,
}

/// The verdict about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyVerdict {
    /// The verdict.
    pub action: PermissionAction,
    /// The rule that decided; null when the preset did.
    pub rule: Option<VerdictRule>,
    /// Why.
    pub reason: String,
    /// The simple commands of a shell command, each before those that it starts: `sudo rm x` before `rm x`.
    pub parsed: Vec<VerdictCommand>,
}

/// The rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerdictRule {
    /// Where it comes from: `user`, `project`, `flags` or `session`.
    pub source: String,
    /// Its number among the rules of its source, from 1.
    pub number: u64,
    /// Its tool.
    pub tool: String,
    /// Its pattern of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its pattern of paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// What it does.
    pub action: PermissionAction,
    /// Its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictCommand {
    /// Its words: quotes resolved where they are known, as written where they are only known when it runs.
    pub words: Vec<String>,
    /// Its redirections, such as `> out.txt`.
    pub redirections: Vec<String>,
}
