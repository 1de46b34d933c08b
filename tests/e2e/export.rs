//! Export of a session as an HTML page: `export_html`, `agentd --export`, `agentctl export --format html`.

use std::{fs, path::Path, process::Output};

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, binaries, ctl, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, both};

fn export(home: &Home, args: &[&str]) -> Output {
    home.command(binaries::agentd()).arg("--export").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The default name of the page of a session file.
fn page_name(session: &Path) -> String {
    format!("pi-session-{}.html", session.file_stem().unwrap().to_str().unwrap())
}

/// A home with a session that holds a prompt and this answer.
fn talked(answer: &str) -> Home {
    let server = MockServer::always(Reply::stream(sse::answer(answer)));
    let home = Home::with_model(&server);
    Daemon::start(&home, &[]).prompt("What is <this>?");
    home
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_session_becomes_a_page_and_stays_as_it_is() {
    both(&[Reply::stream(sse::answer("A **test**."))], &[], |home, _, client| {
        client.say("What is <this>?");
        let session = home.session_files().pop().unwrap();
        let before = fs::read(&session).unwrap();
        let name = page_name(&session);
        assert_eq!(client.done(json!({"type": "export_html"})), json!({"path": name}));
        let page = home.read(&name);
        assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("</html>\n"), "{page}");
        assert_says(&page, &["<title>What is &lt;this&gt;?</title>", "<p>A <strong>test</strong>.</p>"]);
        assert_eq!(client.done(json!({"type": "export_html", "outputPath": ""})), json!({"path": name}));

        home.write("sub/page.html", "old");
        for path in ["sub/page.html".to_owned(), home.project().join("other.html").display().to_string()] {
            assert_eq!(
                client.done(json!({"type": "export_html", "outputPath": path})),
                json!({"path": path})
            );
        }
        assert_eq!((home.read("sub/page.html"), home.read("other.html")), (page.clone(), page));
        assert_eq!(names(&home.project().join("sub")), ["page.html"]);
        assert_eq!(fs::read(&session).unwrap(), before);
    });
}

#[test]
fn a_run_goes_on_while_its_session_is_exported() {
    let gate = Gate::new();
    let server = MockServer::always(Reply::stream(sse::text("half")).gate(&gate).then(sse::answer("whole")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "Take your time."}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "half");
    daemon.done(json!({"type": "export_html", "outputPath": "early.html"}));
    let page = home.read("early.html");
    assert_says(&page, &["Take your time."]);
    assert!(!page.contains("half"), "what is not finished is not in the session yet");
    gate.open();
    daemon.settled();
    daemon.done(json!({"type": "export_html", "outputPath": "late.html"}));
    assert_says(&home.read("late.html"), &["whole"]);
}

#[test]
fn what_cannot_be_exported_is_said() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let refused = |daemon: &mut Daemon, path: Value, code: &str, error: &str| {
        let refused = daemon.refused(json!({"type": "export_html", "outputPath": path}));
        assert_eq!(refused["code"], code, "{refused}");
        assert_says(refused["error"].as_str().unwrap(), &[error]);
        refused["hint"].as_str().unwrap_or_default().to_owned()
    };
    let mut memory = Daemon::start(&home, &["--no-session"]);
    memory.prompt("Hi");
    let hint = refused(&mut memory, json!(null), "unsupported", "Cannot export in-memory session to HTML");
    assert_says(&hint, &["--no-session"]);

    let mut daemon = Daemon::start(&home, &[]);
    refused(&mut daemon, json!(null), "unsupported", "Nothing to export yet - start a conversation first");
    daemon.prompt("Hi");
    let hint = refused(&mut daemon, json!("no/such/a.html"), "io", "no/such/a.html: there is no folder");
    assert_says(&hint, &["Make the folder first"]);
    let folder = home.project().display().to_string();
    refused(&mut daemon, json!(folder), "io", &format!("cannot export to {folder}: it is a folder"));
    refused(&mut daemon, json!("/dev/full"), "io", "/dev/full: it is no regular file");
    refused(&mut daemon, json!(5), "invalid_field", "outputPath");
    assert_eq!(names(&home.project()), [] as [String; 0], "nothing is left behind");
}

#[test]
fn an_observer_writes_no_files() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.prompt("Hi");
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    observer.done(json!({"type": "attach_session", "sessionId": opened["sessionId"]}));
    assert_eq!(observer.refused(json!({"type": "export_html"}))["code"], "forbidden");
}

#[test]
fn the_daemon_exports_a_file_and_ends() {
    let home = talked("Here.");
    let session = home.session_files().pop().unwrap();
    let path = session.display().to_string();
    let done = export(&home, &[&path, "talk.html"]);
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(0), "Exported to: talk.html\n"), "{done:?}");
    let page = home.read("talk.html");
    assert_says(&page, &["What is &lt;this&gt;?", "<p>Here.</p>"]);

    let by_itself = export(&home, &[&path]);
    let name = page_name(&session);
    assert_eq!(text(&by_itself.stdout), format!("Exported to: {name}\n"));
    assert_eq!(home.read(&name), page);
    assert_eq!(text(&export(&home, &[&path, "-"]).stdout), page);

    let damaged = fs::read_to_string(&session).unwrap() + "{\"type\":\"mess";
    home.write("damaged.jsonl", &damaged);
    let done = export(&home, &["damaged.jsonl", "damaged.html"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_says(text(&done.stderr), &["Warning: odd lines in the session file: 1 torn at the end (skipped)"]);
    assert_says(&home.read("damaged.html"), &["Not everything is here"]);
    assert_eq!(home.read("damaged.jsonl"), damaged, "it is only read");
}

#[test]
fn the_daemon_says_why_it_exports_nothing() {
    let home = talked("Here.");
    let session = home.session_files().pop().unwrap().display().to_string();
    let fails = |args: &[&str], says: &str| {
        let ended = export(&home, args);
        assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(1), ""), "{ended:?}");
        assert_says(text(&ended.stderr), &["Error: ", says]);
    };
    fails(&["none.jsonl"], "none.jsonl");
    fails(&["."], "is not a regular file");
    home.write("notes.txt", "hello\n");
    fails(&["notes.txt"], "not a valid pi session: ");
    fails(&[], "--export needs a session file");
    fails(&[&session, "no/such/a.html"], "there is no folder");
}

#[test]
fn agentctl_exports_pages() {
    let home = talked("Here.");
    let session = home.session_files().pop().unwrap().display().to_string();
    let written = ctl::run(&home, &["export", &session, "-o", "talk.html"]);
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{written:?}");
    assert_says(&written.stderr, &["Written to talk.html."]);
    let page = home.read("talk.html");
    assert_says(&page, &["<!DOCTYPE html>", "<p>Here.</p>"]);
    let again = ctl::run(&home, &["export", &session, "-o", "talk.html"]);
    assert_eq!(again.code, 2, "{again:?}");
    let piped = ctl::run(&home, &["export", &session, "--format", "html"]);
    assert_eq!((piped.code, piped.stdout), (0, page));

    home.write("notes.jsonl", "hello\n");
    let failed = ctl::run(&home, &["export", "notes.jsonl", "-o", "notes.html"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_says(&failed.stderr, &["not a valid pi session"]);
    assert!(!home.project().join("notes.html").exists());
    let nowhere = ctl::run(&home, &["export", &session, "-o", "no/such/a.html"]);
    assert_eq!(nowhere.code, 1, "{nowhere:?}");
    assert_says(&nowhere.stderr, &["cannot write no/such/a.html"]);
}

#[test]
fn agentctl_exports_what_is_only_in_memory() {
    let server = MockServer::always(Reply::stream(sse::answer("Only here.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let opened = client
        .done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true, "name": "A & B"}));
    client.prompt("Keep nothing.");
    let page = ctl::run(&home, &["export", opened["sessionId"].as_str().unwrap(), "--format", "html"]);
    assert_eq!(page.code, 0, "{page:?}");
    assert_says(&page.stdout, &["<title>A &amp; B</title>", "Keep nothing.", "<p>Only here.</p>"]);
}
