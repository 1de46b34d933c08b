//! Slash commands of other tools whose texts have shell commands: which run, as whom, and what ends them; on the real binaries.

use std::fs;

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, ctl, processes, sse};
use serde_json::{Value, json};

use crate::{
    asking::option,
    support::{assert_says, text},
};

/// A project with one slash command for Claude Code, and a model that answers.
fn project(command: &str) -> (MockServer, Home) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write(".claude/commands/look.md", command);
    (server, home)
}

/// A client that answers questions.
fn start(home: &Home, args: &[&str]) -> Daemon {
    let mut daemon = Daemon::start(home, args);
    daemon.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "me"}, "capabilities": {"sessions": true, "ui": true},
    }));
    daemon
}

/// What the model was told last.
fn last(server: &MockServer) -> String {
    let requests = server.requests();
    text(requests.last().expect("a request").messages().last().expect("a message"))
}

fn refusal(daemon: &mut Daemon, message: &str) -> Value {
    daemon.refused(json!({"type": "prompt", "message": message}))
}

#[test]
fn outputs_take_the_places_of_commands() {
    let (server, home) = project(
        "---\ndescription: Look\nallowed-tools: Bash(echo:*)\n---\nNow: !`echo one; pwd`, then !`echo $1 >&2; exit 3`.\n\n```!\necho '!`echo no`' \\\n  '$2'\n```\n\n```sh\n!`stays`\n```\nThink of $2 and !` `.",
    );
    let cwd = home.project().canonicalize().expect("the project");
    let mut daemon = start(&home, &["--approve"]);
    daemon.prompt("/look src/main.rs speed");
    assert_eq!(
        last(&server),
        format!(
            "Now: one\n{}, then src/main.rs\n\nCommand exited with code 3.\n\n!`echo no` speed\n\n```sh\n!`stays`\n```\nThink of speed and !` `.",
            cwd.display()
        )
    );
    let odd = refusal(&mut daemon, "/look $(touch${IFS}made) speed");
    assert_eq!(odd["code"], "invalid_field");
    assert_says(
        odd["error"].as_str().expect("an error"),
        &["/look puts its arguments into the shell command `echo $1 >&2; exit 3`"],
    );
    assert!(!home.project().join("made").exists());
    // Messages for a run at work are expanded in the same way.
    daemon.done(json!({"type": "follow_up", "message": "/look a b"}));
    let queued = daemon.done(json!({"type": "clear_queue"}));
    assert_says(&queued.to_string(), &["Now: one", "then a"]);
}

#[test]
fn a_long_output_is_cut() {
    let (server, home) = project("!`seq 1 5000`");
    let mut daemon = start(&home, &["--approve"]);
    daemon.prompt("/look");
    let told = last(&server);
    assert!(told.starts_with("[The last 2000 of 5000 lines. All of it is in "), "{}", &told[..100]);
    assert!(told.ends_with("\n5000"), "{}", &told[told.len() - 100..]);
}

#[test]
fn nothing_of_a_project_runs_before_its_trust_nor_after_a_change() {
    let (server, home) = project("!`touch made; echo ran`");
    let made = home.project().join("made");
    let mut daemon = start(&home, &[]);
    let events = daemon.prompt("/look");
    assert_eq!(last(&server), "!`touch made; echo ran`");
    let notice = events.iter().find(|event| event["method"] == "notify").expect("a notice");
    assert_says(&notice.to_string(), &["/.claude/commands/look.md are not run: the project is not trusted"]);
    assert!(!made.exists());
    drop(daemon);

    let mut daemon = start(&home, &["--approve"]);
    daemon.prompt("/look");
    assert_eq!(last(&server), "ran");
    assert!(made.exists());
    home.write(".claude/commands/look.md", "!`echo changed`");
    let events = daemon.prompt("/look");
    assert_eq!(last(&server), "!`echo changed`");
    let notice = events.iter().find(|event| event["method"] == "notify").expect("a notice");
    assert_says(&notice.to_string(), &["was not trusted with the file as it is now"]);
    drop(daemon);

    // Trust that was saved is for the files as they were: a command that was changed since needs a new answer.
    let trust = json!({(home.project().canonicalize().expect("the project").to_str().expect("UTF-8")): true});
    home.write_agent("trust.json", &trust.to_string());
    let mut daemon = start(&home, &[]);
    daemon.prompt("/look");
    assert_eq!(last(&server), "changed");
    drop(daemon);
    home.write(".claude/commands/look.md", "!`echo again`");
    let mut daemon = start(&home, &["--no-session"]);
    let diagnostics = daemon.done(json!({"type": "get_diagnostics"})).to_string();
    assert_says(&diagnostics, &["look.md"]);
    daemon.prompt("/look");
    assert_eq!(last(&server), "!`echo again`");
    drop(daemon);

    // A text without commands needs no trust.
    home.write(".claude/commands/look.md", "Look `closely`!");
    fs::remove_file(home.agent_dir().join("trust.json")).expect("the file");
    let shown = ctl::run(&home, &["config", "explain", "--kind", "slash-commands"]);
    assert_says(&shown.stdout, &["* look"]);
}

#[test]
fn commands_of_the_user_need_no_trust() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write_agent("commands/mine.md", "!`echo mine`");
    home.write_agent("prompts/template.md", "!`echo no`");
    let mut daemon = start(&home, &[]);
    daemon.prompt("/mine more");
    assert_eq!(last(&server), "mine\n\nmore");
    // pi's own templates are texts.
    daemon.prompt("/template");
    assert_eq!(last(&server), "!`echo no`");
}

#[test]
fn the_permissions_decide() {
    let (server, home) = project("!`touch made`");
    let made = home.project().join("made");
    home.settings(
        &json!({"permissions": {"rules": [{"tool": "bash", "command": "touch *", "action": "deny"}]}}),
    );
    let mut daemon = start(&home, &["--approve"]);
    let refused = refusal(&mut daemon, "/look");
    assert_eq!(refused["code"], "forbidden");
    assert_says(
        refused["error"].as_str().expect("an error"),
        &["`touch made` was not run. Permission denied: rule 1 of the setting permissions.rules refuses it."],
    );
    drop(daemon);

    home.settings(&json!({"permissions": {"preset": "ask"}}));
    let mut daemon = start(&home, &["--approve"]);
    for (answer, runs) in [("No", false), ("Yes", true)] {
        daemon.send(&json!({"id": "p", "type": "prompt", "message": "/look"}));
        let question = daemon.event("extension_ui_request");
        assert_says(&question.to_string(), &["touch made"]);
        let value = option(&question, answer);
        daemon.send(&json!({"type": "extension_ui_response", "id": question["id"], "value": value}));
        let answered = daemon.until("the answer", |line| line["type"] == "response" && line["id"] == "p");
        assert_eq!((&answered["success"], made.exists()), (&json!(runs), runs), "{answered}");
    }
    daemon.settled();
    drop(daemon);

    home.settings(&json!({}));
    fs::remove_file(&made).expect("the file");
    let mut daemon = start(&home, &["--approve", "--plan-mode"]);
    assert_says(refusal(&mut daemon, "/look")["error"].as_str().expect("an error"), &["plan mode refuses"]);
    drop(daemon);
    let mut daemon = start(&home, &["--approve", "--tools", "read,grep"]);
    assert_says(
        refusal(&mut daemon, "/look")["error"].as_str().expect("an error"),
        &["the tool bash is not active in this session"],
    );
    assert!(!made.exists());
    assert_eq!(server.requests().len(), 1, "the model was told of one message alone");
}

#[test]
fn an_abort_kills_what_a_command_started() {
    let (server, home) = project("!`sleep 1000 & echo $$ $! > pipe; wait`");
    let pipe = home.project().join("pipe");
    assert!(home.command("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut daemon = start(&home, &["--approve"]);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "/look"}));
    // Read to its end once the command has written it.
    let said = fs::read_to_string(&pipe).expect("the ids of the processes");
    let ids: Vec<i32> = said.split_whitespace().map(|id| id.parse().expect("an id")).collect();
    let started = processes::watch(&ids);
    daemon.done(json!({"type": "abort"}));
    let answered = daemon.until("the answer", |line| line["type"] == "response" && line["id"] == "p");
    assert_eq!((&answered["success"], &answered["code"]), (&json!(false), &json!("aborted")), "{answered}");
    started.assert_gone_within(DEADLINE);
    assert!(server.requests().is_empty());
    // The session works on.
    home.write(".claude/commands/other.md", "Other.");
    daemon.prompt("/other");
    assert_eq!(last(&server), "Other.");
}
