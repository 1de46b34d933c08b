//! The settings files: of the user and of the project.

use std::path::Path;

use agentd_config::{read_json, settings};
use agentd_protocol::doctor::Check;
use serde_json::Value;

use super::{
    diagnose::{Found, show},
    finding::{Name, counted, first_aid},
};
use crate::admin::Context;

const SETTINGS: Name = Name("settings", "settings");

/// One check for each file, and one for each value that is not used.
pub(super) fn check(context: &Context, found: &Found) -> Vec<Check> {
    let user = found.agent_dir.settings_file();
    let project = found.settings.folders.find("settings.json");
    let mut checks = vec![file(&user, "")];
    if let Some(project) = &project {
        let note = if found.settings.trust.trusted {
            ""
        } else {
            "; not used, since this folder is not trusted (--approve)"
        };
        checks.push(file(project, note));
    }
    // A broken file has its line already.
    let is_broken = |warning: &str| {
        checks.iter().any(|check| {
            check.status != agentd_protocol::doctor::CheckStatus::Ok && warning.contains(&check.detail)
        })
    };
    // The values of a project are worth knowing before it is trusted.
    let all = settings::load(&found.agent_dir, &context.cwd, &context.environment, Some(true));
    let mut warnings = all.warnings;
    warnings.extend(found.settings.trust.warning.clone());
    warnings.dedup();
    let values: Vec<Check> = warnings
        .iter()
        .filter(|warning| !is_broken(warning))
        .map(|warning| {
            let detail = warning.strip_prefix("settings: ").unwrap_or(warning);
            SETTINGS.warning(detail, "Correct the value or remove it.")
        })
        .collect();
    checks.extend(values);
    checks
}

fn file(path: &Path, note: &str) -> Check {
    let until = "Until then it is not used, and nothing is saved to it.";
    match read_json(path) {
        Ok(None) => SETTINGS.ok(format!("no {}: the defaults count", show(path))),
        Ok(Some(document)) => match document.value {
            Value::Object(values) => {
                SETTINGS.ok(format!("{}: {}{note}", show(path), counted(values.len(), "setting")))
            }
            _ => SETTINGS.problem(
                format!("{}: expected an object", show(path)),
                format!("Repair the file or remove it. {until}"),
            ),
        },
        Err(error) => SETTINGS.problem(error.to_string(), format!("{} {until}", first_aid(&error))),
    }
}
