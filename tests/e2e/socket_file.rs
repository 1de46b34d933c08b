//! What becomes of a daemon whose socket someone takes away.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    time::Instant,
};

use agentd_e2e::{DEADLINE, Gate, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{answers, assert_says, text};

/// Asks the daemon over a connection that there was before, until its socket is back.
fn wait_until_back(service: &Service, client: &mut SocketClient) {
    let end = Instant::now() + DEADLINE;
    while !service.socket().exists() {
        assert!(Instant::now() < end, "the socket does not come back");
        client.done(json!({"type": "daemon_status"}));
    }
}

#[test]
fn a_socket_that_was_removed_comes_back_and_work_goes_on() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half ")).gate(&gate).then(sse::answer("and half."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    let folder = service.socket().parent().unwrap().to_owned();
    fs::remove_dir_all(&folder).unwrap();
    wait_until_back(&service, &mut client);

    // Those who look for it find it, and no second one starts.
    let status = ctl::run(&home, &["status"]);
    assert_eq!(status.code, 0, "{status:?}");
    assert_says(&status.stdout, &[&format!("pid {}", service.id()), "1 in memory, 1 at work"]);
    let up = ctl::run(&home, &["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_says(&up.stdout, &["is running already", &format!("pid {}", service.id())]);
    let Err(second) = Service::try_start(&home, &[], |_| {}) else { panic!("two daemons") };
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    gate.open();
    assert_eq!(text(answers(&client.settled())[0]), "Half and half.");
    let down = ctl::run(&home, &["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    let socket = service.socket().to_owned();
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_says(&ended.stderr, &["someone removed the socket"]);
    assert!(!socket.exists());
}

#[test]
fn a_daemon_whose_place_was_taken_finishes_its_work_and_ends() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half ")).gate(&gate).then(sse::answer("and half."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    // The new one has its name at once: there is no moment without a socket.
    let mut asking = service.client();
    asking.done(json!({"type": "daemon_status"}));
    let other = home.root().join("other.sock");
    let theirs = UnixListener::bind(&other).unwrap();
    fs::rename(&other, service.socket()).unwrap();
    // The daemon has seen it when it takes no new work.
    let end = Instant::now() + DEADLINE;
    loop {
        let answer = asking.call(json!({"type": "open_session", "cwd": home.project(), "attach": false}));
        if answer["code"] == "shutting_down" {
            break;
        }
        assert!(Instant::now() < end, "{answer}");
    }
    gate.open();
    let rest = client.closed();
    assert_eq!(text(answers(&rest)[0]), "Half and half.");
    let socket = service.socket().to_owned();
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_says(
        &ended.stderr,
        &["the socket was taken away", "cannot be put back", socket.to_str().unwrap()],
    );
    assert!(socket.exists(), "it belongs to who put it there");
    drop(theirs);
}

#[test]
fn a_daemon_that_lost_its_socket_still_ends_by_a_signal() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    fs::remove_file(service.socket()).unwrap();
    wait_until_back(&service, &mut client);
    service.signal(Signal::TERM);
    let socket = service.socket().to_owned();
    assert_eq!(service.wait().status.code(), Some(0));
    assert!(!socket.exists());
}
