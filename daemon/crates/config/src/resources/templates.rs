//! Prompt templates: texts that a user sends by a short name, with arguments.

use std::path::PathBuf;

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, SourceInfo};

use super::{
    ResourceQuery,
    found::{FoundFile, find, first_of_each_name},
    front_matter::{Attributes, attributes, split},
    places::ResourceKind,
    resource_file,
    substitute::is_space,
};

const KIND: DiagnosticKind = DiagnosticKind::Prompt;

/// The characters of the first line that describe a template without a description.
const DESCRIPTION: usize = 60;

/// A prompt template, without its text: that is read when it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    /// The name.
    pub name: String,
    /// The description; the first line for a template without one.
    pub description: String,
    /// The expected arguments, as shown to a user.
    pub argument_hint: Option<String>,
    /// Its file, absolute.
    pub file: PathBuf,
    /// The source.
    pub source: SourceInfo,
    /// True for a command of another tool: arguments that its text has no place for are appended.
    pub appends_arguments: bool,
    /// True for a slash command, whose text can have shell commands.
    pub runs_commands: bool,
}

/// All prompt templates of a session's places, those included that others shadow or that are switched off. Reads files; blocks.
pub(super) fn load_every(query: &ResourceQuery<'_>) -> Vec<PromptTemplate> {
    let found = find(query, ResourceKind::Prompt, KIND, &mut Vec::new());
    found.into_iter().filter_map(|file| read(file, &mut Vec::new())).collect()
}

/// Finds the prompt templates of a session, in the order in which they count. Reads files; blocks.
pub(super) fn load(query: &ResourceQuery<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<PromptTemplate> {
    let found = find(query, ResourceKind::Prompt, KIND, diagnostics);
    let templates = found.into_iter().filter_map(|file| read(file, diagnostics));
    let templates = templates.filter(|it| query.is_on(ResourceKind::Prompt, &it.name)).collect();
    first_of_each_name(templates, "prompt template", KIND, |it| (&it.name, &it.source.path), diagnostics)
}

fn read(file: FoundFile, diagnostics: &mut Vec<Diagnostic>) -> Option<PromptTemplate> {
    let FoundFile { path, source, .. } = file;
    let text = resource_file::read(&path, KIND, diagnostics)?.replace("\r\n", "\n");
    let parts = split(&text);
    let attributes = match parts.yaml.map_or(Ok(Attributes::default()), attributes) {
        Ok(attributes) => attributes,
        Err(problem) => {
            diagnostics.push(problem.refusal(KIND, &path, "prompt template"));
            return None;
        }
    };
    diagnostics.extend(attributes.problems.into_iter().map(|problem| problem.remark(KIND, &path)));
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if name.contains(is_space) {
        let message = format!("\"/{name}\" cannot be typed, since a name ends at the first space");
        diagnostics.push(Diagnostic::warning(KIND, message).at(&path).hint("rename the file"));
    }
    if parts.body.trim().is_empty() {
        let message = "the prompt template has no text";
        diagnostics.push(Diagnostic::warning(KIND, message).at(&path).hint("write what is to be sent"));
    }
    let description = attributes.description.filter(|text| !text.is_empty());
    Some(PromptTemplate {
        name,
        description: description.unwrap_or_else(|| first_line(parts.body)),
        argument_hint: attributes.argument_hint.filter(|hint| !hint.is_empty()),
        file: path,
        source,
        appends_arguments: false,
        runs_commands: false,
    })
}

fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
