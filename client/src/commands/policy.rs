//! `agentctl policy check` and `agentctl policy test`: what the permissions make of calls.

use std::{fs, io, path::Path};

use agentd_protocol::{
    policy_check::{PolicyCheckRequest, PolicyExample, PolicyVerdict},
    settings::{PermissionAction, PermissionPreset, PermissionRule},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::ask_agentd;
use crate::{
    cli::{PolicyCheckOptions, PolicyTestOptions},
    exit::{Exit, Fault, conclude},
    output,
    render::{counted, one_line},
};

/// A file of rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    rules: Vec<PermissionRule>,
}

pub(crate) fn check(options: &PolicyCheckOptions) -> Exit {
    conclude(checked(options))
}

pub(crate) fn test(options: &PolicyTestOptions) -> Exit {
    conclude(tested(options))
}

fn checked(options: &PolicyCheckOptions) -> Result<Exit, Fault> {
    let rules = match &options.rules {
        Some(file) => read::<RulesFile>(file)?.rules,
        None => Vec::new(),
    };
    let request = PolicyCheckRequest {
        cwd: options.cwd.as_deref().map(folder).transpose()?,
        preset: options.permissions.as_deref().and_then(PermissionPreset::named),
        rules,
        examples: vec![PolicyExample {
            command: Some(options.command.join(" ")),
            ..PolicyExample::default()
        }],
        ..PolicyCheckRequest::default()
    };
    let verdicts = judge(&request)?;
    let Some(verdict) = verdicts.first() else {
        return Err(Fault::new(Exit::NoDaemon, "agentctl: agentd gave no verdict"));
    };
    let printed =
        if options.json { output::print_json(verdict)? } else { output::print(&explained(verdict))? };
    Ok(match (printed, verdict.action) {
        (Exit::Answered, PermissionAction::Ask) => Exit::Asks,
        (Exit::Answered, PermissionAction::Deny) => Exit::Denied,
        (printed, _) => printed,
    })
}

fn tested(options: &PolicyTestOptions) -> Result<Exit, Fault> {
    let request: PolicyCheckRequest = read(&options.file)?;
    if request.examples.is_empty() {
        return Err(Fault::new(
            Exit::Failed,
            format!("Error: {}: \"examples\" is missing or empty.", options.file.display()),
        ));
    }
    let verdicts = judge(&request)?;
    let (mut text, mut wrong) = (String::new(), 0);
    for (number, (example, verdict)) in request.examples.iter().zip(&verdicts).enumerate() {
        let Some(wanted) = example.action else {
            return Err(Fault::new(
                Exit::Failed,
                format!(
                    "Error: {}: example {} has no \"action\": allow, ask or deny.",
                    options.file.display(),
                    number + 1
                ),
            ));
        };
        if wanted != verdict.action {
            wrong += 1;
            let what = example.command.as_deref().or(example.path.as_deref()).or(example.tool.as_deref());
            text.push_str(&format!(
                "{}: wanted {}, is {}: {}\n",
                one_line(what.unwrap_or_default()),
                wanted.as_str(),
                verdict.action.as_str(),
                one_line(&verdict.reason)
            ));
        }
    }
    let all = counted(request.examples.len(), "example");
    text.push_str(&match wrong {
        0 => format!("{all}: every verdict is the one wanted.\n"),
        wrong => format!("{all}: {wrong} with another verdict.\n"),
    });
    let printed = output::print(&text)?;
    Ok(if printed == Exit::Answered && wrong > 0 { Exit::Failed } else { printed })
}

fn judge(request: &PolicyCheckRequest) -> Result<Vec<PolicyVerdict>, Fault> {
    let mut verdicts = Vec::with_capacity(request.examples.len());
    let mut take = |verdict: PolicyVerdict| {
        verdicts.push(verdict);
        Ok::<(), io::Error>(())
    };
    ask_agentd::lines("--policy-check", request, Exit::Failed, &mut take)?.map_err(|error| {
        Fault::new(Exit::NoDaemon, format!("agentctl: agentd's verdict cannot be read: {error}"))
    })?;
    Ok(verdicts)
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T, Fault> {
    let shown = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| Fault::new(Exit::Failed, format!("Error: {shown}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Fault::new(Exit::Failed, format!("Error: {shown}: {error}")))
}

fn folder(path: &Path) -> Result<String, Fault> {
    let path = std::path::absolute(path)
        .map_err(|error| Fault::usage(format!("Error: --cwd {}: {error}", path.display())))?;
    Ok(path.display().to_string())
}

/// The verdict, its reason, and the commands that were found.
fn explained(verdict: &PolicyVerdict) -> String {
    let mut text = format!("{}: {}\n", verdict.action.as_str(), one_line(&verdict.reason));
    for command in &verdict.parsed {
        let parts: Vec<&str> =
            command.words.iter().chain(&command.redirections).map(String::as_str).collect();
        text.push_str(&format!("  {}\n", one_line(&parts.join(" "))));
    }
    text
}
