//! Skills: instructions for a kind of work, which the model reads when it has such work, or the user asks for.

use std::path::{Path, PathBuf};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel, SourceInfo};

use super::{
    ResourceQuery,
    found::{FoundFile, find, first_of_each_name},
    front_matter::{attributes, split},
    places::ResourceKind,
    resource_file,
    walk::SKILL_FILE,
};

const KIND: DiagnosticKind = DiagnosticKind::Skill;

/// The longest name that others take, in bytes.
const MAX_NAME: usize = 64;

/// The longest description that others take, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// A skill, without its instructions: those are read when they are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name.
    pub name: String,
    /// The skill's purpose, and when to use it.
    pub description: String,
    /// Its file, absolute.
    pub file: PathBuf,
    /// True if models are not told of it; the user can still call it.
    pub only_by_user: bool,
    /// The source.
    pub source: SourceInfo,
}

impl Skill {
    /// The folder that paths in its instructions are relative to.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }
}

/// All skills of a session's places, those included that others shadow or that are switched off. Reads files; blocks.
pub(super) fn load_every(query: &ResourceQuery<'_>) -> Vec<Skill> {
    let found = find(query, ResourceKind::Skill, KIND, &mut Vec::new());
    found.into_iter().filter_map(|file| read(file, &mut Vec::new())).collect()
}

/// Finds the skills of a session, in the order in which they count. Reads files; blocks.
pub(super) fn load(query: &ResourceQuery<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Skill> {
    let found = find(query, ResourceKind::Skill, KIND, diagnostics);
    let skills = found.into_iter().filter_map(|file| read(file, diagnostics));
    let skills = skills.filter(|skill| query.is_on(ResourceKind::Skill, &skill.name)).collect();
    first_of_each_name(skills, "skill", KIND, |skill| (&skill.name, &skill.source.path), diagnostics)
}

fn read(file: FoundFile, diagnostics: &mut Vec<Diagnostic>) -> Option<Skill> {
    let FoundFile { path, source, is_named } = file;
    let text = resource_file::read(&path, KIND, diagnostics)?.replace("\r\n", "\n");
    // Other Markdown lies in folders of skills, too; that is none, and nothing is wrong with it.
    let is_declared = is_named || path.file_name().is_some_and(|name| name == SKILL_FILE);
    let Some(yaml) = split(&text).yaml else {
        if is_declared {
            let message = "the file has no front matter with a description; the skill is not used";
            diagnostics.push(unused(&path, message).hint(EXAMPLE));
        }
        return None;
    };
    let attributes = match attributes(yaml) {
        Ok(attributes) => attributes,
        Err(problem) => {
            diagnostics.push(problem.refusal(KIND, &path, "skill"));
            return None;
        }
    };
    let description = attributes.description.filter(|text| !text.is_empty());
    if description.is_some() || is_declared {
        diagnostics.extend(attributes.problems.into_iter().map(|problem| problem.remark(KIND, &path)));
    }
    let Some(description) = description else {
        if is_declared {
            let message = "the front matter has no description; the skill is not used";
            diagnostics.push(unused(&path, message).hint("say what it does and when to use it"));
        }
        return None;
    };
    let name = attributes.name.filter(|name| !name.is_empty()).unwrap_or_else(|| default_name(&path));
    let mut remark = |message: String, hint: &str| {
        diagnostics.push(Diagnostic::warning(KIND, message).at(&path).hint(hint));
    };
    if !is_portable(&name) {
        let message = format!("the name \"{name}\" is not one that all agents take");
        remark(message, "use 1 to 64 of a-z, 0-9 and single hyphens between them");
    }
    let length = description.chars().count();
    if length > MAX_DESCRIPTION {
        let message = format!(
            "the description is {length} characters long; not all agents take more than {MAX_DESCRIPTION}"
        );
        remark(message, "make it shorter");
    }
    Some(Skill { name, description, only_by_user: attributes.disable_model_invocation, file: path, source })
}

const EXAMPLE: &str = "begin it with lines of ---, \"description: what it does and when to use it\", and ---";

fn unused(path: &Path, message: &str) -> Diagnostic {
    Diagnostic::warning(KIND, message).level(DiagnosticLevel::Error).at(path).line(1)
}

/// The name of its folder; for a file that is no `SKILL.md`, that of the file.
fn default_name(path: &Path) -> String {
    let is_skill_file = path.file_name().is_some_and(|name| name == SKILL_FILE);
    let name = if is_skill_file { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn is_portable(name: &str) -> bool {
    let letters = name.bytes().all(|letter| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    let hyphens = !name.starts_with('-') && !name.ends_with('-') && !name.contains("--");
    (1..=MAX_NAME).contains(&name.len()) && letters && hyphens
}
