//! The verdicts about some seventeen hundred shell commands. Nothing that is to be asked or refused is ever allowed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::{collections::BTreeMap, path::Path};

use agentd_policy::{Policy, PolicyOptions, RuleLayer, RuleSource, Subject};
use agentd_protocol::settings::{PermissionAction, PermissionSettings};
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    permissions: PermissionSettings,
    cwd: String,
    home: String,
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    command: String,
    action: PermissionAction,
    category: String,
}

#[test]
fn verdicts() {
    let table: Table = serde_json::from_str(include_str!("shell-commands.json")).unwrap();
    let policy = Policy::new(PolicyOptions {
        preset: table.permissions.preset.unwrap_or_default(),
        project_preset: None,
        layers: vec![RuleLayer {
            source: RuleSource::User,
            rules: table.permissions.rules.unwrap_or_default(),
        }],
        cwd: table.cwd.clone().into(),
        home: table.home.into(),
    })
    .unwrap();
    let (mut needless, mut wrong, mut counts) =
        (Vec::new(), Vec::new(), BTreeMap::<PermissionAction, usize>::new());
    for Example { command, action, category } in &table.examples {
        *counts.entry(*action).or_default() += 1;
        let subject = Subject::Command { text: command, folder: Path::new(&table.cwd), variables: &[] };
        let found = policy.decide("bash", subject);
        let line = format!("{category}: {command:?} is {} ({})", found.action.as_str(), found.reason);
        match (action, found.action) {
            (wanted, found) if *wanted == found => {}
            (PermissionAction::Allow, PermissionAction::Ask) => needless.push(line),
            (wanted, _) => wrong.push(format!("{line}, wanted {}", wanted.as_str())),
        }
    }
    println!(
        "{} commands, {counts:?}, {} needless asks:\n{}",
        table.examples.len(),
        needless.len(),
        needless.join("\n")
    );
    assert!(table.examples.len() >= 400);
    assert!(wrong.is_empty(), "{} wrong verdicts:\n{}", wrong.len(), wrong.join("\n"));
}
