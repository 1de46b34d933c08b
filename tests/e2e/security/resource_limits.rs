//! One account of memory and work for all clients, answers and queues; descriptors kept back for the daemon itself.

use std::{fs, io::Write as _, time::Instant};

use agentd_e2e::{
    DEADLINE, Home, MockServer, Reply, Service, SocketClient, binaries, ctl, mock_server::Request, processes,
    sse, wait::LONG_DEADLINE,
};
use serde_json::{Value, json};

use crate::{
    limits::{daemon, fine, hello, open, refused},
    support::{answers, ended, text},
};

/// A quarter of a gigabyte: an eighth is for lines, and an eighth for answers.
const MEMORY: u64 = 256 << 20;

fn small() -> Value {
    json!({"daemon": {"maxMemoryBytes": MEMORY}})
}

fn works(service: &Service, home: &Home) {
    let mut other = service.client();
    open(&mut other, home);
    assert_eq!(text(answers(&other.prompt("And you?"))[0]), "Fine.");
}

/// Writes the beginning of a line.
fn begin_line(client: &SocketClient, bytes: usize) {
    let mut stream = client.stream();
    stream.write_all(b"{\"type\":\"prompt\",\"message\":\"").unwrap();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..bytes >> 20 {
        stream.write_all(&piece).unwrap();
    }
}

fn is_refusal(line: &Value) -> bool {
    line["code"] == "limit_reached"
        && line["error"].as_str().is_some_and(|text| text.contains("line was given up"))
}

#[test]
fn unfinished_lines_of_all_clients_together_have_a_bound() {
    let server = MockServer::start([fine(), fine()]);
    let (home, service) = daemon(&server, small());
    let mut working = service.client();
    open(&mut working, &home);
    // 160 MiB, of which 32 are kept. No line ends.
    let mut crowd: Vec<SocketClient> = (0..20).map(|_| service.client()).collect();
    crowd.iter().for_each(|client| begin_line(client, 8 << 20));
    // At most four keep their lines. Which ones depends on how long the others stood still, and so on the load of the
    // machine.
    let refused = SocketClient::first_readable(&crowd);
    let refusal = crowd[refused].until("a refusal", is_refusal);
    assert!(refusal["hint"].as_str().unwrap().contains("daemon.maxMemoryBytes"), "{refusal}");
    assert!(processes::usage(service.id()).peak < MEMORY, "{:?}", processes::usage(service.id()));
    assert_eq!(text(answers(&working.prompt("Hi"))[0]), "Fine.");
    works(&service, &home);
    // The rest of a line that was given up is skipped, and the next line counts.
    crowd[refused].send_bytes(b"\"}\n");
    crowd[refused].done(json!({"type": "daemon_status"}));
    // A growing line takes the room of lines that stand still.
    let long = json!({"type": "daemon_status", "more": "y".repeat(20 << 20)});
    let end = Instant::now() + DEADLINE;
    loop {
        working.send(&long);
        let line = working.until("an answer", |line| line["type"] == "response");
        if line["success"] == json!(true) {
            break;
        }
        assert!(is_refusal(&line) && Instant::now() < end, "{line}");
    }
}

#[test]
fn a_line_without_an_end_has_a_deadline() {
    let server = MockServer::start([]);
    let (_home, service) = daemon(&server, json!({"daemon": {"lineIdleMs": 100}}));
    let mut client = service.client();
    client.send_bytes(b"{\"type\":\"daemon_");
    let told = client.line();
    assert!(is_refusal(&told), "{told}");
    assert!(told["hint"].as_str().unwrap().contains("daemon.lineIdleMs"), "{told}");
    client.send_bytes(b"status\"}\n{\"id\":\"next\",\"type\":\"daemon_status\"}\n");
    let next = client.line();
    assert_eq!((&next["id"], &next["success"]), (&json!("next"), &json!(true)), "{next}");
}

/// Answers endlessly where a message asks for it.
fn endless(request: &Request) -> Reply {
    if !request.messages().iter().any(|message| message.to_string().contains("endless")) {
        return fine();
    }
    let piece = sse::text(&"z".repeat(64 << 10));
    Reply::stream("").live(move |pieces| {
        loop {
            pieces.send(piece.as_bytes())?;
        }
    })
}

#[test]
fn answers_without_an_end_share_their_memory_and_the_rest_works_on() {
    let server = MockServer::answering(endless);
    // Twice as much: a third of it is the program itself, which is not optimised here, and sessions are opened beside the answers.
    let (home, service) = daemon(&server, json!({"daemon": {"maxMemoryBytes": 2 * MEMORY}}));
    let mut client = service.client();
    hello(&mut client);
    let sessions: Vec<String> = (0..3).map(|_| open(&mut client, &home)).collect();
    for id in &sessions {
        client.done(json!({"type": "prompt", "message": "endless", "sessionId": id}));
        // Without subscribers the session waits for nobody.
        client.done(json!({"type": "detach_session", "sessionId": id}));
    }
    works(&service, &home);
    client.done(json!({"type": "daemon_status"}));
    server.wait_for_disconnects(sessions.len());
    // Each run ends as soon as its answer is stored.
    let end = Instant::now() + LONG_DEADLINE;
    for id in &sessions {
        while client.done(json!({"type": "get_state", "sessionId": id}))["isStreaming"] != json!(false) {
            assert!(Instant::now() < end, "an answer did not end");
        }
    }
    let files = home.session_files();
    let told =
        files.iter().filter(|file| fs::read_to_string(file).unwrap().contains("daemon.maxMemoryBytes"));
    assert_eq!(told.count(), sessions.len());
    let used = processes::usage(service.id());
    assert!(used.peak < 4 * MEMORY, "{used:?}");
    works(&service, &home);
}

#[test]
fn what_has_no_end_is_aborted_while_the_account_is_full() {
    let server = MockServer::answering(endless);
    let (home, service) = daemon(&server, small());
    let crowd: Vec<SocketClient> = (0..6).map(|_| service.client()).collect();
    crowd.iter().for_each(|client| begin_line(client, 8 << 20));
    let mut client = service.client();
    open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "endless"}));
    client.event("message_update");
    client.done(json!({"type": "get_state"}));
    let mut other = service.client();
    other.done(json!({"type": "daemon_status"}));
    client.done(json!({"type": "abort"}));
    client.settled();
    server.wait_for_disconnects(1);
}

#[test]
fn updates_of_the_queue_are_not_quadratic() {
    const MESSAGES: usize = 2000;
    let gate = agentd_e2e::Gate::new();
    let first = Reply::stream(sse::text("Well ")).gate(&gate).then(sse::answer("then."));
    let server = MockServer::start([first]);
    let (home, service) = daemon(&server, json!({"limits": {"maxQueuedMessages": 3000}}));
    let mut client = service.client();
    open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    let (text, mut updates, mut last) = ("q".repeat(1024), 0, 0);
    let begun = Instant::now();
    for number in 0..MESSAGES {
        client.send(&json!({"id": number, "type": "follow_up", "message": text}));
        for line in client.all_until("an answer", |line| line["id"] == json!(number)) {
            if line["type"] == "queue_update" {
                last = line["followUp"].as_array().unwrap().len();
                updates += 1;
            }
        }
    }
    // The last changes are reported soon, too.
    if last < MESSAGES {
        let all = |line: &Value| line["followUp"].as_array().is_some_and(|all| all.len() == MESSAGES);
        client.until("the whole queue", all);
    }
    // The first 16 KiB are sent singly, then one update for each further quarter (22 to 2000), and four in a second.
    let most = 16 + 2 * 22 + 4 * (begun.elapsed().as_secs() + 1);
    assert!((16..=most).contains(&updates), "{updates} updates, at most {most}");
    client.done(json!({"type": "clear_queue"}));
    assert_eq!(client.event("queue_update")["followUp"], json!([]));
    client.done(json!({"type": "abort"}));
    gate.open();
}

#[test]
fn a_long_line_in_a_small_address_space_is_refused_and_ends_nobody() {
    const ADDRESS_SPACE: u64 = 200 << 20;
    let server = MockServer::start([fine(), fine()]);
    let home = Home::with_model(&server);
    let mut command = home.command("prlimit");
    command.arg(format!("--as={ADDRESS_SPACE}")).arg(binaries::agentd()).arg("serve");
    let service = Service::start_command(command).unwrap_or_else(|ended| panic!("{ended:?}"));
    let mut client = service.client();
    open(&mut client, &home);
    client.send(&json!({"type": "prompt", "message": "x".repeat(60 << 20)}));
    let told = client.until("a refusal", is_refusal);
    assert!(told["error"].as_str().unwrap().contains("ulimit -v"), "{told}");
    assert_eq!(text(answers(&client.prompt("Hi"))[0]), "Fine.");
    works(&service, &home);
}

fn full(settings: Value) -> (MockServer, Home, Service, Vec<SocketClient>) {
    let server = MockServer::start([fine()]);
    let (home, service) = daemon(&server, settings);
    let mut clients: Vec<SocketClient> = (0..2).map(|_| service.client()).collect();
    for client in &mut clients {
        // They are accepted and send nothing more.
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
    // Other commands get the reason.
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
    // Silent clients in the reserved places are told and disconnected after a while, and others get in.
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
    // A private daemon manages with as few.
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
