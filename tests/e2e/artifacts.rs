//! Artifacts: long outputs are kept beside the session file, read by id, and deleted with the session.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, ctl, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, ended, text};

/// Runs a command with a long output in a session; returns the daemon, the server and the result.
fn with_long_output(home: &Home) -> (Daemon, MockServer, Value) {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "seq 1 5000"}))])),
        Reply::stream(sse::answer("Many numbers.")),
    ]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(home, &[]);
    let events = daemon.prompt("Count.");
    let result = ended(&events, "toolResult")[0].clone();
    (daemon, server, result)
}

fn id(result: &Value) -> &str {
    result["details"]["meta"]["artifactId"].as_str().expect("an id")
}

/// The id in the header of the only session file.
fn session_id(home: &Home) -> String {
    let content = fs::read_to_string(&home.session_files()[0]).unwrap();
    let header: Value = serde_json::from_str(content.lines().next().unwrap()).unwrap();
    header["id"].as_str().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_long_output_is_read_again_by_its_id() {
    let home = Home::new();
    let (mut daemon, _server, result) = with_long_output(&home);
    let path = PathBuf::from(result["details"]["fullOutputPath"].as_str().expect("a path"));
    let folder = home.session_files()[0].with_extension("");
    assert_eq!(path, folder.join(format!("{}.bash.log", id(&result))));
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    assert!(text(&result).ends_with(&format!("Full output: {}]", path.display())));

    let whole: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    let part = daemon.done(json!({"type": "get_artifact", "artifactId": id(&result)}));
    assert_eq!(part["data"], json!(whole));
    assert_eq!(
        (&part["offset"], &part["nextOffset"], &part["eof"]),
        (&json!(0), &json!(whole.len()), &json!(true))
    );
    assert_eq!(part["path"], json!(path));
    // `offset` and `limit` read parts.
    let first = daemon.done(json!({"type": "get_artifact", "artifactId": id(&result), "limit": 10}));
    assert_eq!(
        (&first["data"], &first["nextOffset"], &first["eof"]),
        (&json!(&whole[..10]), &json!(10), &json!(false))
    );
    let rest = daemon.done(json!({"type": "get_artifact", "artifactId": id(&result), "offset": 10}));
    assert_eq!(rest["data"], json!(&whole[10..]));

    let list = daemon.done(json!({"type": "list_artifacts"}));
    let expected = json!([{"artifactId": id(&result), "path": path, "totalBytes": whole.len()}]);
    assert_eq!(list["artifacts"], expected);
    for wrong in ["", "../x", "00000000"] {
        let refused = daemon.refused(json!({"type": "get_artifact", "artifactId": wrong}));
        assert_eq!(refused["error"], format!("The session has no artifact \"{wrong}\"."));
    }
}

#[test]
fn the_model_reads_an_artifact_by_its_url() {
    let home = Home::new();
    let (mut daemon, server, result) = with_long_output(&home);
    server.push(Reply::stream(sse::calls(&[(
        "c2",
        "read",
        json!({"path": format!("artifact://{}", id(&result)), "offset": 4999}),
    )])));
    server.push(Reply::stream(sse::calls(&[("c3", "read", json!({"path": "artifact://../x"}))])));
    server.push(Reply::stream(sse::answer("Ok.")));
    let events = daemon.prompt("Read the end of it.");
    let results = ended(&events, "toolResult");
    assert_eq!(text(results[0]), "4999\n5000\n");
    assert_eq!(results[1]["isError"], true);
    assert!(text(results[1]).starts_with("Artifact not found: ../x."), "{}", text(results[1]));
}

#[test]
fn a_session_without_a_file_keeps_nothing() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let output = daemon.done(json!({"type": "bash", "command": "seq 1 5000"}));
    let path = output["fullOutputPath"].as_str().expect("a path");
    assert!(path.starts_with(&home.root().join("tmp").display().to_string()), "{path}");
    assert_eq!(daemon.done(json!({"type": "list_artifacts"}))["artifacts"], json!([]));
    daemon.refused(json!({"type": "get_artifact", "artifactId": "0123abcd"}));
}

#[test]
fn a_clone_has_the_artifacts_too() {
    let home = Home::new();
    let (mut daemon, _server, result) = with_long_output(&home);
    let before = daemon.done(json!({"type": "get_state"}))["sessionFile"].clone();
    daemon.done(json!({"type": "clone"}));
    let after = daemon.done(json!({"type": "get_state"}))["sessionFile"].clone();
    assert_ne!(before, after);
    let original = PathBuf::from(before.as_str().unwrap()).with_extension("");
    fs::remove_dir_all(&original).unwrap();
    let part = daemon.done(json!({"type": "get_artifact", "artifactId": id(&result), "limit": 4}));
    assert_eq!(part["data"], "1\n2\n");
    assert!(!part["path"].as_str().unwrap().starts_with(original.to_str().unwrap()));
}

#[test]
fn artifacts_are_deleted_with_their_session() {
    let home = Home::new();
    let (daemon, _server, _) = with_long_output(&home);
    let file = home.session_files()[0].clone();
    let folder = file.with_extension("");
    let session = session_id(&home);
    assert!(daemon.close().status.success());
    assert!(folder.is_dir());
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    // The artifact folder is not listed as a session.
    let listed = client.done(json!({"type": "list_sessions"}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    client.done(json!({"type": "delete_session", "sessionId": session}));
    assert!(!file.exists() && !folder.exists());
}

/// Reads the file directly unless a daemon has the session open; then asks the daemon.
#[test]
fn agentctl_prints_artifacts() {
    let home = Home::new();
    let (daemon, _server, result) = with_long_output(&home);
    assert!(daemon.close().status.success());
    let whole: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    let session = session_id(&home);
    let check = |args: &[&str]| {
        let done = ctl::run(&home, args);
        assert_eq!((done.code, done.stdout), (0, whole.clone()), "{args:?}: {}", done.stderr);
    };
    check(&["artifact", id(&result)]);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": session}));
    check(&["artifact", id(&result), "--session", &session]);
    let list = ctl::run(&home, &["artifact", "-s", &session]);
    assert!(list.stdout.starts_with(id(&result)), "{list:?}");
    let none = ctl::run(&home, &["artifact", "00000000", "-s", &session]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert_says(&none.stderr, &["no artifact \"00000000\"", "list_artifacts lists them"]);
}
