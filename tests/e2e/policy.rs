//! `agentctl policy`: verdicts without a session.

use std::fs;

use agentd_e2e::{Home, binaries, ctl};
use serde_json::{Value, json};

use crate::support::assert_says;

/// A home without models: nothing is asked of any.
fn home(permissions: &Value) -> Home {
    let home = Home::new();
    home.settings(&json!({ "permissions": permissions }));
    home
}

fn check(home: &Home, args: &[&str]) -> (i32, String) {
    let ran = ctl::run(home, &[&["policy", "check"], args].concat());
    (ran.code, if ran.stdout.is_empty() { ran.stderr } else { ran.stdout })
}

#[test]
fn verdicts_have_exit_codes_and_reasons() {
    let home = home(&json!({}));
    for (preset, command, code, says) in [
        ("workspace", "git log | head -3", 0, "allow: the preset workspace allows commands that only look"),
        ("workspace", "cargo build", 7, "ask: the preset workspace asks about running cargo"),
        ("workspace", "echo x > /etc/passwd", 7, "ask: the preset workspace asks about writing /etc/passwd"),
        ("read-only", "cargo build", 6, "deny: the preset read-only refuses running cargo"),
        ("ask", "ls", 7, "ask: the preset ask asks about commands that only look"),
        ("full", "rm -rf /", 0, "allow: the preset full allows"),
        ("full", "eval \"$X\"; LD_PRELOAD=x sudo ls", 0, "allow: the preset full allows everything"),
    ] {
        let (found, text) = check(&home, &["--permissions", preset, "--", command]);
        assert_eq!(found, code, "{preset}: {command}: {text}");
        assert!(text.starts_with(says), "{preset}: {command}: {text}");
    }
    let (code, text) = check(&home, &["--permissions", "lax", "--", "ls"]);
    assert_eq!(code, 2);
    assert_says(&text, &["lax", "read-only, ask, workspace, full"]);
    assert_eq!(check(&home, &["--permissions", "full"]).0, 2, "no command");
}

#[test]
fn the_settings_count_and_rules_of_a_file_besides() {
    let home = home(&json!({ "preset": "full", "rules": [
        { "tool": "bash", "command": "git push *", "action": "ask", "reason": "it goes out" },
    ] }));
    let rules = home.project().join("rules.json");
    fs::write(
        &rules,
        json!({ "rules": [{ "tool": "bash", "command": "rm *", "action": "deny" }] }).to_string(),
    )
    .unwrap();
    let rules = rules.to_str().unwrap();
    let (code, text) =
        check(&home, &["--json", "--rules", rules, "--", "cd x && git push origin 'a b' > log"]);
    assert_eq!(code, 7);
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["action"], "ask");
    assert_eq!(found["reason"], "rule 1 of the setting permissions.rules asks about it: it goes out");
    assert_eq!(
        found["rule"],
        json!({ "source": "user", "number": 1, "tool": "bash", "command": "git push *", "action": "ask", "reason": "it goes out" })
    );
    assert_eq!(
        found["parsed"],
        json!([
            { "words": ["cd", "x"], "redirections": [] },
            { "words": ["git", "push", "origin", "a b"], "redirections": ["> log"] },
        ])
    );
    let (code, text) = check(&home, &["--json", "--rules", rules, "--", "git push; sh -c 'rm x'"]);
    assert_eq!(
        (code, &serde_json::from_str::<Value>(&text).unwrap()["rule"]["source"]),
        (6, &json!("flags"))
    );

    fs::write(
        rules,
        json!({ "rules": [{ "tool": "bash", "command": "ls; rm", "action": "deny" }] }).to_string(),
    )
    .unwrap();
    let (code, text) = check(&home, &["--rules", rules, "--", "ls"]);
    assert_eq!(code, 1);
    assert_says(&text, &["rule 1: command must be the words of one simple command"]);
    fs::write(rules, r#"{"rules": [{"tool": "bash", "comand": "ls", "action": "deny"}]}"#).unwrap();
    let (code, text) = check(&home, &["--rules", rules, "--", "ls"]);
    assert_eq!(code, 1);
    assert_says(&text, &["rules.json", "unknown field `comand`"]);
}

#[test]
fn files_of_examples_are_compared() {
    let home = home(&json!({}));
    let table = binaries::workspace().join("daemon/crates/policy/tests/shell-commands.json");
    let ran = ctl::run(&home, &["policy", "test", table.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "needless asks are told: {}", ran.stderr);
    let wrong: Vec<&str> = ran.stdout.lines().filter(|line| line.contains(": wanted ")).collect();
    assert!(wrong.iter().all(|line| line.contains("wanted allow, is ask")), "{wrong:?}");

    let file = home.project().join("test.json");
    let example = |action: &str| {
        json!({ "permissions": { "preset": "workspace", "rules": [{ "tool": "read", "path": "~/.ssh/**", "action": "deny" }] },
            "home": "/h", "examples": [
                { "tool": "read", "path": "/h/.ssh/id", "action": action },
                { "tool": "read", "path": "~/.ssh/id", "action": "deny" },
                { "tool": "mcp__x", "action": "ask" },
                { "tool": "write", "path": "a.txt", "action": "allow" },
            ] })
        .to_string()
    };
    fs::write(&file, example("deny")).unwrap();
    let ran = ctl::run(&home, &["policy", "test", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "4 examples: every verdict is the one wanted.\n"));
    fs::write(&file, example("allow")).unwrap();
    let ran = ctl::run(&home, &["policy", "test", file.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert_says(
        &ran.stdout,
        &["/h/.ssh/id: wanted allow, is deny: rule 1", "4 examples: 1 with another verdict."],
    );
}

#[test]
fn a_trusted_projects_policy_counts_and_unknown_keys_are_refused() {
    let home = home(&json!({}));
    home.settings(&json!({ "defaultProjectTrust": "always" }));
    home.write(
        ".agentd/policy.json",
        &json!({ "preset": "workspace", "rules": [{ "tool": "bash", "command": "ls *", "action": "deny" }] })
            .to_string(),
    );
    let (code, text) = check(&home, &["--", "ls -l"]);
    assert_eq!(code, 6, "{text}");
    assert_says(&text, &["rule 1 of .agentd/policy.json refuses it"]);
    assert_eq!(check(&home, &["--permissions", "full", "--", "cargo build"]).0, 7, "the stricter preset");
    home.settings(&json!({ "defaultProjectTrust": "never" }));
    assert_eq!(check(&home, &["--", "ls -l"]).0, 0, "without trust it does not count");

    home.settings(&json!({ "defaultProjectTrust": "always" }));
    home.write(".agentd/policy.json", "{\"rule\": []}");
    let (code, text) = check(&home, &["--", "ls"]);
    assert_eq!(code, 1);
    assert_says(&text, &["policy.json cannot be used", "unknown field `rule`"]);

    home.settings(&json!({ "permissions": { "preset": "lax" } }));
    let (code, text) = check(&home, &["--", "ls"]);
    assert_eq!(code, 1);
    assert_says(&text, &["permissions cannot be used", "lax"]);

    let file = home.project().join("test.json");
    for wrong in [r#"{"exampels": []}"#, r#"{"examples": [{"comand": "ls", "action": "allow"}]}"#] {
        fs::write(&file, wrong).unwrap();
        let ran = ctl::run(&home, &["policy", "test", file.to_str().unwrap()]);
        assert_eq!(ran.code, 1);
        assert_says(&ran.stderr, &["test.json", "unknown field"]);
    }
}
