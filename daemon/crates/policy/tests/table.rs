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
        folders: Vec::new(),
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

#[test]
fn commands_are_listed_with_those_that_they_start() {
    let preset = PermissionSettings::default().preset.unwrap_or_default();
    let policy = Policy::new(PolicyOptions {
        preset,
        project_preset: None,
        layers: Vec::new(),
        cwd: "/project".into(),
        folders: Vec::new(),
        home: "/home/me".into(),
    })
    .unwrap();
    for (text, wanted) in [
        ("git log > out | wc -l", vec!["git log > out", "wc -l"]),
        ("sh -c 'rm x; ls'", vec!["sh -c rm x; ls", "rm x", "ls"]),
        ("sudo nice rm x", vec!["sudo nice rm x", "nice rm x", "rm x"]),
        ("env A=b ls", vec!["env A=b ls", "A=… ls"]),
        ("env -S 'ls -l'; pwd", vec!["env -S ls -l", "env ls -l", "ls -l", "pwd"]),
        ("find . -exec rm {} \\;", vec!["find . -exec rm {} ;", "rm {}"]),
        ("ls | xargs sh -c 'npm i'", vec!["ls", "xargs sh -c npm i", "sh -c npm i …", "npm i"]),
        ("echo $(date)", vec!["date", "echo $(date)"]),
    ] {
        let subject = Subject::Command { text, folder: Path::new("/project"), variables: &[] };
        let parsed = policy.decide("bash", subject).parsed;
        let lines =
            parsed.into_iter().map(|command| [command.words, command.redirections].concat().join(" "));
        assert_eq!(lines.collect::<Vec<_>>(), wanted, "{text}");
    }
}
