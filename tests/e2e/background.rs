//! Background processes of `bash`, and the tools for them.

use std::fs;

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, Service, ctl, processes, sse};
use serde_json::{Value, json};

use crate::{
    bash::calling,
    support::{assert_says, ended, live_sessions, text},
};

/// A home whose model makes these calls, with background processes and terminals enabled.
fn home(calls: &[(&str, Value)]) -> Home {
    let home = Home::with_model(&calling(calls));
    home.settings(&json!({"bash": {"background": true, "pty": true}}));
    home
}

fn background(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command, "background": true}))
}

fn output(id: &str) -> (&'static str, Value) {
    ("process_output", json!({"id": id, "wait": 20}))
}

fn texts(events: &[Value]) -> Vec<String> {
    ended(events, "toolResult").into_iter().map(text).collect()
}

/// The result texts of these calls.
fn done(calls: &[(&str, Value)]) -> Vec<String> {
    let home = home(calls);
    texts(&Daemon::start(&home, &["--no-session"]).prompt("Go."))
}

/// The process ids in lines `pid N`.
fn printed(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

/// The text with its numbers of seconds removed.
fn timeless(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        match words.last_mut() {
            Some(last) if word.starts_with("seconds") && is_number(last) => {
                *last = "S".to_owned();
                words.push(word.to_owned());
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

const SERVER: &str = "echo ready; while read -r line; do echo \"got $line\"; done; echo bye; exit 3";

#[test]
fn a_server_is_started_spoken_to_and_ended() {
    let said = done(&[
        background(SERVER),
        ("process_input", json!({"id": "bg-1", "text": "hello\n"})),
        output("bg-1"),
        ("process_list", json!({})),
        ("process_output", json!({"id": "bg-1"})),
        ("process_input", json!({"id": "bg-1", "text": "last\n", "eof": true})),
        output("bg-1"),
        ("process_output", json!({"id": "bg-1", "lines": 2})),
        ("process_output", json!({"id": "bg-1", "since": 6})),
        ("process_input", json!({"id": "bg-1", "text": "more"})),
        ("process_kill", json!({"id": "bg-1"})),
    ]);
    let said: Vec<String> = said.iter().map(|text| timeless(text)).collect();
    assert_eq!(said[0], "ready\n\n[bg-1 is running for S seconds]");
    assert_eq!(said[1], "Wrote 6 bytes to bg-1");
    assert_eq!(said[2], "got hello\n\n[bg-1 is running for S seconds]");
    assert_eq!(said[3], format!("bg-1 is running for S seconds, 16 bytes of output: {SERVER}"));
    assert_eq!(said[4], "(no new output)\n\n[bg-1 is running for S seconds]");
    assert_eq!(said[5], "Wrote 5 bytes to bg-1 and ended its input");
    assert!(said[6].starts_with("got last\nbye\n\n[bg-1 "), "{}", said[6]);
    assert!(said[7].starts_with("got last\nbye\n\n[bg-1 "), "{}", said[7]);
    assert!(said[8].starts_with("got hello\ngot last\nbye\n\n[bg-1 "), "{}", said[8]);
    // Its last output and its end arrive separately: until then, all that is known is that it reads no more.
    let ended = "bg-1 has ended already: it exited with code 3 after S seconds.";
    let reads_no_more = "bg-1 takes no input: it has closed it, or its input was ended before";
    assert!([ended, reads_no_more].contains(&said[9].as_str()), "{}", said[9]);
    assert!(said[10] == ended || said[9] == reads_no_more, "{}", said[10]);
}

#[test]
fn what_fails_at_once_is_reported_at_once() {
    let home = home(&[background("echo no; exit 4"), output("bg-1"), ("process_list", json!({}))]);
    let events = Daemon::start(&home, &["--no-session"]).prompt("Go.");
    let results = ended(&events, "toolResult");
    assert_eq!(results[0]["isError"], true);
    assert_eq!(timeless(&text(results[0])), "no\n\n[bg-1 exited with code 4 after S seconds]");
    let details = &results[0]["details"];
    let facts = (&details["process_id"], &details["running"], &details["exit_code"], &details["total_bytes"]);
    assert_eq!(facts, (&json!("bg-1"), &json!(false), &json!(4), &json!(3)));
    assert_eq!(timeless(&text(results[1])), "(no new output)\n\n[bg-1 exited with code 4 after S seconds]");
}

#[test]
fn mistakes_are_named() {
    let said = done(&[
        ("process_output", json!({"id": "bg-1"})),
        background("sleep 1000"),
        ("process_output", json!({"id": "bg-7"})),
        ("process_output", json!({"id": "bg-1", "since": 1, "lines": 1})),
        ("process_output", json!({"id": "bg-1", "wait": -1})),
        ("process_kill", json!({"id": "bg-1", "signal": "SIGFOO"})),
        ("bash", json!({"command": "true", "background": true, "timeout": 0})),
    ]);
    assert_says(
        &said[0],
        &["no background process \"bg-1\"", "None was started since this session was opened"],
    );
    assert_says(&timeless(&said[2]), &["There are: bg-1 (is running for S seconds)."]);
    assert_says(&said[3], &["Give since or lines, not both."]);
    assert_says(&said[4], &["Invalid wait"]);
    assert_says(&said[5], &["Unknown signal \"SIGFOO\". There are: SIGTERM, "]);
    assert_says(&said[6], &["Invalid timeout"]);
}

#[test]
fn a_kill_takes_everything_with_it() {
    let script =
        "setsid sleep 1001 & echo pid $!; (trap '' TERM; sleep 1002) & echo pid $!; echo pid $$; wait";
    let home = home(&[
        background(script),
        ("process_kill", json!({"id": "bg-1", "signal": "USR2"})),
        background(script),
        ("process_kill", json!({"id": "bg-2"})),
    ]);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    let said = texts(&events);
    let ids: Vec<i32> = [&said[0], &said[2]].into_iter().flat_map(|text| printed(text)).collect();
    assert_eq!(ids.len(), 6, "{said:?}");
    for id in ids {
        assert!(!fs::exists(format!("/proc/{id}")).unwrap(), "{id} is still there");
    }
    let killed = timeless(&said[1]);
    assert_says(
        &killed,
        &["Sent SIGUSR2 to bg-1. It was ended by SIGUSR2 after S seconds", "(no new output)"],
    );
    let ended = timeless(&said[3]);
    assert_says(&ended, &["bg-2 was ended by SIGTERM after S seconds, by process_kill\n\n"]);
    for told in [killed, ended] {
        assert_eq!(told.matches("was ended by").count(), 1, "an ending is told once: {told}");
    }
    assert_eq!(daemon.done(json!({"type": "list_processes"}))["processes"], json!([]));
}

#[test]
fn a_terminal_in_the_background_takes_keys() {
    let script = "test -t 0 && test -t 1 && echo terminal; read -rp 'name? ' name; echo \"hi $name\"; \
                  trap 'echo interrupted; exit 7' INT; echo wait; touch ready; while :; do sleep 0.05; done";
    let said = done(&[
        ("bash", json!({"command": script, "background": true, "pty": true})),
        ("process_input", json!({"id": "bg-1", "text": "me\r"})),
        ("bash", json!({"command": "until [ -e ready ]; do sleep 0.01; done"})),
        output("bg-1"),
        ("process_input", json!({"id": "bg-1", "text": "\u{3}"})),
        output("bg-1"),
        output("bg-1"),
    ]);
    assert!(said[0].starts_with("terminal\nname?\n\n[bg-1 is running"), "{}", said[0]);
    assert_says(&said[3], &["name? me\nhi me\n"]);
    let last = format!("{}{}", said[5], said[6]);
    assert_says(&last, &["interrupted", "bg-1 exited with code 7"]);
}

#[test]
fn memory_and_files_are_bounded_and_counted() {
    let home = home(&[
        background("seq 100000; echo end; sleep 1000"),
        ("process_output", json!({"id": "bg-1", "since": 0})),
        ("process_output", json!({"id": "bg-1", "since": 588_000})),
        background("yes | head -c 3000000; sleep 1000"),
        background("true"),
    ]);
    let limits = json!({"background": true, "keepBytes": 10_000, "fileBytes": 1_000_000, "maxBackground": 2});
    home.settings(&json!({ "bash": limits }));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    let results = ended(&events, "toolResult");
    let first = text(results[0]);
    assert!(first.contains("100000\nend\n\n[bg-1 is running"), "{first}");
    assert!(first.len() < 25_000, "{}", first.len());
    let path = results[0]["details"]["full_output_path"].as_str().expect("a file");
    let whole: String = (1..=100_000).map(|number| format!("{number}\n")).collect::<String>() + "end\n";
    assert_eq!(fs::read_to_string(path).unwrap(), whole);
    assert_eq!(results[0]["details"]["total_bytes"], whole.len());
    assert_says(
        &first,
        &["bytes before this are not shown: since=0 shows them", &format!("Full output: {path}")],
    );
    assert_says(&text(results[1]), &["are no longer in memory"]);
    let from = text(results[2]);
    let (part, _) = from.split_once("\n\n[").expect("a note");
    assert_eq!(part, whole[588_000..].trim_end());
    let flood = &results[3]["details"];
    assert_eq!(flood["total_bytes"], 3_000_000);
    assert_says(&text(results[3]), &["First 1000000 bytes of the output: "]);
    let path = flood["full_output_path"].as_str().expect("a file");
    assert_eq!(fs::metadata(path).unwrap().len(), 1_000_000);
    assert_eq!(
        text(results[4]),
        "2 background processes run already, and no more may: bg-1, bg-2. End one first."
    );
}

#[test]
fn a_time_limit_ends_a_background_process() {
    let limited = json!({"command": "echo up; sleep 1000", "background": true, "timeout": 1.5});
    let said = done(&[("bash", limited), output("bg-1")]);
    assert_eq!(
        timeless(&said[1]),
        "(no new output)\n\n[bg-1 was ended by SIGTERM after S seconds, at its time limit]"
    );
}

#[test]
fn background_processes_outlive_runs_and_aborts_and_end_with_the_session() {
    let script = "sleep 1003 & echo pid $!; echo pid $$; wait";
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": script, "background": true}))])),
        Reply::stream(sse::calls(&[("c2", "bash", json!({"command": "echo up; sleep 1004"}))])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"bash": {"background": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    let result = daemon.event("tool_execution_end");
    let ids = printed(&text(&result["result"]));
    assert_eq!(ids.len(), 2, "{result}");
    daemon.until("the second call's output", |line| {
        line["type"] == "tool_execution_update"
            && line["toolCallId"] == "c2"
            && line["partialResult"]["content"] != json!([])
    });
    let receipt = daemon.done(json!({"type": "abort", "scope": "turn"}));
    let survivor = json!({"kind": "background", "id": "bg-1", "name": script});
    assert_eq!(receipt["survives"], json!([survivor]));
    let listed = daemon.done(json!({"type": "list_processes"}));
    let listed = listed["processes"].as_array().expect("a list");
    assert!(listed.len() >= 2, "{listed:?}");
    for process in listed {
        assert_eq!((&process["kind"], &process["id"]), (&json!("background"), &json!("bg-1")), "{process}");
    }
    let watched = processes::watch(&ids);
    let ended = daemon.close();
    assert!(ended.status.success(), "{ended:?}");
    watched.assert_gone_within(DEADLINE);
}

#[test]
fn ends_of_background_processes_are_reported_to_those_who_said_hello() {
    let calls = [background("echo out; exit 5"), background("sleep 1000")];
    let home = home(&calls);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let events = daemon.prompt("Go.");
    let end = events.iter().find(|event| event["type"] == "process_end").expect("an end").clone();
    assert!(end["durationMs"].is_u64(), "{end}");
    let expected = json!({
        "type": "process_end", "processId": "bg-1", "command": "echo out; exit 5", "exitCode": 5,
        "durationMs": end["durationMs"], "outputBytes": 4,
    });
    assert_eq!(end, expected);
    let receipt = daemon.done(json!({"type": "abort", "scope": "all"}));
    assert_eq!(receipt["ended"], json!([{"kind": "background", "id": "bg-2", "name": "sleep 1000"}]));
    let end = daemon.event("process_end");
    let facts = (&end["processId"], &end["exitCode"], &end["signal"], end.get("endedBy"));
    assert_eq!(facts, (&json!("bg-2"), &json!(143), &json!(15), None), "{end}");

    let home = crate::background::home(&calls);
    let mut plain = Daemon::start(&home, &["--no-session"]);
    let mut all = plain.prompt("Go.");
    all.extend(plain.close().rest);
    assert!(all.iter().all(|event| event["type"] != "process_end"), "{all:?}");
}

#[test]
fn names_of_background_processes_are_not_given_twice() {
    let home = home(&[
        background("sleep 1000"),
        ("process_output", json!({"id": "bg-1"})),
        background("sleep 1000"),
    ]);
    // The first run ends after the first call; the next daemon makes the other calls.
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", background("sleep 1000").1)])),
        Reply::stream(sse::answer("Ok.")),
        Reply::stream(sse::calls(&[("c2", "process_output", json!({"id": "bg-1"}))])),
        Reply::stream(sse::calls(&[("c3", "bash", background("exit 0").1)])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(&home, &[]);
    assert_says(&texts(&daemon.prompt("Go."))[0], &["[bg-1 is running"]);
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let said = texts(&daemon.prompt("Go on."));
    assert_says(&said[0], &["no background process \"bg-1\"", "end with their session"]);
    assert_says(&said[1], &["[bg-2 exited with code 0"]);
}

#[test]
fn a_session_with_a_background_process_stays_loaded_and_its_end_is_shown() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", background("cat go > /dev/null; exit 6").1)])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"bash": {"background": true}, "daemon": {"idleUnloadMs": 1}}));
    assert!(std::process::Command::new("mkfifo").arg(home.project().join("go")).status().unwrap().success());
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.prompt("Go.");
    assert_eq!(live_sessions(&home).len(), 1, "it works for nobody but its process");
    fs::write(home.project().join("go"), "").unwrap();
    let end = client.event("process_end");
    assert_eq!((&end["exitCode"], end["seq"].is_u64()), (&json!(6), true), "{end}");
}

#[test]
fn agentctl_shows_ends_of_background_processes() {
    let home = home(&[background("echo out; exit 5")]);
    let said = ctl::run(&home, &["prompt", "Go."]);
    assert_says(&said.stderr, &["bg-1 exited with code 5: echo out; exit 5"]);
    assert_eq!(said.stdout.trim(), "Ok.");
}
