//! Resources of a session: commands that expand to text (skills, prompt templates), and problems of such
//! files.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text_bounds;

/// The answer to `get_commands`: prompt templates, then skills, then prompts of MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlashCommands {
    /// In the order in which they were found.
    pub commands: Vec<SlashCommand>,
}

/// A command that expands a message that starts with `/name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    /// Without the slash. That of a skill begins with `skill:`.
    pub name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments of a prompt template, such as `<file> [focus]`, to be shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Its kind.
    pub source: CommandSource,
    /// Its source.
    pub source_info: SourceInfo,
}

/// The kind of a slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommandSource {
    /// Code of an extension.
    Extension,
    /// A prompt template, or a prompt of an MCP server.
    Prompt,
    /// A skill.
    Skill,
}

/// The answer to `get_available_commands`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AvailableCommands {
    /// The same as of `get_commands`, in the same order.
    pub commands: Vec<AvailableCommand>,
}

/// The commands that a message can begin with are others now: of extensions, of MCP servers, or of settings that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AvailableCommandsUpdate {
    /// All of them.
    pub commands: Vec<AvailableCommand>,
}

/// A command that a message can begin with, as omp's clients know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AvailableCommand {
    /// Without the slash.
    pub name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What may follow it; absent where nothing is known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput>,
    /// Its kind.
    pub source: AvailableCommandSource,
}

/// What may follow a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandInput {
    /// To be shown to the user.
    pub hint: String,
}

/// The kind of a command, in omp's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AvailableCommandSource {
    /// Code of an extension.
    Extension,
    /// A prompt template.
    File,
    /// A prompt of an MCP server.
    McpPrompt,
    /// A skill.
    Skill,
}

impl From<&SlashCommand> for AvailableCommand {
    fn from(command: &SlashCommand) -> Self {
        let source = match command.source {
            CommandSource::Extension => AvailableCommandSource::Extension,
            CommandSource::Skill => AvailableCommandSource::Skill,
            CommandSource::Prompt if command.source_info.source == "mcp" => AvailableCommandSource::McpPrompt,
            CommandSource::Prompt => AvailableCommandSource::File,
        };
        Self {
            name: command.name.clone(),
            description: command.description.clone(),
            input: command.argument_hint.clone().map(|hint| CommandInput { hint }),
            source,
        }
    }
}

/// The source of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// The file, absolute; for a prompt of an MCP server that of the server's entry.
    pub path: String,
    /// The way it was found: `auto` in a default folder, `local` by a setting or a flag, `cli` by `--extension`, `mcp` at an MCP server;
    /// for a part of a package the package's source as it is written.
    pub source: String,
    /// Its scope.
    pub scope: SourceScope,
    /// Whether it stands by itself or belongs to a package.
    pub origin: SourceOrigin,
    /// The folder of configuration that it was found in; for what a flag names, the folder of the file; for a part of a package the
    /// package's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}

/// The scope of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceScope {
    /// The user's, in every project.
    User,
    /// The project's.
    Project,
    /// This process alone, as by a flag.
    Temporary,
}

/// Whether a resource stands by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SourceOrigin {
    /// A file of its own.
    TopLevel,
    /// Part of a package.
    Package,
}

/// The answer to `get_diagnostics`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostics {
    /// In the order in which the files are read.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether nothing at all says which model to use: no key (not even an empty variable), no login, no provider in
    /// `models.json`, no setting, and no file that cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfigured: bool,
}

/// Something about a file, a setting or a flag that a user should know. It never keeps a session from working.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Its severity.
    pub level: DiagnosticLevel,
    /// Its subject.
    pub kind: DiagnosticKind,
    /// The file, absolute, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line in it, from 1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The byte offset of that line. Only for session files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// The problem and its consequence. Never a secret. Some lines at most: the middle of a quotation may be left out.
    pub message: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticLevel {
    /// All works as it stands there; it may not be what was meant.
    Info,
    /// A part of the file is not used, or not as it stands there.
    Warning,
    /// The whole file is not used.
    Error,
}

/// The subject of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticKind {
    /// A `settings.json`.
    Settings,
    /// `models.json`, or the choice of a model.
    Models,
    /// `auth.json`.
    Credentials,
    /// A skill.
    Skill,
    /// A prompt template.
    Prompt,
    /// A file with instructions, such as `AGENTS.md`.
    ContextFile,
    /// `SYSTEM.md` or `APPEND_SYSTEM.md`, or what a flag gives in their place.
    SystemPrompt,
    /// Whether the project is trusted.
    Trust,
    /// The session file.
    Session,
    /// A tool, or a name of one.
    Tools,
    /// `mcp.json`, or a server of it.
    Mcp,
    /// An extension.
    Extension,
    /// A shell hook, or a file that names some.
    Hook,
    /// A package of resources.
    Package,
    /// A file of another tool: a rule, a command, a definition of an agent, a hook.
    Capability,
    /// A flag of the command line, or an argument of `open_session`.
    Flag,
}

/// The longest message, in bytes: it quotes names and values of files.
const MOST_SAID: usize = 2000;

impl Diagnostic {
    /// A warning that is about no file. Of a message over 2,000 bytes, the middle is left out.
    #[must_use]
    pub fn warning(kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self {
            level: DiagnosticLevel::Warning,
            kind,
            path: None,
            line: None,
            byte: None,
            message: text_bounds::without_middle(message.into(), MOST_SAID),
            hint: None,
        }
    }

    /// The same about that file.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<std::path::Path>) -> Self {
        self.path = Some(path.as_ref().to_string_lossy().into_owned());
        self
    }

    /// The same about that line, counted from 1.
    #[must_use]
    pub fn line(mut self, line: impl Into<Option<u32>>) -> Self {
        self.line = line.into();
        self
    }

    /// The same about the line that begins behind so many bytes.
    #[must_use]
    pub fn byte(mut self, byte: impl Into<Option<u64>>) -> Self {
        self.byte = byte.into();
        self
    }

    /// The same with that level.
    #[must_use]
    pub fn level(mut self, level: DiagnosticLevel) -> Self {
        self.level = level;
        self
    }

    /// The same with that advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// One line for a terminal: `PATH:LINE: message (hint)`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.line) {
            (Some(path), Some(line)) => write!(f, "{path}:{line}: ")?,
            (Some(path), None) => write!(f, "{path}: ")?,
            (None, _) => {}
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}
