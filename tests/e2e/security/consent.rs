//! A missing value is never taken for the wider of two meanings.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    thread,
};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, Service, ctl, sse};
use rustix::{process::Uid, thread::set_thread_res_uid};
use serde_json::{Value, json};

use crate::support::assert_says;

/// Flags whose empty value could mean another folder, session or recipient, or more than intended.
const NEVER_EMPTY: [&str; 9] = [
    "--ssh",
    "--session-dir",
    "--session",
    "--fork",
    "--provider",
    "--api-key",
    "--exclude-tools",
    "--skill",
    "--models",
];

/// The attack: `--ssh "$HOST"` with an unset variable.
#[test]
fn an_empty_value_is_not_the_wider_meaning() {
    let call = sse::calls(&[("c1", "bash", json!({"command": "touch ran-here"}))]);
    let server = MockServer::always(Reply::stream(call));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    for flag in NEVER_EMPTY {
        let says = format!("{flag} is empty (a variable that is not set?)");
        for args in [
            &["-p", "--model", "fake/fake", flag, "", "go"][..],
            &["--stdio", flag, ""],
            &["--stdio", "--shared", flag, ""],
        ] {
            let done = ctl::feed(ctl::agentd(&home, args), "{\"type\":\"prompt\",\"message\":\"go\"}\n");
            assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{args:?}: {done:?}");
            assert_says(&done.stderr, &[&says]);
        }
        let answer =
            client.refused(json!({"type": "open_session", "cwd": home.project(), "args": [flag, ""]}));
        assert_says(&answer.to_string(), &["invalid_field", &says]);
    }
    for args in [
        &["prompt", "--model", "fake/fake", "--ssh", "", "go"][..],
        &["prompt", "--model", "fake/fake", "--ssh=", "--private", "go"],
        &["prompt", "--model", "fake/fake", "--session-dir", "", "go"],
        &["prompt", "--session", "", "go"],
        &["prompt", "--model", "fake/fake", "--provider", "", "go"],
        &["prompt", "--model", "fake/fake", "--cwd", "", "go"],
        &["rm", ""],
        &["abort", ""],
        &["bug-report", ""],
        &["setup", "local", "--url", ""],
    ] {
        let done = ctl::run(&home, args);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{args:?}: {done:?}");
    }
    for field in ["path", "sessionId", "model", "cwd"] {
        let mut command = json!({"type": "open_session", "cwd": home.project()});
        command[field] = json!("");
        let answer = client.refused(command);
        assert_says(&answer.to_string(), &[field]);
    }
    for command in ["attach_session", "close_session", "delete_session", "list_processes"] {
        daemon.refused(json!({"type": command, "sessionId": ""}));
    }
    assert!(server.requests().is_empty() && !home.project().join("ran-here").exists());
}

/// Values that pi treats as a missing flag are treated so in pi's modes, except for agentd's own flags.
#[test]
fn clients_of_pi_may_leave_values_empty() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let empty = ["--session", "", "--fork", "", "--session-dir", "", "--api-key", "", "--provider", ""];
    let args = [&["--compat", "pi", "-p", "--model", "fake/fake"], &empty[..], &["go"]].concat();
    let done = ctl::feed(ctl::agentd(&home, &args), "");
    assert_eq!((done.code, done.stdout.as_str()), (0, "Ok.\n"), "{done:?}");
    let done = ctl::feed(ctl::agentd(&home, &["--compat", "pi", "-p", "--ssh", "", "go"]), "");
    assert_eq!(done.code, 1, "{done:?}");
}

/// A chosen id names one session, even before it has a file.
#[test]
fn a_new_id_means_one_folder() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let (one, other) = (home.project(), home.root().join("other"));
    fs::create_dir(&other).unwrap();
    let open = |cwd: &std::path::Path, id: &str| json!({"type": "open_session", "cwd": cwd, "sessionId": id, "args": ["--model", "fake/fake"]});
    let mut first = service.client();
    first.done(open(&one, "chosen"));
    let refuse = |command: Value| {
        let mut client = service.client();
        let answer = client.refused(command);
        assert_eq!(answer["code"], "invalid_field", "{answer}");
        assert_says(&answer.to_string(), &["cwd", "chosen", &one.display().to_string()]);
    };
    // The session has no file yet, and is unloaded or loaded.
    refuse(open(&other, "chosen"));
    refuse(json!({"type": "open_session", "cwd": other, "args": ["--session-id", "chosen"]}));
    first.prompt("Hi.");
    refuse(open(&other, "chosen"));
    let mut same = service.client();
    assert_eq!(same.done(open(&one, "chosen"))["sessionId"], "chosen");
    // It is not created a second time after it was closed.
    same.done(json!({"type": "close_session", "sessionId": "chosen"}));
    refuse(open(&other, "chosen"));
    assert_eq!(home.session_files().len(), 1);
    assert_eq!(service.client().done(open(&one, "chosen"))["messageCount"], 3);
    // Of two simultaneous requests, one gets it.
    let (mut left, mut right) = (service.client(), service.client());
    left.send(&json!({"id": "l", "type": "open_session", "cwd": one, "sessionId": "both"}));
    right.send(&json!({"id": "r", "type": "open_session", "cwd": other, "sessionId": "both"}));
    let left = left.until("an answer", |line| line["id"] == "l");
    let right = right.until("an answer", |line| line["id"] == "r");
    assert_ne!(left["success"], right["success"], "{left} {right}");
}

/// The attack: any local process can connect to the port of a login.
#[test]
fn half_requests_do_not_keep_the_browser_out() {
    let tokens = json!({"access_token": "hush-a", "refresh_token": "hush-r", "expires_in": 3600});
    let server = MockServer::start([Reply::status(200, "application/json", tokens.to_string())]);
    let home = Home::new();
    let url = server.base_url();
    home.configure(
        &json!({"providers": {"p": {"baseUrl": url, "api": "openai-completions", "models": [{"id": "m"}],
        "oauth": {"clientId": "mine", "authorizeUrl": "https://auth.invalid/authorize", "tokenUrl": format!("{url}/token")}}}}),
    );
    let mut daemon = Daemon::start(&home, &[]);
    let started = daemon.done(json!({"type": "login_start", "provider": "p"}));
    daemon.send(&json!({"id": "f", "type": "login_finish", "loginId": started["loginId"]}));
    let redirect = started["redirectUri"].as_str().unwrap();
    let (address, path) = redirect.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut halves = Vec::new();
    for number in 0..100 {
        let mut half = TcpStream::connect(address).unwrap();
        // A refused connection may be closed already.
        let _ = half.write_all(format!("GET /{path}?code=stolen-{number}&state=").as_bytes());
        halves.push(half);
    }
    let url = started["url"].as_str().unwrap();
    let state = url.split(['?', '&']).find_map(|pair| pair.strip_prefix("state=")).unwrap();
    let mut browser = TcpStream::connect(address).unwrap();
    browser.write_all(format!("GET /{path}?code=c&state={state} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    browser.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut page = String::new();
    browser.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert_eq!(daemon.until("the login", |line| line["id"] == "f")["success"], true);
}

/// The attack: a server of another user on a usual port would read every request.
#[test]
#[cfg(target_os = "linux")]
fn a_server_of_another_user_is_not_set_up_in_silence() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let listing = || {
        let models = json!({"object": "list", "data": [{"id": "tiny", "object": "model"}]});
        MockServer::always(Reply::status(200, "application/json", models.to_string()))
    };
    let own = listing();
    let others = thread::spawn(move || {
        // Changes the user of this thread and of the server's threads, which it starts.
        let user = Uid::from_raw(65534);
        set_thread_res_uid(user, user, user).unwrap();
        listing()
    });
    let others = others.join().unwrap();
    let home = Home::new();
    let models = home.agent_dir().join("models.json");
    let url = others.base_url();
    for args in [
        &["setup", "local", "--url", &url][..],
        &["setup", "local", "--yes", "--url", &url],
        &["setup", "local", "--json", "--url", &url],
        &["setup", "local", "--url", &url.replace("127.0.0.1", "localhost")],
    ] {
        let done = ctl::run(&home, args);
        assert_eq!(done.code, 1, "{args:?}: {done:?}");
        assert_says(&done.stderr, &["another user of this machine", "65534", "--other-user"]);
        assert!(!models.exists(), "{args:?}");
    }
    let dry = ctl::run(&home, &["setup", "local", "--dry-run", "--url", &url]);
    assert_says(&dry.stdout, &["Another user listens there", "65534"]);
    assert!(!models.exists());
    let done = ctl::run(&home, &["setup", "local", "--url", &url, "--other-user"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["Another user listens there", "Written to"]);
    // A configured server is accepted again without a question.
    assert_eq!(ctl::run(&home, &["setup", "local", "--url", &url]).code, 0);
    let done = ctl::run(&home, &["setup", "local", "--url", &own.base_url()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["Run by root", "provider local-2, new"]);
}
