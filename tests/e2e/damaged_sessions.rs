//! Damaged session files: opened as far as they are readable, reported place by place, repaired in a copy, and never
//! overwritten; a file that another program truncates while its session is open.

use std::{
    fs::{self, OpenOptions},
    path::Path,
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::{
    support::{assert_says, text},
    unload::gone,
};

/// A closed session file with three prompts and their answers.
fn session(home: &Home) -> std::path::PathBuf {
    let mut daemon = Daemon::start(home, &[]);
    for prompt in ["One.", "Two.", "Three."] {
        daemon.prompt(prompt);
    }
    assert!(daemon.close().status.success());
    home.session_files()[0].clone()
}

fn found(daemon: &mut Daemon) -> Vec<Value> {
    let data = daemon.done(json!({"type": "get_diagnostics"}));
    let all = data["diagnostics"].as_array().expect("a list").clone();
    all.into_iter().filter(|it| it["kind"] == "session").collect()
}

fn said(messages: &[Value]) -> Vec<String> {
    messages.iter().filter(|it| it["role"] != "system").map(text).collect()
}

/// Changes the lines of the file, and returns the new content.
fn damage(file: &Path, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Vec<u8> {
    let text = fs::read(file).unwrap();
    let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    let text = lines.join(&b'\n');
    fs::write(file, &text).unwrap();
    text
}

fn line_of(file: &Path, needle: &str) -> usize {
    let text = fs::read_to_string(file).unwrap();
    text.lines().position(|line| line.contains(needle)).expect("the line")
}

#[test]
fn a_damaged_file_goes_on_behind_the_gap_and_each_place_is_named() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let file = session(&home);
    let lost = line_of(&file, "Two.");
    // A block of zeros replaces a line, and the end is torn.
    let text = damage(&file, |lines| {
        lines[lost] = vec![0; lines[lost].len()];
        let end = lines.len() - 1;
        lines[end] = b"{\"type\":\"message\",\"id\":\"to".to_vec();
    });
    let byte = text.iter().position(|byte| *byte == 0).unwrap();

    let mut daemon = Daemon::start(&home, &["--continue"]);
    let told = found(&mut daemon);
    assert_eq!(told.len(), 3, "{told:#?}");
    assert_eq!((&told[0]["line"], &told[0]["byte"]), (&json!(lost + 1), &json!(byte)));
    assert_says(told[0]["message"].as_str().unwrap(), &["zeros", "were skipped"]);
    assert_says(told[1]["message"].as_str().unwrap(), &["follows one that is not there"]);
    assert_says(told[2]["message"].as_str().unwrap(), &["the last line is torn"]);
    for it in &told {
        assert_eq!((&it["path"], &it["level"]), (&json!(file.display().to_string()), &json!("warning")));
        assert_says(it["hint"].as_str().unwrap(), &["agentctl fsck"]);
    }
    daemon.prompt("Four.");
    let request = server.requests().pop().unwrap();
    assert_eq!(
        said(request.messages()),
        ["One.", "Ok.", "Ok.", "Three.", "Ok.", "Four."],
        "what stands before the gap is still part of the conversation"
    );
    let stderr = daemon.close().stderr;
    assert_says(&stderr, &["Warning: ", "zeros stand in the place of text", "agentctl fsck"]);
    // The old bytes are unchanged; new entries follow on a line of their own.
    let now = fs::read(&file).unwrap();
    assert!(now.starts_with(&text) && now[text.len()] == b'\n');
}

#[test]
fn fsck_says_where_and_repairs_in_a_copy() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let file = session(&home);
    let path = file.to_str().unwrap();
    let checked = ctl::run(&home, &["fsck", path]);
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""), "{checked:?}");
    assert_says(&checked.stdout, &[path, ": ok, "]);
    let last = ctl::run(&home, &["fsck"]);
    assert_eq!((last.code, last.stdout), (0, checked.stdout));
    assert_says(&last.stderr, &["the last one here"]);

    let lost = line_of(&file, "Two.");
    let text = damage(&file, |lines| lines[lost].truncate(20));
    let byte: usize = text.split(|byte| *byte == b'\n').take(lost).map(|line| line.len() + 1).sum();
    let checked = ctl::run(&home, &["fsck", path]);
    assert_eq!(checked.code, 1, "{checked:?}");
    let place = format!("line {}, byte {byte}, 20 bytes: the line is no JSON and was skipped", lost + 1);
    assert_says(&checked.stdout, &[": 2 oddities, ", &place, "follows one that is not there"]);
    // A prefix of the id selects one session; no argument selects all.
    let id = file.file_stem().unwrap().to_str().unwrap().split_once('_').unwrap().1.to_owned();
    assert_eq!(ctl::run(&home, &["fsck", &id]).stdout, checked.stdout);
    let all = ctl::run(&home, &["fsck", "--all", "--json"]);
    assert_eq!(all.code, 1);
    let line: Value = serde_json::from_str(all.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&line["state"], &line["id"], &line["kind"]), (&json!("odd"), &json!(id), &json!("session")));
    assert_eq!(
        (&line["oddities"][0]["kind"], &line["oddities"][0]["byte"]),
        (&json!("broken"), &json!(byte))
    );

    let repaired = ctl::run(&home, &["fsck", "--all", "--repair"]);
    assert_eq!(repaired.code, 1, "{repaired:?}");
    let copy = file.with_extension("repaired.jsonl");
    let copy_path = copy.to_str().unwrap();
    assert_says(
        &repaired.stdout,
        &["repaired copy: ", copy_path, "1 left out", "1 linked anew", "1 repaired copy written"],
    );
    assert_eq!(fs::read(&file).unwrap(), text, "the original is never overwritten");
    assert_eq!(ctl::run(&home, &["fsck", copy_path]).code, 0);
    // An existing file is not overwritten.
    let again = ctl::run(&home, &["fsck", path, "--repair"]);
    assert_says(&again.stdout, &["not repaired: ", copy_path, "exists already"]);

    // The repaired copy is a session of its own, listed beside the original, and can be continued.
    let listed = ctl::run(&home, &["sessions", "--json"]).stdout;
    assert_says(&listed, &[&id, copy_path]);
    let mut daemon = Daemon::start(&home, &["--session", copy_path]);
    assert_eq!(found(&mut daemon), Vec::<Value>::new());
    daemon.prompt("Four.");
    let request = server.requests().pop().unwrap();
    assert_eq!(said(request.messages()), ["One.", "Ok.", "Ok.", "Three.", "Ok.", "Four."]);

    // An open session is checked and not repaired.
    let mut bytes = fs::read(&copy).unwrap();
    bytes.extend_from_slice(b"broken\n");
    fs::write(&copy, bytes).unwrap();
    let live = ctl::run(&home, &["fsck", copy_path, "--repair"]);
    let holder = format!("in use by process {}", daemon.id());
    assert_says(&live.stdout, &["the session is open", "not repaired: ", &holder]);
}

#[test]
fn a_session_without_its_header_is_refused_and_can_be_repaired() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let file = session(&home);
    let text = damage(&file, |lines| lines[0] = vec![0; lines[0].len()]);
    let path = file.to_str().unwrap();
    let refused = ctl::feed(ctl::agentd(&home, &["--stdio", "--session", path]), "");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["Session file is not a valid pi session", path]);
    let repaired = ctl::run(&home, &["fsck", path, "--repair"]);
    assert_says(&repaired.stdout, &["no header of a session", "repaired copy: "]);
    assert_eq!(fs::read(&file).unwrap(), text);
    let copy = file.with_extension("repaired.jsonl");
    // Its folder is unknown, so it continues where it was repaired.
    let mut daemon = Daemon::start(&home, &["--session", copy.to_str().unwrap()]);
    daemon.prompt("Four.");
    let request = server.requests().pop().unwrap();
    assert_eq!(said(request.messages()), ["One.", "Ok.", "Two.", "Ok.", "Three.", "Ok.", "Four."]);
}

#[test]
fn marks_and_line_ends_of_editors_are_no_reason_to_refuse() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let file = session(&home);
    let text = format!("\u{feff}{}", fs::read_to_string(&file).unwrap().replace('\n', "\r\n"));
    fs::write(&file, &text).unwrap();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let told = found(&mut daemon);
    assert_eq!(told.iter().map(|it| &it["level"]).collect::<Vec<_>>(), ["info", "info"], "{told:?}");
    daemon.prompt("Four.");
    assert_eq!(daemon.close().stderr, "");
    assert!(fs::read_to_string(&file).unwrap().starts_with(&text));
    let request = server.requests().pop().unwrap();
    assert_eq!(said(request.messages()), ["One.", "Ok.", "Two.", "Ok.", "Three.", "Ok.", "Four."]);
}

#[test]
fn a_file_of_an_old_version_stays_beside_its_successor() {
    let home = Home::new();
    let data = agentd_e2e::binaries::workspace().join("tests/data/sessions/v1.jsonl");
    let text = fs::read_to_string(data).unwrap().replace("/home/user/shop", home.root().to_str().unwrap());
    let file = home.root().join("old.jsonl");
    fs::write(&file, &text).unwrap();
    let mut daemon = Daemon::start(&home, &["--session", file.to_str().unwrap()]);
    let original = home.root().join("old.jsonl.v1.bak");
    let told = found(&mut daemon);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_says(told[0]["message"].as_str().unwrap(), &["format version 1", original.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(original).unwrap(), text);
    assert!(fs::read_to_string(&file).unwrap().contains("\"version\":3"));
}

#[test]
fn files_that_belong_to_no_session_are_named() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let file = session(&home);
    assert_eq!(ctl::run(&home, &["fsck", "--all"]).stdout, "1 file: nothing is odd.\n");
    let folder = file.parent().unwrap();
    fs::write(file.with_extension("ledger"), "{\"a\":1}\n{\"torn").unwrap();
    fs::write(folder.join("2026-01-01T00-00-00-000Z_gone.ledger"), "{}\n").unwrap();
    fs::create_dir(folder.join("2026-01-01T00-00-00-000Z_lost")).unwrap();
    fs::write(folder.join("text.jsonl"), "no session\n").unwrap();
    let all = ctl::run(&home, &["fsck", "--all"]);
    assert_eq!(all.code, 1);
    assert_says(
        &all.stdout,
        &[
            ".ledger: 1 oddity",
            "line 2, byte 8, 6 bytes: the line is no JSON",
            "_gone.ledger: its session is not there",
            "_lost: its session is not there",
            "text.jsonl: Session file is not a valid pi session",
            "5 files: 4 odd.",
        ],
    );
}

/// A session file may have any name; its intent log then has the whole name before its end.
#[test]
fn the_intent_log_of_a_session_with_another_end_is_found() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let file = session(&home);
    let named = file.with_extension("backup");
    fs::rename(&file, &named).unwrap();
    let intent_log = file.with_extension("backup.ledger");
    fs::write(&intent_log, "{\"a\":1}\n{\"torn").unwrap();
    let of_session = ctl::run(&home, &["fsck", named.to_str().unwrap()]);
    assert_says(&of_session.stdout, &[".backup.ledger: 1 oddity", "2 files: 1 odd."]);
    fs::write(&intent_log, "{\"a\":1}\n").unwrap();
    assert_eq!(
        ctl::run(&home, &["fsck", "--all"]).stdout,
        "1 file: nothing is odd.\n",
        "its session is there"
    );
}

/// A session with a prompt and its answer; its id and file.
fn begun(home: &Home, service: &Service) -> (SocketClient, String, String) {
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "args": ["--model", "fake/fake"]}));
    client.prompt("Remember the word apricot.");
    client.prompt("And the word plum.");
    let state = client.done(json!({"type": "get_state"}));
    let text = |name: &str| state[name].as_str().unwrap().to_owned();
    (client, text("sessionId"), text("sessionFile"))
}

fn cut(file: &str, bytes: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(bytes).unwrap();
}

#[test]
fn nothing_is_written_behind_a_cut() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let whole = {
        let (_client, _, file) = begun(&home, &service);
        fs::metadata(file).unwrap().len()
    };
    // Cuts everything, a part of the header, or a part of a later line.
    for bytes in [0, 20, whole - 30] {
        let (mut client, id, file) = begun(&home, &service);
        cut(&file, bytes);
        let left = fs::read(&file).unwrap();
        let asked = server.requests().len();
        client.done(json!({"type": "prompt", "message": "Which word?"}));
        let said = format!("{:?}", client.settled());
        assert_says(&said, &[&file, "was cut by another program"]);
        assert_eq!(server.requests().len(), asked, "no request is sent whose answer could not be stored");
        assert_eq!(fs::read(&file).unwrap(), left, "the file is as it was left");
        // As the hint says: the conversation continues in a copy.
        let done = ctl::run(&home, &["fork", &id]);
        assert_eq!(done.code, 0, "{done:?}");
        let copy =
            home.session_files().into_iter().find(|path| path.to_string_lossy().contains(done.stdout.trim()));
        assert!(fs::read_to_string(copy.unwrap()).unwrap().contains("apricot"), "{bytes}");
        client.done(json!({"type": "clone"}));
        let copy = client.done(json!({"type": "get_state"}))["sessionFile"].as_str().unwrap().to_owned();
        assert_ne!(copy, file);
        assert!(fs::read_to_string(copy).unwrap().contains("plum"), "{bytes}");
        client.prompt("Which words?");
    }
}

/// An unloaded session has only its file.
#[test]
fn a_session_without_a_header_does_not_come_back_as_another() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    for bytes in [0, 20] {
        let (mut client, id, file) = begun(&home, &service);
        gone(&mut watcher, &id);
        cut(&file, bytes);
        let left = fs::read(&file).unwrap();
        let said = client.refused(json!({"type": "prompt", "message": "Which words?"})).to_string();
        assert_says(&said, &[&file, "not a valid"]);
        assert_eq!(fs::read(&file).unwrap(), left, "the file is as it was left");
    }
}
