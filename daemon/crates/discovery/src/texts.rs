//! Readers of the kinds that are texts, as most tools have them.

use std::path::Path;

use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
use agentd_stream_rules::StreamRules;
use serde_json::Value;

use crate::{
    item::Item,
    rules::Rule,
    scan::{Document, Scan},
};

/// The characters of a first line that describe a command without a description.
const FIRST_LINE: usize = 60;

/// The file that makes its folder a skill.
const SKILL_FILE: &str = "SKILL.md";

/// How a tool says which rules always apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleForm {
    /// By `alwaysApply`; a rule without it, without `globs` and without a description is not used.
    Plain,
    /// Without `globs` or `paths`, a rule always applies.
    AlwaysWithoutGlobs,
    /// By `trigger`: `always_on`, `glob`, `model_decision` or `manual`.
    Trigger,
    /// By `applyTo`, whose globs may be all files.
    ApplyTo,
}

/// Returns whether a name is that of a Markdown file.
pub(crate) fn is_markdown(name: &str) -> bool {
    name.ends_with(".md")
}

/// Returns whether a name is that of a rule in the form of Cursor, or a Markdown file.
pub(crate) fn is_rule(name: &str) -> bool {
    name.ends_with(".md") || name.ends_with(".mdc")
}

/// The rules of a folder.
pub(crate) fn rules(
    scan: &mut Scan<'_>,
    folder: &Path,
    level: CapabilityLevel,
    form: RuleForm,
    below: bool,
    accepts: &dyn Fn(&str) -> bool,
) {
    let kind = if form == RuleForm::ApplyTo && scan.provider_id() == "native" {
        CapabilityKind::Instructions
    } else {
        CapabilityKind::Rules
    };
    for path in scan.files(folder, level, below, accepts) {
        let Some(document) = scan.document(&path, level, true) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = [".instructions.md", ".mdc", ".md"].iter().find_map(|end| name.strip_suffix(end));
        let name = name.unwrap_or_default().to_owned();
        rule_of(scan, scan.item(kind, name, &path, level), document, form);
    }
}

/// A rule that always applies and has no front matter, such as `.cursorrules`.
pub(crate) fn always(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel, name: &str) {
    if !scan.is_file(path) {
        return;
    }
    let Some(document) = scan.document(path, level, true) else { return };
    let mut item = scan.item(CapabilityKind::Rules, name, path, level);
    item.fields = document.fields;
    item.fields.insert("alwaysApply".to_owned(), Value::Bool(true));
    item.no_effect = document.body.is_empty().then_some("the file is empty");
    scan.add(item);
}

/// Adds a rule, with `alwaysApply` and `globs` as its tool means them.
fn rule_of(scan: &mut Scan<'_>, mut item: Item, document: Document, form: RuleForm) {
    item.fields = document.fields;
    for key in ["question", "astCondition"] {
        if item.fields.contains_key(key) {
            scan.note(&item.path, format!("\"{key}\" has no effect: only \"condition\" is watched for"));
        }
    }
    match form {
        RuleForm::Plain => {}
        RuleForm::AlwaysWithoutGlobs => {
            let paths = item.list("paths");
            if !paths.is_empty() {
                item.fields.insert("globs".to_owned(), paths.into());
            } else if item.list("globs").is_empty() && item.flag("alwaysApply").is_none() {
                item.fields.insert("alwaysApply".to_owned(), Value::Bool(true));
            }
        }
        RuleForm::Trigger => {
            let glob = item.list("glob");
            if item.list("globs").is_empty() && !glob.is_empty() {
                item.fields.insert("globs".to_owned(), glob.into());
            }
            let always = match item.text("trigger") {
                Some(trigger) => trigger == "always_on",
                None => item.list("globs").is_empty() && item.text("description").is_none(),
            };
            item.fields.entry("alwaysApply").or_insert(Value::Bool(always));
        }
        RuleForm::ApplyTo => {
            let globs = item.list("applyTo");
            if globs.iter().any(|glob| matches!(glob.as_str(), "*" | "**" | "**/*")) {
                item.fields.insert("alwaysApply".to_owned(), Value::Bool(true));
            } else if globs.is_empty() {
                if item.text("description").is_none() {
                    scan.warn(
                        &item.path,
                        "\"applyTo\" is missing: it says which files the instructions are for",
                    );
                }
            } else {
                item.fields.insert("globs".to_owned(), globs.into());
            }
        }
    }
    item.description = item.text("description").map(str::to_owned);
    if document.body.is_empty() {
        item.no_effect = Some("the file has no text");
    }
    let rule = Rule::of(&item);
    if rule.can_be_watched() {
        for problem in StreamRules::new(vec![rule.stream_text(String::new())]).1 {
            scan.warn(&item.path, format!("the rule {}: {}", item.name, problem.problem));
        }
    }
    scan.add(item);
}

/// The skills of a folder: its folders with a `SKILL.md`.
pub(crate) fn skills(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    for folder in scan.folders(folder, level) {
        let path = folder.join(SKILL_FILE);
        if !scan.is_file(&path) {
            continue;
        }
        let Some(document) = scan.document(&path, level, true) else { continue };
        let of_folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut item = scan.item(CapabilityKind::Skills, of_folder, &path, level);
        item.fields = document.fields;
        if let Some(name) = item.text("name").map(str::to_owned) {
            rename(&mut item, name);
        }
        item.description = item.text("description").map(str::to_owned);
        if item.description.is_none() {
            item.no_effect = Some("the front matter has no description");
        }
        scan.add(item);
    }
}

/// How the commands of a tool are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandNames {
    /// By their files, or by `name` of the front matter.
    OfFile,
    /// By their files; one in a folder also with the folder before it: `a/b.md` is `b` and `a:b`.
    WithFolders,
}

/// The commands of a folder.
pub(crate) fn commands(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel, names: CommandNames) {
    let below = names == CommandNames::WithFolders;
    for path in scan.files(folder, level, below, &is_markdown) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let above = path.strip_prefix(folder).ok().and_then(Path::parent).filter(|it| *it != Path::new(""));
        let Some(item) = prompt(scan, CapabilityKind::SlashCommands, &path, level, stem.clone()) else {
            continue;
        };
        if item.fields.contains_key("allowedTools") {
            scan.note(&path, "\"allowed-tools\" has no effect: agentd asks as its permissions say");
        }
        if let Some(above) = above {
            let mut qualified = item.clone();
            let folders: Vec<_> = above.iter().map(|part| part.to_string_lossy()).collect();
            rename(&mut qualified, format!("{}:{stem}", folders.join(":")));
            scan.add(qualified);
        }
        scan.add(item);
    }
}

/// The prompt templates of a folder.
pub(crate) fn prompts(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel, ending: &str) {
    let accepts = |name: &str| name.len() > ending.len() && name.ends_with(ending);
    for path in scan.files(folder, level, false, &accepts) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.strip_suffix(ending).unwrap_or(&name).to_owned();
        let item = prompt(scan, CapabilityKind::Prompts, &path, level, name);
        item.into_iter().for_each(|item| scan.add(item));
    }
}

/// A text that the user sends by its name. `name` of the front matter counts where a tool has it so.
fn prompt(
    scan: &mut Scan<'_>,
    kind: CapabilityKind,
    path: &Path,
    level: CapabilityLevel,
    name: String,
) -> Option<Item> {
    let document = scan.document(path, level, true)?;
    let mut item = scan.item(kind, name, path, level);
    item.fields = document.fields;
    let own_name = item.text("name").filter(|_| matches!(scan.provider_id(), "codex" | "opencode"));
    if let Some(name) = own_name.map(str::to_owned) {
        rename(&mut item, name);
    }
    item.description = item.text("description").map(str::to_owned).or_else(|| first_line(&document.body));
    if document.body.is_empty() {
        item.no_effect = Some("the file has no text");
    } else if item.name.contains(char::is_whitespace) {
        item.no_effect = Some("its name has a space, so that it cannot be called");
    }
    Some(item)
}

fn rename(item: &mut Item, name: String) {
    item.id = format!("{}:{name}", item.kind.id_prefix());
    item.key.clone_from(&name);
    item.name = name;
}

fn first_line(body: &str) -> Option<String> {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(match line.char_indices().nth(FIRST_LINE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    })
}

/// The definitions of agents in a folder.
pub(crate) fn agents(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel, below: bool) {
    for path in scan.files(folder, level, below, &is_markdown) {
        let Some(document) = scan.document(&path, level, true) else { continue };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut item = scan.item(CapabilityKind::Agents, stem, &path, level);
        item.fields = document.fields;
        // Other Markdown lies in such folders, too.
        let Some(name) = item.text("name").map(str::to_owned) else {
            if !item.fields.is_empty() {
                scan.warn(&path, "the front matter has no \"name\"; the agent is not used");
            }
            continue;
        };
        rename(&mut item, name);
        item.description = item.text("description").map(str::to_owned);
        if matches!(item.name.as_str(), "main" | "sub") {
            item.no_effect = Some("the name is taken by agentd");
        } else if item.description.is_none() {
            item.no_effect = Some("the front matter has no description");
        } else if document.body.is_empty() {
            item.no_effect = Some("the file has no text");
        }
        scan.add(item);
    }
}

/// A context file, if it is there.
pub(crate) fn context(scan: &mut Scan<'_>, path: &Path, distance: Option<usize>, level: CapabilityLevel) {
    if scan.is_file(path) {
        let item = scan.context(path, distance, level);
        scan.add(item);
    }
}

/// Files that are listed by their names and that agentd does not run.
pub(crate) fn listed(
    scan: &mut Scan<'_>,
    folder: &Path,
    level: CapabilityLevel,
    kind: CapabilityKind,
    endings: &[&str],
) {
    let accepts = |name: &str| endings.iter().any(|ending| name.ends_with(ending));
    for path in scan.files(folder, level, false, &accepts) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut item = scan.item(kind, stem, &path, level);
        item.no_effect = Some(LISTED_ONLY);
        scan.add(item);
    }
}

/// Why a file that agentd has no use for does not count.
pub(crate) const LISTED_ONLY: &str = "listed only: agentd does not run it";
