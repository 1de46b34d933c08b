//! opencode: `opencode.json`, `.opencode` and `~/.config/opencode`.

use std::path::{Path, PathBuf};

use agentd_protocol::capabilities::{
    CapabilityKind,
    CapabilityLevel::{self, Project, User},
};
use serde_json::{Map, Value};

use crate::{
    scan::Scan,
    servers::{Dialect, add, parsed_object},
    texts::{CommandNames, commands, context, listed, skills},
};

/// The files of the configuration. The second one wins.
const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

/// The files whose contents one configuration takes in.
const MAX_INCLUDED: usize = 20;

pub(super) fn read(scan: &mut Scan<'_>) {
    let project = scan.place.in_cwd("").filter(|_| scan.reads(Project));
    let user = scan.place.in_home(".config/opencode").filter(|_| scan.reads(User));
    let user = user.filter(|folder| scan.is_folder(folder));
    let folder = project.as_ref().map(|cwd| cwd.join(".opencode")).filter(|folder| scan.is_folder(folder));

    if let Some(folder) = &folder {
        below(scan, folder, Project);
    }
    if let Some(folder) = &user {
        context(scan, &folder.join("AGENTS.md"), None, User);
        below(scan, folder, User);
    }
    servers(scan, [(user, User), (project, Project), (folder, Project)]);
}

fn below(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    skills(scan, &folder.join("skills"), level);
    for name in ["commands", "command"] {
        commands(scan, &folder.join(name), level, CommandNames::OfFile);
    }
    for name in ["plugins", "plugin"] {
        listed(scan, &folder.join(name), level, CapabilityKind::ExtensionModules, &[".ts", ".js"]);
    }
}

/// The servers of all configurations, merged; a later file changes the entries of an earlier one. Each is listed with the last file that
/// has it.
fn servers(scan: &mut Scan<'_>, folders: [(Option<PathBuf>, CapabilityLevel); 3]) {
    let mut merged: Vec<(String, Value, PathBuf, CapabilityLevel)> = Vec::new();
    for (folder, level) in folders {
        for path in folder.iter().flat_map(|folder| FILES.map(|name| folder.join(name))) {
            let Some(config) = config(scan, &path, level) else { continue };
            let Some(Value::Object(servers)) = config.get("mcp") else { continue };
            for (name, entry) in servers {
                match merged.iter_mut().find(|(known, ..)| known == name) {
                    Some((_, known, of, of_level)) => {
                        merge_into(known, entry);
                        (*of, *of_level) = (path.clone(), level);
                    }
                    None => merged.push((name.clone(), entry.clone(), path.clone(), level)),
                }
            }
        }
    }
    for (name, entry, path, level) in merged {
        let one: Map<String, Value> = [(name, entry)].into_iter().collect();
        add(scan, &path, level, &Value::Object(one), Dialect::OpenCode);
    }
}

fn merge_into(known: &mut Value, later: &Value) {
    match (known, later) {
        (Value::Object(known), Value::Object(later)) => {
            for (key, value) in later {
                merge_into(known.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (known, later) => *known = later.clone(),
    }
}

/// A configuration with what `{env:NAME}` and `{file:PATH}` stand for.
fn config(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel) -> Option<Map<String, Value>> {
    if !scan.is_file(path) {
        return None;
    }
    let text = scan.text(path, level)?;
    let text = if text.contains("{env:") || text.contains("{file:") {
        filled_in(scan, path, level, &text)
    } else {
        text
    };
    parsed_object(scan, path, &text)
}

/// Puts variables in as `${NAME}`, and files as texts of JSON. A file that is not there is empty; lines that are comments stay.
fn filled_in(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel, text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut included = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("//") {
            result.push_str(line);
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find('{') {
            let (before, after) = rest.split_at(at);
            result.push_str(before);
            let reference = after[1..].split_once('}').and_then(|(inside, behind)| {
                let (kind, value) = inside.split_once(':')?;
                matches!(kind, "env" | "file").then_some((kind, value, behind))
            });
            match reference {
                Some(("env", name, behind)) => {
                    result.push_str(&format!("${{{}:-}}", name.trim()));
                    rest = behind;
                }
                Some((_, file, behind)) => {
                    included += 1;
                    if included <= MAX_INCLUDED {
                        result.push_str(&content(scan, path, level, file.trim()));
                    }
                    rest = behind;
                }
                None => {
                    result.push('{');
                    rest = &after[1..];
                }
            }
        }
        result.push_str(rest);
    }
    result
}

/// The content of a file, as it stands inside of a JSON text. One that a project names is the project's.
fn content(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel, file: &str) -> String {
    let folder = path.parent().unwrap_or(path);
    let file = match (file.strip_prefix("~/"), scan.place.home.as_deref()) {
        (Some(below), Some(home)) => home.join(below),
        _ => folder.join(file),
    };
    if level == Project && !file.starts_with(&scan.place.bounds.root) {
        scan.warn(path, "a file outside of the project is named by {file:…}, and is not read");
        return String::new();
    }
    let text = scan.text(&file, level).unwrap_or_default();
    let quoted = Value::from(text.trim()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
