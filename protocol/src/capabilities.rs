//! `get_capabilities` and `set_capability`: what the files of agentd and of other tools give a session.

use serde::{Deserialize, Serialize};

use crate::resources::Diagnostic;

/// The fields of `get_capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetCapabilitiesParams {
    /// Only items of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CapabilityKind>,
    /// Whether items that another one shadows are listed, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_shadowed: bool,
}

/// The fields of `set_capability`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetCapabilityParams {
    /// The `id` of an item, such as `rule:testing`. (`id` itself is the command's own id.)
    pub capability_id: String,
    /// False adds it to the setting `discovery.disabledItems`, true removes it from there.
    pub enabled: bool,
}

/// The answer to `get_capabilities` and to `set_capability`, as the files are now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapabilityList {
    /// Kind by kind; within a kind in the order in which items count.
    pub items: Vec<Capability>,
    /// The faults of the files.
    pub warnings: Vec<Diagnostic>,
}

/// An item that a file gives sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// Its kind.
    pub kind: CapabilityKind,
    /// The id for `set_capability`. Items that shadow each other have the same.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its source.
    pub source: CapabilitySource,
    /// Whether it counts: no other item comes first, nothing switches it off, and it waits for nothing.
    pub counts: bool,
    /// Whether an item with the same name comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shadowed: bool,
    /// Whether it is switched off: by `discovery.disabledItems`, or in its own file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Why it does not count, such as `waits for trust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The source of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CapabilitySource {
    /// The id of the provider that found it, such as `claude`: what `discovery.disabledProviders` takes.
    pub provider: String,
    /// Its name for people, such as `Claude Code`.
    pub provider_name: String,
    /// The file, absolute.
    pub path: String,
    /// Whose it is.
    pub level: CapabilityLevel,
}

/// Whose an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CapabilityLevel {
    /// The user's, in every project.
    User,
    /// The project's.
    Project,
}

/// A kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityKind {
    /// Instructions that are always part of the system prompt, such as `AGENTS.md`.
    ContextFiles,
    /// Instructions for some files or some work, such as `.cursor/rules`.
    Rules,
    /// Skills.
    Skills,
    /// Commands of users, such as `.claude/commands`.
    SlashCommands,
    /// Prompt templates.
    Prompts,
    /// Instructions that say which files they apply to.
    Instructions,
    /// Definitions of agents.
    Agents,
    /// MCP servers.
    Mcps,
    /// Hooks: what is started before and after tool calls.
    Hooks,
    /// Tools of their own files.
    Tools,
    /// Extensions with a manifest.
    Extensions,
    /// Modules of extensions.
    ExtensionModules,
    /// Settings files.
    Settings,
    /// Texts in the place of the built-in system prompt.
    SystemPrompt,
    /// Hosts for SSH.
    Ssh,
}

impl CapabilityKind {
    /// Every kind, in the order of listings.
    pub const ALL: [Self; 15] = [
        Self::ContextFiles,
        Self::Rules,
        Self::Skills,
        Self::SlashCommands,
        Self::Prompts,
        Self::Instructions,
        Self::Agents,
        Self::Mcps,
        Self::Hooks,
        Self::Tools,
        Self::Extensions,
        Self::ExtensionModules,
        Self::Settings,
        Self::SystemPrompt,
        Self::Ssh,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContextFiles => "context-files",
            Self::Rules => "rules",
            Self::Skills => "skills",
            Self::SlashCommands => "slash-commands",
            Self::Prompts => "prompts",
            Self::Instructions => "instructions",
            Self::Agents => "agents",
            Self::Mcps => "mcps",
            Self::Hooks => "hooks",
            Self::Tools => "tools",
            Self::Extensions => "extensions",
            Self::ExtensionModules => "extension-modules",
            Self::Settings => "settings",
            Self::SystemPrompt => "system-prompt",
            Self::Ssh => "ssh",
        }
    }

    /// The first part of the ids of its items.
    #[must_use]
    pub fn id_prefix(self) -> &'static str {
        match self {
            Self::ContextFiles => "context-file",
            Self::Rules => "rule",
            Self::Skills => "skill",
            Self::SlashCommands => "slash-command",
            Self::Prompts => "prompt",
            Self::Instructions => "instruction",
            Self::Agents => "agent",
            Self::Mcps => "mcp",
            Self::Hooks => "hook",
            Self::Tools => "tool",
            Self::Extensions => "extension",
            Self::ExtensionModules => "extension-module",
            Self::Settings => "settings",
            Self::SystemPrompt => "system-prompt",
            Self::Ssh => "ssh",
        }
    }

    /// Returns whether items of a project count only when the project is trusted: they start or connect something, or say how
    /// others do. The other kinds are texts.
    #[must_use]
    pub fn needs_trust(self) -> bool {
        match self {
            Self::ContextFiles
            | Self::Rules
            | Self::Skills
            | Self::SlashCommands
            | Self::Prompts
            | Self::Instructions
            | Self::Agents => false,
            Self::Mcps
            | Self::Hooks
            | Self::Tools
            | Self::Extensions
            | Self::ExtensionModules
            | Self::Settings
            | Self::SystemPrompt
            | Self::Ssh => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_one_name_everywhere() {
        for kind in CapabilityKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        let mut sorted = CapabilityKind::ALL;
        sorted.sort();
        assert_eq!(sorted, CapabilityKind::ALL);
    }
}
