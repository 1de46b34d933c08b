//! Expands a message that calls a skill or a prompt template.

use agentd_protocol::resources::DiagnosticKind;

use super::{
    DiscoveredResources, ResourceQuery, Skill,
    front_matter::split,
    load::{load_prompts, load_skills},
    resource_file,
    substitute::{has_place, is_space, split_arguments, substitute, with_braces},
};

/// The longest text of arguments that is put into a template: 1 MiB.
const MAX_ARGUMENTS: usize = 1024 * 1024;

/// The longest text that a template becomes: 16 MiB.
const MAX_RESULT: usize = 16 * 1024 * 1024;

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
) -> Result<Option<String>, ExpandError> {
    let Some(call) = message.strip_prefix('/') else { return Ok(None) };
    let (name, typed) = call.split_at(call.find(is_space).unwrap_or(call.len()));
    let typed = typed.trim_matches(is_space);
    // Faults of files are reported elsewhere; here only their existence counts.
    if let Some(skill) = name.strip_prefix("skill:") {
        let found = load_skills(query, discovered).into_iter().find(|it| it.name == skill);
        return found.map(|skill| with_instructions(&skill, name, typed)).transpose();
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
    let expanded = if template.appends_arguments {
        let text = with_braces(&text);
        let appended = if typed.is_empty() || has_place(&text) { "" } else { typed };
        let expanded = substitute(&text, &split_arguments(typed), MAX_RESULT);
        expanded
            .map(|text| if appended.is_empty() { text } else { format!("{}\n\n{appended}", text.trim_end()) })
    } else {
        substitute(&text, &split_arguments(typed), MAX_RESULT)
    };
    expanded.map(Some).ok_or_else(|| ExpandError::LongResult { name: name.to_owned() })
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
