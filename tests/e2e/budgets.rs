//! Budgets: a run, a session and a day spend no more than they may, and end as any other work does.

use std::mem::MaybeUninit;

use agentd_e2e::{
    Ctl, Daemon, Gate, Home, MockServer, Reply,
    ctl::{self, Finished, agentd},
    sse,
};
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    process::Signal,
};
use serde_json::{Value, json};

use crate::support::{answers, ended, of_kind, prompt, records, text};

/// What one answer of the priced model costs: 5000 tokens at 3 dollars, 200 at 15 dollars a million.
const PRICE: f64 = 0.018;

/// The tokens of one answer.
const TOKENS: u64 = 5200;

/// An answer that calls a tool, so that the run goes on for ever.
pub(crate) fn one_more_call() -> Reply {
    let call = sse::call_start(0, "c", "bash") + &sse::call_arguments(0, r#"{"command":"true"}"#);
    Reply::stream(call + &sse::end("tool_calls", (5000, 0, 200)))
}

pub(crate) fn says(words: &str) -> Reply {
    Reply::stream(sse::text(words) + &sse::end("stop", (5000, 0, 200)))
}

pub(crate) fn priced(server: &MockServer, budgets: &Value) -> Home {
    let home = Home::new();
    configure(&home, server, &json!({"input": 3, "output": 15}));
    home.settings(&json!({ "budgets": budgets }));
    home
}

pub(crate) fn configure(home: &Home, server: &MockServer, cost: &Value) {
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "fake", "cost": cost, "maxTokens": 4096}],
    }}}));
}

pub(crate) fn introduced(home: &Home, args: &[&str]) -> Daemon {
    let mut daemon = Daemon::start(home, args);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon
}

/// What all answers in the session files cost.
pub(crate) fn spent(home: &Home) -> f64 {
    home.session_files().iter().flat_map(|file| records(file)).map(|record| cost(&record)).sum()
}

/// What the day's file holds: its sum, and what processes have reserved.
fn day(home: &Home) -> (Value, Vec<Value>) {
    let text = std::fs::read_to_string(home.agent_dir().join("budget-day.jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines.remove(0), lines)
}

fn cost(record: &Value) -> f64 {
    let usage = if record["usage"].is_object() { &record["usage"] } else { &record["message"]["usage"] };
    usage["cost"]["total"].as_f64().unwrap_or_default()
}

/// The events of a run that a budget ends: the last answer says so, every call has its result, and the event stands before the end of
/// the turn.
pub(crate) fn assert_ends_by(events: &[Value], scope: &str, what: &str) -> Value {
    let reached = of_kind(events, "budget_reached");
    assert_eq!(reached.len(), 1, "{events:#?}");
    assert_eq!((&reached[0]["scope"], &reached[0]["what"]), (&json!(scope), &json!(what)));
    let last = answers(events).last().copied().expect("an answer").clone();
    assert_eq!((&last["stopReason"], &last["code"]), (&json!("error"), &json!("limit_reached")), "{last}");
    let calls: usize = answers(events)
        .iter()
        .flat_map(|answer| answer["content"].as_array().expect("content"))
        .filter(|block| block["type"] == "toolCall")
        .count();
    assert_eq!(ended(events, "toolResult").len(), calls);
    assert_eq!(events.last().expect("events")["type"], "agent_settled");
    assert_eq!(events.last().expect("events")["aborted"], false);
    reached[0].clone()
}

fn run_away(limits: &Value, what: &str) -> (Vec<Value>, Value, Home) {
    let server = MockServer::always(one_more_call());
    let home = priced(&server, &json!({ "run": limits }));
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Go on for ever.");
    let reached = assert_ends_by(&events, "run", what);
    // The next run has a budget of its own, and the context stays legal.
    let again = daemon.prompt("And again.");
    assert_ends_by(&again, "run", what);
    (events, reached, home)
}

#[test]
fn a_runaway_loop_stops_at_the_cost() {
    let (events, reached, home) = run_away(&json!({"costUsd": 0.1}), "costUsd");
    let spent: f64 =
        answers(&events).iter().map(|answer| answer["usage"]["cost"]["total"].as_f64().unwrap()).sum();
    assert!(spent <= 0.1 && spent > 0.1 - PRICE * 1.1, "{spent}");
    assert!((reached["used"].as_f64().unwrap() - spent).abs() < 1e-9, "{reached}");
    assert_eq!(reached["limit"], 0.1);
    // The entry is on disk, with the same facts.
    let entries = records(&home.session_files()[0]);
    let entry = entries.iter().find(|entry| entry["customType"] == "budget").expect("an entry");
    assert_eq!((&entry["data"]["scope"], &entry["data"]["used"]), (&json!("run"), &reached["used"]));
}

#[test]
fn a_runaway_loop_stops_at_the_tokens() {
    let (events, reached, _) = run_away(&json!({"tokens": 30_000}), "tokens");
    let used = reached["used"].as_u64().unwrap();
    assert!(used <= 30_000 && used > 30_000 - TOKENS - 600, "{used}");
    assert_eq!(used, TOKENS * (answers(&events).len() as u64 - 1));
}

#[test]
fn a_runaway_loop_stops_after_the_turns() {
    let (events, reached, _) = run_away(&json!({"turns": 3}), "turns");
    assert_eq!((answers(&events).len(), &reached["used"]), (3 + 1, &json!(3)));
}

#[test]
fn a_runaway_loop_stops_after_the_tool_calls() {
    let (events, reached, _) = run_away(&json!({"toolCalls": 2}), "toolCalls");
    assert_eq!(reached["used"], 2);
    let results = ended(&events, "toolResult");
    assert_eq!(results.iter().filter(|result| result["isError"] == false).count(), 2);
    let refused = text(results.last().expect("a result"));
    assert!(refused.starts_with("The call was not made. Budget reached: 2 of 2 tool calls"), "{refused}");
}

#[test]
fn an_answer_is_shortened_to_what_is_left() {
    let server = MockServer::always(says("Short."));
    let home = priced(&server, &json!({"run": {"tokens": 14_000}}));
    let mut daemon = introduced(&home, &[]);
    daemon.prompt("Be brief.");
    daemon.prompt("Again.");
    let limits: Vec<u64> = server
        .requests()
        .iter()
        .map(|request| {
            let body = &request.body;
            body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64()).expect("a limit")
        })
        .collect();
    // What the first request takes is bounded from above; the second begins from what the provider counted.
    assert!(limits[0] >= 256 && limits[0] <= 4096, "{limits:?}");
    assert_eq!(limits[1], 4096);
}

#[test]
fn a_session_and_a_day_outlive_the_process() {
    for scope in ["session", "day"] {
        let server = MockServer::always(says("Yes."));
        let home = priced(&server, &json!({ scope: {"turns": 2} }));
        for _ in 0..2 {
            let said = ctl::run(&home, &["prompt", "--private", "-c", "More?"]);
            assert_eq!((said.code, said.stdout.as_str()), (0, "Yes.\n"), "{said:?}");
        }
        let refused = ctl::run(&home, &["prompt", "--private", "-c", "More?"]);
        let Finished { code, stdout, stderr } = refused;
        assert_eq!((code, stdout.as_str()), (5, ""), "{stderr}");
        let setting = format!("The setting budgets.{scope}.turns sets the limit.");
        assert!(stderr.contains("Budget reached: 2 of 2 turns") && stderr.contains(&setting), "{stderr}");
        // Another session has a budget of its own, and the same day.
        let other = ctl::run(&home, &["prompt", "--private", "More?"]);
        assert_eq!(other.code, if scope == "session" { 0 } else { 5 }, "{other:?}");
        assert_eq!(home.agent_dir().join("budget-day.jsonl").exists(), scope == "day");
    }
}

#[test]
fn a_fork_counts_what_it_spends_itself() {
    let server = MockServer::always(says("Yes."));
    let home = priced(&server, &json!({"session": {"turns": 2}}));
    let mut daemon = introduced(&home, &[]);
    daemon.prompt("One?");
    daemon.prompt("Two?");
    let refused = daemon.call(prompt("Three?"));
    assert_eq!(
        (&refused["success"], &refused["code"]),
        (&json!(false), &json!("limit_reached")),
        "{refused}"
    );
    daemon.done(json!({"type": "clone"}));
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["budgets"]["session"], json!({"limits": {"turns": 2}, "used": {"turns": 0}}), "{state}");
    assert_eq!(text(answers(&daemon.prompt("Three?"))[0]), "Yes.");
}

#[test]
fn ten_processes_share_a_day() {
    let server = MockServer::always(one_more_call());
    let home = priced(&server, &json!({"day": {"costUsd": 0.5}}));
    let running: Vec<Ctl> = (0..10)
        .map(|_| Ctl::start_with(agentd(&home, &["-p", "Go on for ever."]), std::process::Stdio::null()))
        .collect();
    for one in running {
        let said = one.finish();
        assert_eq!(said.code, 5, "{said:?}");
        assert!(
            said.stderr.contains("Budget reached: ") && said.stderr.contains(" of $0.50 used for today"),
            "{said:?}"
        );
    }
    let spent = spent(&home);
    assert!(spent <= 0.5 && spent > 0.5 - 1.5 * PRICE, "{spent}");
    let (sum, shares) = day(&home);
    assert_eq!(shares, [] as [Value; 0]);
    assert_eq!(sum["used"]["cost"].as_u64().unwrap(), (spent * 1e9).round() as u64);
}

#[test]
fn what_a_killed_process_had_reserved_is_free_again() {
    let gate = Gate::new();
    let held = says("Never.").gate_first(&gate);
    let server = MockServer::start([held, says("Yes."), says("Yes.")]);
    // One call fits, two do not.
    let home = priced(&server, &json!({"day": {"turns": 1}}));
    let mut daemon = introduced(&home, &[]);
    daemon.send(&prompt("Wait."));
    assert_eq!(server.wait_for_requests(1).len(), 1);
    daemon.signal(Signal::KILL);
    daemon.wait();
    let (sum, shares) = day(&home);
    assert_eq!((shares.len(), &sum["used"]["turns"]), (1, &json!(0)), "{sum}");
    let said = ctl::run(&home, &["prompt", "--private", "Now?"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Yes.\n"), "{said:?}");
    assert_eq!(ctl::run(&home, &["prompt", "--private", "Now?"]).code, 5);
}

/// Two processes want what is enough for one. The second waits, without asking again and again, until the first has settled or
/// was killed.
#[test]
fn a_call_waits_for_what_another_process_has_reserved() {
    for is_killed in [false, true] {
        let gate = Gate::new();
        let server = MockServer::start([says("First.").gate_first(&gate), says("Second.")]);
        // The first answer costs nearly nothing of what it reserves.
        let home = priced(&server, &json!({"day": {"costUsd": 0.1}}));
        let mut first = introduced(&home, &[]);
        first.send(&prompt("Begin."));
        assert_eq!(server.wait_for_requests(1).len(), 1);
        let opened = inotify::init(CreateFlags::CLOEXEC).expect("inotify");
        let seen = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&opened, home.agent_dir().join("budget-day.jsonl"), seen).unwrap();
        let second = Ctl::start_with(agentd(&home, &["-p", "Me, too."]), std::process::Stdio::null());
        // It wants to reserve, and tries again once it watches.
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(opened, &mut buffer);
        let mut tries = 0;
        while tries < 2 {
            let event = events.next().expect("an event");
            tries += u32::from(event.events().contains(ReadFlags::CLOSE_WRITE));
        }
        assert_eq!(server.requests().len(), 1);
        if is_killed {
            first.signal(Signal::KILL);
            first.wait();
        } else {
            gate.open();
            first.settled();
        }
        let said = second.finish();
        assert_eq!((said.code, said.stdout.as_str()), (0, "Second.\n"), "{is_killed} {said:?}");
        let (sum, shares) = day(&home);
        assert_eq!(shares, [] as [Value; 0]);
        let used = sum["used"]["cost"].as_u64().unwrap();
        // What the killed call had sent counts with its bound.
        assert!(
            if is_killed { used > 18_000_000 && used < 100_000_000 } else { used == 36_000_000 },
            "{sum}"
        );
    }
}

#[test]
fn summaries_are_paid_from_the_same_budget() {
    let server = MockServer::always(says("A summary."));
    let home = priced(&server, &json!({"session": {"costUsd": 1}}));
    home.settings(&json!({"budgets": {"session": {"costUsd": 0.06}}, "compaction": {"keepRecentTokens": 1}}));
    let mut daemon = introduced(&home, &[]);
    daemon.prompt("One?");
    daemon.prompt("Two?");
    let before =
        daemon.done(json!({"type": "get_state"}))["budgets"]["session"]["used"]["costUsd"].as_f64().unwrap();
    daemon.done(json!({"type": "compact"}));
    let after =
        daemon.done(json!({"type": "get_state"}))["budgets"]["session"]["used"]["costUsd"].as_f64().unwrap();
    assert!((before - 2.0 * PRICE).abs() < 1e-9 && after > before, "{before} {after}");
    assert!((spent(&home) - after).abs() < 1e-9);
}

#[test]
fn a_model_without_a_price_is_not_asked_unless_it_costs_nothing() {
    let server = MockServer::always(says("Free."));
    let home = priced(&server, &json!({"run": {"costUsd": 1}}));
    configure(&home, &server, &json!({}));
    let said = ctl::run(&home, &["prompt", "--private", "Hello?"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("fake/fake") && said.stderr.contains("budgets.unknownPrice"), "{said:?}");
    assert!(server.requests().is_empty());
    home.settings(&json!({"budgets": {"run": {"costUsd": 1}, "unknownPrice": "zero"}}));
    assert_eq!(ctl::run(&home, &["prompt", "--private", "Hello?"]).code, 0);
    // Other limits need no price.
    home.settings(&json!({"budgets": {"run": {"turns": 1}}}));
    assert_eq!(ctl::run(&home, &["prompt", "--private", "Hello?"]).code, 0);
}

#[test]
fn flags_limit_a_run_and_end_it_with_exit_code_5() {
    let server = MockServer::always(one_more_call());
    let home = priced(&server, &json!({"run": {"turns": 5}}));
    for flags in [
        &["--max-turns", "2"][..],
        &["--max-cost", "0.05"],
        &["--max-tokens", "12000"],
        &["--max-tool-calls", "1"],
    ] {
        let said = ctl::run(&home, &[&["prompt", "--private"], flags, &["Go on."]].concat());
        assert_eq!((said.code, said.stdout.as_str()), (5, ""), "{flags:?} {said:?}");
        assert!(said.stderr.contains("Error: Budget reached: "), "{flags:?} {said:?}");
        let said =
            Ctl::start_with(agentd(&home, &[flags, &["-p", "Go on."]].concat()), std::process::Stdio::null())
                .finish();
        assert_eq!(said.code, 5, "{flags:?} {said:?}");
    }
    // The stricter of flag and setting counts.
    let said = ctl::run(&home, &["prompt", "--private", "--max-turns", "50", "--json", "Go on."]);
    assert_eq!(said.code, 5);
    let reached = said.stdout.lines().find(|line| line.contains("\"budget_reached\"")).expect("an event");
    assert_eq!(serde_json::from_str::<Value>(reached).unwrap()["limit"], 5);
    for (flag, bad) in
        [("--max-cost", "-1"), ("--max-turns", "0"), ("--timeout", "10"), ("--max-tokens", "1k")]
    {
        let said = ctl::run(&home, &["prompt", &format!("{flag}={bad}"), "Hi"]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.stderr.contains(flag) && said.stderr.contains("expected"), "{said:?}");
        let said = ctl::feed(agentd(&home, &[&format!("{flag}={bad}"), "-p", "Hi"]), "");
        assert!(said.code == 1 && said.stderr.contains(flag) && said.stderr.contains("expected"), "{said:?}");
    }
}

#[test]
fn a_queued_message_counts_to_the_run_and_waits_when_it_is_over() {
    let gate = Gate::new();
    let server = MockServer::start([one_more_call().gate_first(&gate), says("Later.")]);
    let home = priced(&server, &json!({"run": {"turns": 1}}));
    let mut daemon = introduced(&home, &[]);
    daemon.send(&prompt("Begin."));
    assert_eq!(server.wait_for_requests(1).len(), 1);
    daemon.done(json!({"type": "follow_up", "message": "And then?"}));
    gate.open();
    let events = daemon.settled();
    assert_eq!(of_kind(&events, "budget_reached").len(), 1);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["pendingMessageCount"], 1);
}

#[test]
fn nothing_is_told_where_nothing_is_limited_or_to_clients_of_pi() {
    let server = MockServer::always(says("Yes."));
    let home = priced(&server, &json!({}));
    let mut daemon = introduced(&home, &[]);
    daemon.prompt("Hello?");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["budgets"], Value::Null);
    assert!(!home.agent_dir().join("budget-day.jsonl").exists());
    let limited = priced(&server, &json!({"run": {"turns": 1}}));
    let mut plain = Daemon::start(&limited, &[]);
    plain.prompt("Hello?");
    assert_eq!(plain.done(json!({"type": "get_state"})).get("budgets"), None);
}

#[test]
fn an_answer_that_a_budget_cuts_off_ends_the_run() {
    let cut = sse::text("Once upon a time") + &sse::end("length", (5000, 0, 200));
    let server = MockServer::always(Reply::stream(cut));
    let home = priced(&server, &json!({"run": {"costUsd": 0.06}}));
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Tell me a long story.");
    assert_ends_by(&events, "run", "costUsd");
    assert_eq!(text(answers(&events)[0]), "Once upon a time");
    assert_eq!(server.requests().len(), 1);
    let said = ctl::run(&home, &["prompt", "--private", "A long story."]);
    assert_eq!(said.code, 5, "{said:?}");
}

#[test]
fn a_provider_that_says_nothing_of_tokens_is_no_way_around_a_budget() {
    let call = sse::call_start(0, "c", "bash") + &sse::call_arguments(0, r#"{"command":"true"}"#);
    let end = sse::event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
    let server = MockServer::always(Reply::stream(call + &end));
    let home =
        priced(&server, &json!({"run": {"costUsd": 0.1}, "session": {"costUsd": 9, "tokens": 999_999}}));
    let mut daemon = introduced(&home, &[]);
    let reached = assert_ends_by(&daemon.prompt("Go on for ever."), "run", "costUsd");
    assert!(reached["used"].as_f64().unwrap() > 0.05, "{reached}");
    // Neither does the session forget it, nor the table of what was spent.
    let used =
        |daemon: &mut Daemon| daemon.done(json!({"type": "get_state"}))["budgets"]["session"]["used"].clone();
    let before = used(&mut daemon);
    let id = daemon.done(json!({"type": "get_state"}))["sessionId"].as_str().unwrap().to_owned();
    daemon.signal(Signal::KILL);
    daemon.wait();
    let mut again = introduced(&home, &["--session", &id]);
    assert_eq!(used(&mut again), before);
    let table = ctl::run(&home, &["usage", "--json"]);
    let table: Value = serde_json::from_str(&table.stdout).unwrap();
    let sum = (&table["total"]["costUsd"], &table["total"]["tokens"]["total"]);
    assert!((sum.0.as_f64().unwrap() - before["costUsd"].as_f64().unwrap()).abs() < 1e-9, "{table} {before}");
    assert_eq!(sum.1, &before["tokens"]);
}
