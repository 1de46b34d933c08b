//! Places and descriptors that are kept: for whoever sees to the daemon itself, and for one session at least.

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, binaries, ctl, sse};
use serde_json::{Value, json};

use crate::{
    limits::{daemon, fine, hello, open, refused},
    support::{answers, ended, text},
};

fn full(settings: Value) -> (MockServer, Home, Service, Vec<SocketClient>) {
    let server = MockServer::start([fine()]);
    let (home, service) = daemon(&server, settings);
    let mut clients: Vec<SocketClient> = (0..2).map(|_| service.client()).collect();
    for client in &mut clients {
        // They are taken in, and say nothing more.
        client.done(json!({"type": "daemon_status"}));
    }
    (server, home, service, clients)
}

fn two_clients() -> Value {
    json!({"daemon": {"maxClients": 2}})
}

#[test]
fn status_and_down_work_when_all_places_are_taken() {
    let (_server, home, service, clients) = full(two_clients());
    let status = ctl::run(&home, &["status", "--json"]);
    assert_eq!(status.code, 0, "{status:?}");
    let said: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(said["running"], json!(true), "{said}");
    // Everything else is told why not.
    let listed = ctl::run(&home, &["sessions"]);
    assert!(listed.code != 0 && listed.stderr.contains("daemon.maxClients"), "{listed:?}");
    let down = ctl::run(&home, &["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    drop(clients);
}

#[test]
fn a_reserved_place_is_for_the_daemon_itself_and_nobody_keeps_it() {
    let (_server, _home, service, _clients) = full(two_clients());
    let mut one = service.client();
    hello(&mut one);
    assert!(one.done(json!({"type": "daemon_status"}))["usage"]["clients"]["used"].as_u64() >= Some(3));
    refused(&mut one, json!({"type": "list_sessions"}), "daemon.maxClients");
    assert!(one.closed().is_empty());
    // Those who take the places and say nothing are told and left after a while, and others come in.
    let silent: Vec<SocketClient> = (0..4).map(|_| service.client()).collect();
    let mut told = 0;
    for client in silent {
        let lines = client.closed();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0]["code"], "limit_reached");
        told += 1;
    }
    assert_eq!(told, 4);
    service.client().done(json!({"type": "daemon_status"}));
}

fn with_files(home: &Home, limit: u32, args: &[&str]) -> std::process::Command {
    let mut command = home.command("prlimit");
    command.arg(format!("--nofile={limit}:{limit}")).arg(binaries::agentd()).args(args);
    command
}

#[test]
fn thirty_two_descriptors_are_enough_for_a_session_with_a_command() {
    let call = || Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "echo works | cat"}))]));
    let server = MockServer::start([call(), fine(), call(), fine(), call(), fine()]);
    let home = Home::with_model(&server);
    let service =
        Service::start_command(with_files(&home, 32, &["serve"])).unwrap_or_else(|end| panic!("{end:?}"));
    let mut client = service.client();
    open(&mut client, &home);
    let events = client.prompt("Go.");
    assert_eq!(text(ended(&events, "toolResult")[0]), "works\n");
    assert_eq!(text(answers(&events)[1]), "Fine.");
    let status = ctl::run(&home, &["status"]);
    assert_eq!(status.code, 0, "{status:?}");
    drop(client);
    assert_eq!(ctl::run(&home, &["down"]).code, 0);
    // And for a private daemon.
    let alone = ctl::feed(with_files(&home, 32, &["-p", "Go."]), "");
    assert_eq!((alone.code, alone.stdout.trim()), (0, "Fine."), "{alone:?}");
    let mut by_the_client = home.command("prlimit");
    by_the_client.arg("--nofile=32:32").arg(binaries::agentctl()).args(["prompt", "--private", "Go."]);
    let alone = ctl::feed(by_the_client, "");
    assert_eq!((alone.code, alone.stdout.trim()), (0, "Fine."), "{alone:?}");
}

#[test]
fn with_too_few_descriptors_the_start_is_refused_in_words() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    for args in [&["serve"][..], &["-p", "Go."], &["--stdio"]] {
        let ended = ctl::feed(with_files(&home, 20, args), "");
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stderr.contains("`ulimit -n`") && ended.stderr.contains("at least 32"), "{ended:?}");
    }
}
