//! The law of verdicts about any text: for fuzz targets (`fuzz/` in the repository), and for the tests that repeat known inputs. Only
//! with the feature `fuzzing`; no part of the interface.

use std::path::Path;

use agentd_protocol::settings::{PermissionAction, PermissionPreset, PermissionRule};

use crate::{Policy, PolicyDecision, PolicyOptions, RuleLayer, RuleSource, Subject};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[("shell_commands", shell_commands)];

/// A folder that is not there.
const FOLDER: &str = "/nowhere/project";

/// Verdicts become no laxer with a stricter preset. A command that runs first is in the verdict whatever follows it, and a rule that
/// refuses it is never passed over. A rule that a verdict suggests can be used.
pub fn shell_commands(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let presets = [
        PermissionPreset::Full,
        PermissionPreset::Workspace,
        PermissionPreset::Ask,
        PermissionPreset::ReadOnly,
    ];
    let mut least = PermissionAction::Allow;
    for preset in presets {
        let policy = policy(preset, Vec::new());
        let found = decide(&policy, &text);
        assert!(strictness(found.action) >= strictness(least), "{preset:?}: {text}: {}", found.reason);
        least = found.action;
        if let Some(rule) = found.suggestion {
            assert_eq!(found.action, PermissionAction::Ask);
            assert!(policy.with_session_rule(rule.clone()).is_ok(), "{text}: {rule:?}");
        }
    }
    let first = format!("unknown-program x\n{text}");
    let asked = decide(&policy(PermissionPreset::Workspace, Vec::new()), &first);
    assert_ne!(asked.action, PermissionAction::Allow, "{first}");
    let refusing = PermissionRule {
        tool: "bash".into(),
        command: Some("unknown-program *".into()),
        path: None,
        domain: None,
        action: PermissionAction::Deny,
        reason: None,
    };
    let refused = decide(&policy(PermissionPreset::Full, vec![refusing]), &first);
    assert_ne!(refused.action, PermissionAction::Allow, "{first}");
}

fn strictness(action: PermissionAction) -> u8 {
    match action {
        PermissionAction::Allow => 0,
        PermissionAction::Ask => 1,
        PermissionAction::Deny => 2,
    }
}

fn decide(policy: &Policy, text: &str) -> PolicyDecision {
    policy.decide("bash", Subject::Command { text, folder: Path::new(FOLDER), variables: &[] })
}

fn policy(preset: PermissionPreset, rules: Vec<PermissionRule>) -> Policy {
    let options = PolicyOptions {
        preset,
        project_preset: None,
        layers: vec![RuleLayer { source: RuleSource::User, rules }],
        cwd: FOLDER.into(),
        folders: Vec::new(),
        home: "/nowhere".into(),
    };
    match Policy::new(options) {
        Ok(policy) => policy,
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}

#[test]
fn the_law_holds_for_the_table() {
    let table: serde_json::Value =
        serde_json::from_str(include_str!("../tests/shell-commands.json")).unwrap();
    let commands = table["examples"].as_array().unwrap().iter().map(|example| example["command"].as_str());
    commands.for_each(|command| shell_commands(command.unwrap().as_bytes()));
}
