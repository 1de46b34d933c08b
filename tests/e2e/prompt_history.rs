//! The prompt history on the real binaries: what is recorded, found, deleted, and by whom.

use std::{fs, os::unix::fs::PermissionsExt};

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, ctl, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, prompt};

fn answering() -> (MockServer, Home) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    (server, home)
}

fn entries(home: &Home, args: &[&str]) -> Vec<Value> {
    let found = ctl::run(home, &[&["history", "--json", "-n", "1000"], args].concat());
    let list: Value =
        serde_json::from_str(&found.stdout).unwrap_or_else(|error| panic!("{error}: {found:?}"));
    list["entries"].as_array().unwrap().clone()
}

fn prompts(home: &Home, args: &[&str]) -> Vec<String> {
    entries(home, args).iter().map(|entry| entry["prompt"].as_str().unwrap().to_owned()).collect()
}

fn kept(home: &Home, name: &str) -> String {
    fs::read_to_string(home.agent_dir().join(name)).unwrap()
}

/// Ends the daemon that `agentctl` has started in a home.
struct Down<'a>(&'a Home);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        // One that does not run is fine.
        let _ = ctl::run(self.0, &["down", "--abort"]);
    }
}

#[test]
fn what_the_user_sends_is_found_over_all_sessions() {
    let (_server, home) = answering();
    let _down = Down(&home);
    let before = prompts(&home, &[]);
    assert_eq!(before, [] as [&str; 0]);
    // Nothing is there before something is recorded.
    assert!(!home.agent_dir().join("prompt-history.jsonl").exists());
    home.write("notes.txt", "the content of the file\n");
    for args in [
        &["prompt", "Fix the  parser. \n"][..],
        &["prompt", "@notes.txt", "Read my notes."],
        &["prompt", " a secret"],
        &["prompt", "--no-session", "Leaves no trace."],
        &["prompt", "Fix the  parser."],
    ] {
        let asked = ctl::run(&home, args);
        assert_eq!(asked.code, 0, "{asked:?}");
    }
    let piped = ctl::run_with_input(&home, &["prompt", "What is this?"], "piped in\n");
    assert_eq!(piped.code, 0, "{piped:?}");
    assert_eq!(prompts(&home, &[]), ["What is this?", "Fix the  parser.", "Read my notes."]);
    assert_eq!(prompts(&home, &["NOTES", "rea"]), ["Read my notes."]);
    let found = &entries(&home, &["parser"])[0];
    assert_eq!(found["useCount"], 2);
    assert_eq!(found["cwd"], json!(home.project()));
    let sessions: Value = serde_json::from_str(&ctl::run(&home, &["ls", "--json"]).stdout).unwrap();
    let ids: Vec<&Value> =
        sessions["sessions"].as_array().unwrap().iter().map(|session| &session["id"]).collect();
    assert!(ids.contains(&&found["sessionId"]), "{ids:?} {found}");
    assert!(found["createdAt"].as_i64().unwrap() > 1_700_000_000_000);
    assert_eq!(prompts(&home, &["--here", "notes"]).len(), 1);
    let mode = fs::metadata(home.agent_dir().join("prompt-history.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Lines for a program, and words for a person.
    let piped = ctl::run(&home, &["history", "parser"]);
    let fields: Vec<&str> = piped.stdout.trim_end().split('\t').collect();
    assert_eq!((fields.len(), fields[2], fields[5]), (6, "2", "Fix the  parser."), "{piped:?}");
    let nothing = ctl::run(&home, &["history", "zebra"]);
    assert_eq!((nothing.code, nothing.stderr.as_str()), (1, "No prompt fits.\n"));
    // Deleting.
    let id = found["id"].as_str().unwrap();
    let deleted = ctl::run(&home, &["history", "--delete", id]);
    assert_eq!((deleted.code, deleted.stderr.as_str()), (0, "Deleted 1 prompt.\n"));
    assert_says(&ctl::run(&home, &["history", "--delete", id]).stderr, &["No prompt has the id"]);
    assert_eq!(prompts(&home, &[]).len(), 2);
    assert_says(&ctl::run(&home, &["history", "--delete-all"]).stderr, &["--yes"]);
    assert_eq!(ctl::run(&home, &["history", "--delete-all", "--yes"]).stderr, "Deleted 2 prompts.\n");
    assert_eq!(kept(&home, "prompt-history.jsonl"), "");
}

#[test]
fn messages_for_a_run_at_work_count_and_refused_ones_do_not() {
    let gate = Gate::new();
    let slow = Reply::stream(sse::text("First, "))
        .gate(&gate)
        .then(sse::text("done.") + &sse::end("stop", (1, 0, 1)));
    let server =
        MockServer::start([slow, Reply::stream(sse::answer("Ok.")), Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Begin."));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    daemon.done(json!({"type": "steer", "message": "Not that way."}));
    daemon.done(json!({"type": "follow_up", "message": "And then?"}));
    assert_says(
        &complaint(&daemon.refused(json!({"type": "prompt", "message": "Refused."}))),
        &["already processing"],
    );
    gate.open();
    daemon.settled();
    assert_eq!(daemon.close().status.code(), Some(0));
    assert_eq!(prompts(&home, &[]), ["And then?", "Not that way.", "Begin."]);
}

#[test]
fn it_can_be_switched_off_by_the_user_alone() {
    let (_server, home) = answering();
    let _down = Down(&home);
    assert_eq!(ctl::run(&home, &["prompt", "Before."]).code, 0);
    home.settings(&json!({"promptHistory": {"enabled": false}}));
    assert_eq!(ctl::run(&home, &["prompt", "After."]).code, 0);
    assert_eq!(prompts(&home, &[]), ["Before."]);
}

#[test]
fn agents_observers_and_commands_of_sessions_have_no_part_in_it() {
    let (_server, home) = answering();
    let _down = Down(&home);
    let service = Service::start(&home, &[]);
    let mut agent = service.client();
    agent.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "agent": true}}));
    agent.done(json!({"type": "open_session", "cwd": home.project()}));
    agent.prompt("By an agent.");
    let mut user = service.client();
    user.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    user.done(json!({"type": "open_session", "cwd": home.project()}));
    user.prompt("By the user.");
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    for command in [json!({"type": "search_history"}), json!({"type": "delete_history", "all": true})] {
        assert_says(&complaint(&observer.refused(command)), &["observe"]);
    }
    for wrong in
        [json!({"type": "delete_history"}), json!({"type": "delete_history", "entryId": "x", "all": true})]
    {
        assert_says(&complaint(&user.refused(wrong)), &["either an id"]);
    }
    let found = user.done(json!({"type": "search_history", "limit": 1}));
    assert_eq!(found["entries"][0]["prompt"], "By the user.");
    assert_eq!(prompts(&home, &[]), ["By the user."]);
}

/// A prompt is answered whatever is wrong with the history.
#[test]
fn a_damaged_history_goes_aside_and_one_that_cannot_be_written_harms_no_prompt() {
    let (_server, home) = answering();
    let _down = Down(&home);
    home.write_agent(
        "prompt-history.jsonl",
        "{\"prompt\":\"kept\",\"createdAt\":5}\nno JSON\n\"from an older client\"\n{\"prompt\":\"cut",
    );
    assert_eq!(ctl::run(&home, &["prompt", "New."]).code, 0);
    assert_eq!(prompts(&home, &[]), ["New.", "from an older client", "kept"]);
    assert_says(&kept(&home, "prompt-history.damaged.jsonl"), &["no JSON"]);
    let file = home.agent_dir().join("prompt-history.jsonl");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(ctl::run(&home, &["prompt", "Still answered."]).code, 0);
    let refused = ctl::run(&home, &["history"]);
    assert_says(&refused.stderr, &["prompt-history.jsonl", "cannot be used"]);
}

#[test]
fn daemons_side_by_side_lose_no_prompt() {
    const EACH: usize = 12;
    let (_server, home) = answering();
    let _down = Down(&home);
    let mut daemons: Vec<Daemon> = (0..3).map(|_| Daemon::start(&home, &[])).collect();
    for number in 0..EACH {
        for (which, daemon) in daemons.iter_mut().enumerate() {
            daemon.send(&prompt(&format!("prompt {number} of {which}")));
        }
        daemons.iter_mut().for_each(|daemon| drop(daemon.settled()));
    }
    for daemon in daemons {
        assert_eq!(daemon.close().status.code(), Some(0));
    }
    let found = prompts(&home, &[]);
    assert_eq!(found.len(), 3 * EACH);
    for number in 0..EACH {
        for which in 0..3 {
            assert!(found.contains(&format!("prompt {number} of {which}")), "{found:?}");
        }
    }
}

/// A program that the session starts is not the user.
#[test]
fn a_command_of_a_session_neither_adds_nor_reads() {
    let (server, home) = answering();
    let service = Service::start(&home, &[]);
    let mut user = service.client();
    user.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    user.done(json!({"type": "open_session", "cwd": home.project()}));
    let agentctl = agentd_e2e::binaries::agentctl();
    let command = format!("{} history 2>&1; true", agentctl.display());
    let ran = user.done(json!({"type": "bash", "command": command}));
    let output = ran["output"].as_str().unwrap();
    assert!(output.contains("search_history"), "{output}");
    drop(server);
}
