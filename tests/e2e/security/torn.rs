//! A session file that another program cuts while the daemon has the session.

use std::fs::{self, OpenOptions};

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::json;

use crate::{support::assert_says, unload::gone};

/// A session with a prompt and its answer, and its id and file.
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
    // All of it, a part of the header, a part of what follows.
    for bytes in [0, 20, whole - 30] {
        let (mut client, id, file) = begun(&home, &service);
        cut(&file, bytes);
        let left = fs::read(&file).unwrap();
        let asked = server.requests().len();
        client.done(json!({"type": "prompt", "message": "Which word?"}));
        let said = format!("{:?}", client.settled());
        assert_says(&said, &[&file, "was cut by another program"]);
        assert_eq!(server.requests().len(), asked, "nothing is asked that could not be kept");
        assert_eq!(fs::read(&file).unwrap(), left, "the file is as it was left");
        // What the hint says: the conversation goes on in a file of its own.
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

/// A session that left memory has its file alone.
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
