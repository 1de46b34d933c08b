//! `skill://` and `rule://` in the tool `read`: the skills and rules of the session, by their names.

use std::{
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use agentd_agent::ToolError;
use agentd_config::resources::load_skills;
use agentd_discovery::read_body;
use agentd_tools::{UrlContent, UrlReader};
use tokio_util::sync::CancellationToken;

use crate::context::{ContextLink, SessionContext};

/// Bytes of a file that is read through a URL.
const MAX_BYTES: u64 = 8 << 20;

/// The file of a skill that is a folder.
const SKILL_FILE: &str = "SKILL.md";

/// What a URL names.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Skill,
    Rule,
}

struct ResourceUrls {
    kind: Kind,
    context: ContextLink,
}

/// The readers of the session's own resources.
pub(crate) fn resource_urls(context: &ContextLink) -> Vec<Arc<dyn UrlReader>> {
    let reader = |kind| Arc::new(ResourceUrls { kind, context: context.clone() }) as Arc<dyn UrlReader>;
    vec![reader(Kind::Skill), reader(Kind::Rule)]
}

impl UrlReader for ResourceUrls {
    fn start(&self) -> &str {
        match self.kind {
            Kind::Skill => "skill://",
            Kind::Rule => "rule://",
        }
    }

    fn read<'a>(&'a self, rest: &'a str, _cancel: &'a CancellationToken) -> UrlContent<'a> {
        let (kind, rest) = (self.kind, rest.to_owned());
        Box::pin(async move {
            let context =
                self.context.get().ok_or_else(|| ToolError("The session is being opened.".to_owned()))?;
            let read = move || match kind {
                Kind::Skill => skill(&context, &rest),
                Kind::Rule => rule(&context, &rest),
            };
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|error| Err(error.to_string())).map_err(ToolError)
        })
    }

    fn file(&self, rest: &str) -> Option<PathBuf> {
        match self.kind {
            Kind::Skill => {
                let context = self.context.get()?;
                skill_file(&context, rest).ok().filter(|file| file.is_file())
            }
            // What is shown of a rule is not its file.
            Kind::Rule => None,
        }
    }
}

/// The names that there are, in a sentence.
fn there_are(what: &str, mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    match names.as_slice() {
        [] => format!("This session has no {what}."),
        names => format!("There are: {}.", names.join(", ")),
    }
}

fn skill(context: &SessionContext, rest: &str) -> Result<Vec<u8>, String> {
    content(&skill_file(context, rest)?, rest)
}

/// The file of a skill that a URL names.
fn skill_file(context: &SessionContext, rest: &str) -> Result<PathBuf, String> {
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let mut skills = context.with_resources(&mut Vec::new(), load_skills);
    // The others are for the user to call.
    skills.retain(|skill| !skill.only_by_user);
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        let names = skills.into_iter().map(|skill| skill.name).collect();
        return Err(format!("Unknown skill: {name}. {}", there_are("skills", names)));
    };
    if below.is_empty() {
        return Ok(skill.file.clone());
    }
    let is_folder = skill.file.file_name().is_some_and(|file| file == SKILL_FILE);
    let is_plain = Path::new(below).components().all(|part| matches!(part, Component::Normal(_)));
    let leads_out = || format!("skill://{rest} leads out of the skill's folder");
    if !is_folder || !is_plain || below.contains('\0') {
        return Err(leads_out());
    }
    let folder = skill.folder();
    let real = |path: &Path| path.canonicalize().map_err(|_| format!("skill://{rest} is not there"));
    let (root, file) = (real(folder)?, real(&folder.join(below))?);
    if file.starts_with(&root) { Ok(file) } else { Err(leads_out()) }
}

/// The content of a regular file.
fn content(path: &Path, named: &str) -> Result<Vec<u8>, String> {
    let failed = |problem: String| format!("skill://{named} cannot be read: {problem}");
    let about = path.metadata().map_err(|error| failed(error.to_string()))?;
    if !about.is_file() {
        return Err(failed("it is no file".to_owned()));
    }
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed(format!("it is longer than {MAX_BYTES} bytes; read the file {}", path.display())));
    }
    Ok(bytes)
}

fn rule(context: &SessionContext, name: &str) -> Result<Vec<u8>, String> {
    let capabilities = context.capabilities();
    let Some(rule) = capabilities.rules().find(|rule| rule.item.name == name) else {
        let names = capabilities.rules().map(|rule| rule.item.name.clone()).collect();
        return Err(format!("Unknown rule: {name}. {}", there_are("rules", names)));
    };
    let body = read_body(rule.item, &capabilities.place);
    body.map(String::into_bytes).map_err(|error| format!("rule://{name} cannot be read: {error}"))
}
