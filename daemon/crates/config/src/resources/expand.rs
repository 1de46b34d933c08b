//! Expands a message that calls a skill or a prompt template.

use std::path::PathBuf;

use agentd_protocol::resources::{DiagnosticKind, SourceScope};

use super::{
    DiscoveredResources, ResourceQuery, Skill,
    front_matter::split,
    load::{load_prompts, load_skills},
    resource_file,
    shell_commands::{CommandPlace, Refused, command_places, with_arguments},
    substitute::{has_place, is_space, split_arguments, substitute, with_braces},
};

/// The longest text of arguments that is put into a template: 1 MiB.
const MAX_ARGUMENTS: usize = 1024 * 1024;

/// The longest text that a template becomes: 16 MiB.
const MAX_RESULT: usize = 16 * 1024 * 1024;

/// The most shell commands of one text.
const MAX_COMMANDS: usize = 20;

/// The longest shell command, with its arguments: 64 KiB.
const MAX_COMMAND: usize = 64 * 1024;

/// The text that a message stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The text, with its shell commands as they are written.
    pub text: String,
    /// The shell commands, for a slash command whose text has some.
    pub commands: Option<TemplateCommands>,
}

/// A slash command whose text has shell commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCommands {
    /// Its file.
    pub file: PathBuf,
    /// True for a file of the project, whose commands need its trust.
    pub is_of_project: bool,
    /// The name after the slash.
    name: String,
    body: String,
    places: Vec<CommandPlace>,
    arguments: Vec<String>,
    /// Arguments that stand behind the text, which has no place for them.
    appended: String,
}

impl TemplateCommands {
    /// The commands in their order, with the arguments of the message in their places.
    ///
    /// # Errors
    /// [`ExpandError`]: there are too many, or one would get an argument that a shell might understand as more than words.
    pub fn lines(&self) -> Result<Vec<String>, ExpandError> {
        let name = || self.name.clone();
        if self.places.len() > MAX_COMMANDS {
            return Err(ExpandError::ManyCommands { name: name(), count: self.places.len() });
        }
        let line = |place: &CommandPlace| {
            let command = &self.body[place.command.clone()];
            with_arguments(command, &self.arguments, MAX_COMMAND).map_err(|refused| match refused {
                Refused::Argument => {
                    ExpandError::UnsafeArgument { name: name(), command: command.trim().to_owned() }
                }
                Refused::Long => ExpandError::LongCommand { name: name() },
            })
        };
        self.places.iter().map(line).collect()
    }

    /// The text with the commands' outputs in their places. What they printed is not looked at again.
    ///
    /// # Errors
    /// [`ExpandError::LongResult`].
    pub fn text(&self, outputs: &[String]) -> Result<String, ExpandError> {
        let long = || ExpandError::LongResult { name: self.name.clone() };
        let parts = self.places.iter().map(|place| place.whole.clone());
        let ends = std::iter::once(0).chain(parts.clone().map(|part| part.end));
        let begins = parts.map(|part| part.start).chain([self.body.len()]);
        let (mut text, mut outputs) = (String::new(), outputs.iter());
        for (from, to) in ends.zip(begins) {
            let room = MAX_RESULT.checked_sub(text.len()).ok_or_else(long)?;
            text.push_str(&substitute(&self.body[from..to], &self.arguments, room).ok_or_else(long)?);
            text.push_str(outputs.next().map_or("", String::as_str));
        }
        let text = appended(text, &self.appended);
        if text.len() > MAX_RESULT { Err(long()) } else { Ok(text) }
    }
}

fn appended(text: String, arguments: &str) -> String {
    if arguments.is_empty() { text } else { format!("{}\n\n{arguments}", text.trim_end()) }
}

/// Why a message that calls a skill or a prompt template was not expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// Its file cannot be read.
    #[error("/{name} cannot be used: {problem}")]
    Unreadable {
        /// The name after the slash.
        name: String,
        /// The fault, with the file.
        problem: String,
    },
    /// More than any template has use for.
    #[error(
        "/{name} takes at most {MAX_ARGUMENTS} bytes of arguments, and these are {length}: put the text into a file and name \
         that"
    )]
    LongArguments {
        /// The name after the slash.
        name: String,
        /// The length of the arguments in bytes.
        length: usize,
    },
    /// The template repeats its arguments too often.
    #[error("/{name} becomes longer than {MAX_RESULT} bytes with these arguments: use shorter ones")]
    LongResult {
        /// The name after the slash.
        name: String,
    },
    /// Its text has more shell commands than any needs.
    #[error("/{name} has {count} shell commands, and {MAX_COMMANDS} can be run")]
    ManyCommands {
        /// The name after the slash.
        name: String,
        /// Their number.
        count: usize,
    },
    /// A shell command becomes too long.
    #[error("a shell command of /{name} becomes longer than {MAX_COMMAND} bytes with these arguments")]
    LongCommand {
        /// The name after the slash.
        name: String,
    },
    /// A shell command would get an argument that a shell might understand as more than words.
    #[error(
        "/{name} puts its arguments into the shell command `{command}`, and one has characters that mean something to a shell: use \
         letters, digits, blanks and any of _-./:@%+=,~^"
    )]
    UnsafeArgument {
        /// The name after the slash.
        name: String,
        /// The command as its file has it.
        command: String,
    },
}

/// The text that a message stands for which begins with `/skill:NAME` or with `/NAME` of a prompt template; `None` for any
/// other, unknown names included. Reads files; blocks.
///
/// # Errors
/// [`ExpandError`] when the skill or the template is there and cannot be used.
pub fn expand(
    message: &str,
    query: &ResourceQuery<'_>,
    discovered: &DiscoveredResources,
) -> Result<Option<Expansion>, ExpandError> {
    let plain = |text| Expansion { text, commands: None };
    let Some(call) = message.strip_prefix('/') else { return Ok(None) };
    let (name, typed) = call.split_at(call.find(is_space).unwrap_or(call.len()));
    let typed = typed.trim_matches(is_space);
    // Faults of files are reported elsewhere; here only their existence counts.
    if let Some(skill) = name.strip_prefix("skill:") {
        let found = load_skills(query, discovered).into_iter().find(|it| it.name == skill);
        return found.map(|skill| with_instructions(&skill, name, typed).map(plain)).transpose();
    }
    let Some(template) =
        load_prompts(query, discovered, &mut Vec::new()).into_iter().find(|it| it.name == name)
    else {
        return Ok(None);
    };
    if typed.len() > MAX_ARGUMENTS {
        return Err(ExpandError::LongArguments { name: name.to_owned(), length: typed.len() });
    }
    let text = body(&template.file, name, DiagnosticKind::Prompt)?;
    let long = || ExpandError::LongResult { name: name.to_owned() };
    let arguments = split_arguments(typed);
    if !template.appends_arguments {
        return Ok(Some(plain(substitute(&text, &arguments, MAX_RESULT).ok_or_else(long)?)));
    }
    let body = with_braces(&text);
    let behind = if typed.is_empty() || has_place(&body) { "" } else { typed };
    let text = appended(substitute(&body, &arguments, MAX_RESULT).ok_or_else(long)?, behind);
    let places = if template.runs_commands { command_places(&body) } else { Vec::new() };
    let commands = (!places.is_empty()).then(|| TemplateCommands {
        file: template.file.clone(),
        is_of_project: template.source.scope != SourceScope::User,
        name: name.to_owned(),
        places,
        appended: behind.to_owned(),
        arguments,
        body: body.into_owned(),
    });
    Ok(Some(Expansion { text, commands }))
}

/// A skill's instructions, as a call of it puts them into a message. Reads its file; blocks.
///
/// # Errors
/// The file cannot be read.
pub fn instructions(skill: &Skill) -> Result<String, ExpandError> {
    with_instructions(skill, &skill.name, "")
}

/// A skill's instructions, and what the user says to them.
fn with_instructions(skill: &Skill, called: &str, typed: &str) -> Result<String, ExpandError> {
    let body = body(&skill.file, called, DiagnosticKind::Skill)?;
    let mut text = format!(
        "<skill name=\"{}\" location=\"{}\">\nReferences are relative to {}.\n\n{}\n</skill>",
        skill.name,
        skill.file.display(),
        skill.folder().display(),
        body.trim(),
    );
    if !typed.is_empty() {
        text.push_str("\n\n");
        text.push_str(typed);
    }
    Ok(text)
}

/// The text of a file after its front matter.
fn body(file: &std::path::Path, name: &str, kind: DiagnosticKind) -> Result<String, ExpandError> {
    let mut said = Vec::new();
    let text = resource_file::read(file, kind, &mut said).ok_or_else(|| ExpandError::Unreadable {
        name: name.to_owned(),
        problem: said.first().map_or_else(|| format!("{} is gone", file.display()), ToString::to_string),
    })?;
    Ok(split(&text.replace("\r\n", "\n")).body.to_owned())
}
