//! Failing disks and interrupted writes: files are the old or the new ones, a run ends with file and reason, and the
//! daemon and its other sessions live on.

use std::{fs, path::Path, time::Instant};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, records, text};

/// System errors: the name at a fail point, and the text in a message.
const ERRORS: [(&str, &str); 5] = [
    ("enospc", "No space left on device"),
    ("eio", "Input/output error"),
    ("erofs", "Read-only file system"),
    ("eacces", "Permission denied"),
    ("emfile", "Too many open files"),
];

fn daemon(home: &Home, args: &[&str], faults: &str) -> Daemon {
    Daemon::start_with(home, args, |command| {
        command.env("AGENTD_FAIL_POINTS", faults);
    })
}

/// The messages whose end was reported, and the failure.
fn prompt(daemon: &mut Daemon, message: &str) -> (Vec<String>, Option<String>) {
    let events = daemon.prompt(message);
    let mut told = Vec::new();
    let mut failure = None;
    for event in &events {
        if event["success"] == json!(false) {
            failure = Some(complaint(event));
        }
        let message = &event["message"];
        if event["type"] != "message_end" {
            continue;
        }
        match message["errorMessage"].as_str() {
            Some(error) => failure = Some(error.to_owned()),
            None if message["role"] != "system" => told.push(text(message)),
            None => {}
        }
    }
    (told, failure)
}

fn stored(file: &Path) -> Vec<String> {
    let messages = records(file).into_iter().filter(|record| record["type"] == "message");
    messages
        .map(|record| record["message"].clone())
        .filter(|it| it["role"] != "system")
        .map(|it| text(&it))
        .collect()
}

/// Every reported message is in the file, in that order.
#[track_caller]
fn assert_stored(file: &Path, told: &[String]) {
    let stored = stored(file);
    let mut rest = stored.iter();
    for text in told {
        assert!(rest.any(|it| it == text), "{text:?} was told and is not there: {stored:?}");
    }
}

/// Sends prompts until one fails, and then another.
fn outlive(faults: &str, reason: &str, settings: &Value) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.settings(settings);
    let mut daemon = daemon(&home, &[], faults);
    let mut told = Vec::new();
    let mut failed = None;
    for at in 0..4 {
        let (said, failure) = prompt(&mut daemon, &format!("Prompt {at}."));
        told.extend(said);
        if let Some(failure) = failure {
            failed = Some(failure);
            break;
        }
    }
    let failed = failed.unwrap_or_else(|| panic!("{faults}: nothing failed"));
    assert_says(&failed, &[".jsonl", reason]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false, "{faults}");
    let (said, failure) = prompt(&mut daemon, "And on.");
    assert_eq!(failure, None, "{faults}: the fault is over");
    told.extend(said);
    let file = home.session_files()[0].clone();
    assert_stored(&file, &told);
    // Another session of the same daemon works.
    daemon.done(json!({"type": "new_session"}));
    assert_eq!(prompt(&mut daemon, "Elsewhere.").1, None, "{faults}");
    assert!(daemon.close().status.success());
    assert_stored(&file, &told);
    assert_eq!(home.session_files().len(), 2, "{faults}");
}

#[test]
fn each_error_ends_one_run_and_nothing_else() {
    for (error, reason) in ERRORS {
        outlive(&format!("store.append@3:{error}"), reason, &json!({}));
    }
}

#[test]
fn wherever_a_write_fails_nothing_that_was_acknowledged_is_lost() {
    for at in [1, 2, 4, 5] {
        outlive(&format!("store.append@{at}:enospc"), ERRORS[0].1, &json!({}));
    }
    // Half of an entry is written, and the truncation fails, too.
    outlive("store.append@3:short,store.append@4:enospc,store.cut@1:eio", ERRORS[0].1, &json!({}));
    outlive("store.create@1:eacces", ERRORS[3].1, &json!({}));
}

#[test]
fn a_failed_sync_is_a_failed_write() {
    for at in [1, 2, 3] {
        outlive(&format!("store.sync@{at}:eio"), ERRORS[1].1, &json!({"durability": "fsync"}));
    }
}

#[test]
fn a_session_that_cannot_be_opened_says_why_and_stays_as_it_is() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut one = daemon(&home, &[], "");
    one.prompt("One.");
    assert!(one.close().status.success());
    let file = home.session_files()[0].clone();
    let before = fs::read(&file).unwrap();
    for (error, reason) in ERRORS {
        let mut other = daemon(&home, &["--no-session"], &format!("store.open@1:{error}"));
        let open = json!({"type": "switch_session", "sessionPath": file.display().to_string()});
        let refused = other.refused(open.clone());
        assert_says(&complaint(&refused), &[&file.display().to_string(), reason]);
        other.done(open);
        drop(other);
        assert_eq!(fs::read(&file).unwrap(), before, "{error}");
    }
}

#[test]
fn a_file_that_goes_away_takes_no_more_and_the_next_session_works() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = daemon(&home, &[], "");
    // The file is removed, replaced, or gone with its folder.
    for way in 0..3 {
        daemon.prompt("One.");
        let state = daemon.done(json!({"type": "get_state"}));
        let file = std::path::PathBuf::from(state["sessionFile"].as_str().expect("a file"));
        match way {
            0 => fs::remove_file(&file).unwrap(),
            1 => {
                fs::write(file.with_extension("new"), "theirs\n").unwrap();
                fs::rename(file.with_extension("new"), &file).unwrap();
            }
            _ => fs::remove_dir_all(file.parent().unwrap()).unwrap(),
        }
        let (_, failure) = prompt(&mut daemon, "Two.");
        let failure = failure.unwrap_or_else(|| panic!("{way}: nothing failed"));
        assert_says(&failure, &[&file.display().to_string(), "was removed while the session was open"]);
        if way == 1 {
            assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n", "what is theirs stays");
            fs::remove_file(&file).unwrap();
        }
        daemon.done(json!({"type": "new_session"}));
    }
    assert_eq!(prompt(&mut daemon, "Still here?").1, None);
}

#[cfg(unix)]
#[test]
fn an_open_session_goes_on_when_its_permissions_are_taken_away() {
    use std::os::unix::fs::PermissionsExt;
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = daemon(&home, &[], "");
    daemon.prompt("One.");
    let file = home.session_files()[0].clone();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).unwrap();
    let (told, failure) = prompt(&mut daemon, "Two.");
    assert_eq!(failure, None);
    assert!(daemon.close().status.success());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    assert_stored(&file, &told);
}

#[test]
fn a_full_disk_keeps_no_session_from_being_read() {
    let server = MockServer::start([Reply::stream(sse::answer("Kept."))]);
    let home = Home::with_model(&server);
    let mut before = daemon(&home, &[], "");
    before.prompt("Go.");
    assert!(before.close().status.success());
    let mut full = daemon(&home, &["--continue", "--name", "new"], "store.append@1+:enospc");
    let messages = full.done(json!({"type": "get_messages"}));
    assert!(messages.to_string().contains("Kept."));
    let found = full.done(json!({"type": "get_diagnostics"}));
    assert_says(&found.to_string(), &["goes on with could not be stored", "No space left on device"]);
    assert!(full.close().status.success());
}

fn result(call: &str, messages: &Value) -> Option<String> {
    let messages = messages.as_array().expect("messages");
    let mut results = messages.iter().filter(|message| message["toolCallId"] == call);
    let found = results.next().map(text);
    assert_eq!(results.next(), None, "one result for {call}");
    found
}

/// Two calls run at once; the first result meets a full disk for four attempts.
#[test]
fn results_that_the_disk_does_not_take_are_stored_when_there_is_room() {
    let calls =
        [("c1", "bash", json!({"command": "echo first"})), ("c2", "bash", json!({"command": "echo second"}))];
    let server =
        MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("All is well."))]);
    let home = Home::with_model(&server);
    // Three appends store the messages before; then come a result, its immediate retry, and the retries before the next
    // prompt and at the end.
    let full = "store.append@4:enospc,store.append@5:enospc,store.append@6:enospc,store.append@7:enospc";
    let mut daemon = daemon(&home, &[], full);
    let (_, failure) = prompt(&mut daemon, "Go.");
    assert_says(&failure.expect("a failure"), &[".jsonl", ERRORS[0].1]);
    let refused = daemon.refused(json!({"type": "prompt", "message": "Still full."}));
    assert_says(&complaint(&refused), &["has to be stored first", ".jsonl", ERRORS[0].1]);
    let begin = daemon.done(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let refused = daemon.refused(json!({"type": "navigate_tree", "entryId": begin}));
    assert_says(&complaint(&refused), &["has to be stored first", ERRORS[0].1]);
    let events = daemon.prompt("Now.");
    let file = &home.session_files()[0];
    let messages: Value = records(file).into_iter().map(|it| it["message"].clone()).collect();
    let stored =
        ["c1", "c2"].map(|call| result(call, &messages).unwrap_or_else(|| panic!("{call}: {messages}")));
    assert!(stored.contains(&"first\n".to_owned()) || stored.contains(&"second\n".to_owned()), "{stored:?}");
    assert!(!stored.iter().any(|text| text.contains("crash")), "{stored:?}");
    // Their events follow once they are stored, and the request to the model holds them.
    let told: Value =
        events.iter().filter(|it| it["type"] == "message_end").map(|it| it["message"].clone()).collect();
    assert_eq!(["c1", "c2"].map(|call| result(call, &told).unwrap()), stored);
    let asked = server.requests()[1].body.to_string();
    assert!(asked.contains("Now.") && !asked.contains("Still full."), "{asked}");
    assert!(daemon.close().status.success());
    assert!(!file.with_extension("ledger").exists());
}

/// Two calls run at once, and the disk stays full for as long as the daemon lives.
#[test]
fn results_that_the_disk_never_took_are_stored_by_the_next_daemon() {
    let call = [("c1", "bash", json!({"command": "echo first"}))];
    let server = MockServer::always(Reply::stream(sse::calls(&call)));
    for end in ["killed", "closed"] {
        let home = Home::with_model(&server);
        let mut full = daemon(&home, &[], "store.append@4+:enospc");
        assert_says(&prompt(&mut full, "Go.").1.expect("a failure"), &[ERRORS[0].1]);
        let file = &home.session_files()[0];
        assert!(file.with_extension("ledger").exists(), "{end}");
        if end == "killed" {
            full.signal(rustix::process::Signal::KILL);
            full.wait();
        } else {
            assert!(full.close().status.success());
        }
        let mut next = daemon(&home, &["--continue"], "");
        let messages = next.done(json!({"type": "get_messages"}))["messages"].clone();
        assert_says(&result("c1", &messages).expect("a result"), &["it may have run"]);
        assert!(next.close().status.success());
        assert!(!file.with_extension("ledger").exists(), "{end}");
    }
}

#[test]
fn a_result_of_the_users_that_the_disk_does_not_take_is_stored_when_there_is_room() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = daemon(&home, &[], "store.append@4:enospc,store.append@5:enospc");
    daemon.prompt("One.");
    let run = |command: &str| json!({"type": "bash", "command": command});
    daemon.done(run("echo kept"));
    let refused = daemon.refused(run("echo refused"));
    assert_says(&complaint(&refused), &["has to be stored first", ERRORS[0].1]);
    assert_eq!(prompt(&mut daemon, "Two.").1, None);
    let file = &home.session_files()[0];
    let messages = records(file).into_iter().map(|it| it["message"].clone());
    let told: Vec<String> = messages
        .filter_map(|it| match it["role"].as_str()? {
            "user" => Some(text(&it)),
            "bashExecution" => Some(it["output"].to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["One.", "\"kept\\n\"", "Two."]);
    assert!(daemon.close().status.success());
    assert!(!file.with_extension("ledger").exists());
}

/// The longest wait of the next writer, in seconds, on a loaded machine. A lock that nobody releases is taken over after
/// 30 seconds.
const AT_ONCE: u64 = 15;

/// The file of the agent directory as JSON.
fn read(home: &Home, name: &str) -> Value {
    let text = fs::read_to_string(home.agent_dir().join(name)).expect("the file is there");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// Files in the agent directory that nothing uses.
fn left_over(home: &Home) -> Vec<String> {
    let names = fs::read_dir(home.agent_dir()).expect("the agent directory").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".tmp") || name.ends_with(".json.lock")).collect()
}

/// Sends a command that kills the daemon at a fail point.
fn die_of(home: &Home, armed: &str, command: &Value) {
    let mut daemon = Daemon::start_with(home, &["--no-session"], |start| {
        start.env("AGENTD_FAIL_POINTS", armed);
    });
    daemon.send(command);
    let ended = daemon.wait();
    assert_eq!(ended.status.code(), None, "{armed}: {ended:?}");
    assert!(ended.rest.iter().all(|line| line["type"] != "response"), "{armed}: {ended:?}");
}

#[test]
fn a_kill_at_any_step_leaves_the_old_or_the_new() {
    let steps = ["write", "write:torn", "rename"];
    let cases = [
        (
            "settings",
            json!({"type": "set_auto_retry", "enabled": false}),
            json!({"retry": {"enabled": true}}),
            json!({"retry": {"enabled": false}}),
        ),
        (
            "auth",
            json!({"type": "login", "provider": "openai", "key": "new-key"}),
            json!({"openai": {"type": "api_key", "key": "old-key"}}),
            json!({"openai": {"type": "api_key", "key": "new-key"}}),
        ),
    ];
    for (file, command, old, new) in cases {
        let home = Home::new();
        let name = format!("{file}.json");
        home.write_agent(&name, &old.to_string());
        for step in steps {
            let (place, action) = step.split_once(':').unwrap_or((step, "kill"));
            die_of(&home, &format!("{file}.{place}:{action}"), &command);
            assert_eq!(read(&home, &name), old, "{file}.{step}");
        }
        // Three daemons died; the next one does not wait, and removes what they left.
        let begun = Instant::now();
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        daemon.done(command);
        assert!(begun.elapsed().as_secs() < AT_ONCE, "{file}: {:?}", begun.elapsed());
        assert_eq!(read(&home, &name), new);
        assert_eq!(left_over(&home), [""; 0], "{file}");
    }
}
