//! `skill://`, `rule://`, `local://` and `artifact://` in `read`, on the real binaries.

use std::os::unix::fs::symlink;

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, ended, text};

/// A home with a skill, a rule and a secret.
fn home(model: &MockServer) -> Home {
    let home = Home::with_model(model);
    home.write_agent(
        "skills/notes/SKILL.md",
        "---\nname: notes\ndescription: Release notes\n---\nGroup by area.\n",
    );
    home.write_agent("skills/notes/references/areas.md", "one\ntwo\nthree\nfour\nfive\n");
    home.write_agent(
        "skills/hidden/SKILL.md",
        "---\nname: hidden\ndescription: d\ndisable-model-invocation: true\n---\nx\n",
    );
    symlink("/etc/passwd", home.agent_dir().join("skills/notes/link.md")).unwrap();
    home.write(".agentd/rules/react.md", "---\ndescription: React\n---\nUse functions.\n");
    home
}

/// Has the model read each of these paths; the results.
fn read(client: &mut Daemon, model: &MockServer, paths: &[&str]) -> Vec<Value> {
    let ids: Vec<String> = (0..paths.len()).map(|at| format!("c{at}")).collect();
    let calls: Vec<(&str, &str, Value)> =
        ids.iter().zip(paths).map(|(id, path)| (id.as_str(), "read", json!({"path": path}))).collect();
    model.push(Reply::stream(sse::calls(&calls)));
    model.push(Reply::stream(sse::answer("Ok.")));
    ended(&client.prompt("Go."), "toolResult").into_iter().cloned().collect()
}

#[test]
fn skills_and_rules_are_read_by_their_names() {
    let model = MockServer::start([]);
    let home = home(&model);
    let mut client = Daemon::start(&home, &["--no-session"]);
    let paths = [
        "skill://notes",
        "skill://notes/references/areas.md",
        "skill://notes/references/areas.md:2-3",
        "skill://notes/references/areas.md:1,4+2",
        "rule://react",
    ];
    let results = read(&mut client, &model, &paths);
    let texts: Vec<String> = results.iter().map(text).collect();
    assert_says(&texts[0], &["Group by area."]);
    assert_eq!(texts[1], "one\ntwo\nthree\nfour\nfive\n");
    assert_says(&texts[2], &["two\nthree"]);
    assert!(!texts[2].contains("four") && !texts[2].contains("one"), "{}", texts[2]);
    assert_says(&texts[3], &["one", "…", "four\nfive"]);
    assert!(!texts[3].contains("two"), "{}", texts[3]);
    assert_eq!(texts[4], "Use functions.");
}

#[test]
fn what_is_not_there_or_leads_out_is_refused_by_name() {
    let model = MockServer::start([]);
    let home = home(&model);
    let mut client = Daemon::start(&home, &["--no-session"]);
    for (path, says) in [
        ("skill://nots", &["Unknown skill: nots. There are: notes."][..]),
        ("skill://hidden", &["Unknown skill: hidden."]),
        ("rule://vue", &["Unknown rule: vue. There are: react."]),
        ("skill://notes/../hidden/SKILL.md", &["leads out of the skill's folder"]),
        ("skill://notes/link.md", &["leads out of the skill's folder"]),
        ("skill://notes/none.md", &["skill://notes/none.md is not there"]),
        ("local://none.md:3", &["Not found: local://none.md"]),
        ("artifact://0123abcd:50-100", &["Artifact not found: 0123abcd"]),
        (
            "issue://12",
            &[
                "Unknown URL scheme: issue://. read knows agent://, artifact://, history://, local://, mcp://, rule://, skill://.",
            ],
        ),
    ] {
        let result = read(&mut client, &model, &[path]).remove(0);
        assert_eq!(result["isError"], true, "{path}: {result}");
        assert_says(&text(&result), says);
    }
    // They cannot be written.
    model.push(Reply::stream(sse::calls(&[(
        "w",
        "write",
        json!({"path": "skill://notes", "content": "x"}),
    )])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = client.prompt("Go.");
    assert_says(&text(ended(&events, "toolResult")[0]), &["skill://notes is read-only."]);
}
