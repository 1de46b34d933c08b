//! Prompts of `agentd`'s own command line: `-p`, `--mode text`, `--mode json`.

use std::process::Stdio;

use agentd_e2e::{
    DEADLINE, Daemon, Gate, Home, MockServer, Reply, binaries,
    ctl::{Ctl, Finished, agentd, feed},
    processes, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{answers, assert_says, kinds, records, roles, text};

/// An image of one pixel; its first bytes tell its type.
const GIF: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

fn run(home: &Home, args: &[&str]) -> Finished {
    Ctl::start_with(agentd(home, args), Stdio::null()).finish()
}

fn lines(said: &Finished) -> Vec<Value> {
    said.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The last user message of a request.
fn asked(request: &agentd_e2e::mock_server::Request) -> String {
    let last = request.messages().last().expect("a message");
    text(last)
}

#[test]
fn the_text_of_the_last_answer_and_nothing_else() {
    let server = MockServer::start([
        Reply::stream(
            sse::text("Let me look.") + &sse::calls(&[("c1", "bash", json!({"command": "echo seen"}))]),
        ),
        Reply::stream(sse::answer("It is\nfine.")),
    ]);
    let home = Home::with_model(&server);
    let said = run(&home, &["-p", "Look."]);
    let expected = Finished { code: 0, stdout: "It is\nfine.\n".into(), stderr: String::new() };
    assert_eq!(said, expected);
    assert_eq!(roles(&home.session_files()[0]), ["system", "user", "assistant", "toolResult", "assistant"]);
}

#[test]
fn a_level_that_was_asked_for_on_going_on_is_there_the_next_time() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "fake", "reasoning": true}],
    }}}));
    for args in [
        &["-p", "--model", "fake:high", "1"][..],
        &["-p", "-c", "2"],
        &["-p", "-c", "--thinking", "low", "3"],
        &["-p", "-c", "--thinking", "low", "4"],
        &["-p", "-c", "5"],
    ] {
        assert_eq!(run(&home, args).code, 0, "{args:?}");
    }
    let requests = server.requests();
    let asked: Vec<_> = requests.iter().map(|request| request.body["reasoning_effort"].as_str()).collect();
    assert_eq!(asked, ["high", "high", "low", "low", "low"].map(Some));
    let records = records(&home.session_files()[0]);
    let levels = records.iter().filter_map(|record| record["thinkingLevel"].as_str());
    assert_eq!(levels.collect::<Vec<_>>(), ["high", "low"]);
}

#[test]
fn prompts_are_put_together_from_stdin_files_and_words() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "fake", "input": ["text", "image"]}],
    }}}));
    home.write("a.txt", "content\n");
    home.write("empty", "");
    std::fs::write(home.project().join("dot.png"), GIF).unwrap();
    let said = feed(
        agentd(&home, &["--mode", "text", "@a.txt", "first", "@empty", "@dot.png", "second", "--", "@third"]),
        "\n piped \n",
    );
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "Ok.\n", ""));
    let requests = server.requests();
    let project = home.project().display().to_string();
    let first = requests[0].messages().last().unwrap();
    assert_eq!(
        first["content"][0]["text"],
        format!(
            "piped<file name=\"{project}/a.txt\">\ncontent\n\n</file>\n<file name=\"{project}/dot.png\"></file>\nfirst"
        )
    );
    assert!(
        first["content"][1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/gif;base64,R0lG")
    );
    // Further words become prompts of the same session.
    assert_eq!((asked(&requests[1]), asked(&requests[2])), ("second".into(), "@third".into()));
    assert_eq!(requests[2].messages().len(), 6);
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn input_alone_is_a_prompt_and_sessions_go_on() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    assert_eq!(feed(agentd(&home, &["-p"]), "from a pipe").code, 0);
    assert_eq!(run(&home, &["-c", "-p", "and then"]).code, 0);
    let requests = server.requests();
    assert_eq!((asked(&requests[0]), asked(&requests[1])), ("from a pipe".into(), "and then".into()));
    assert_eq!(requests[1].messages().len(), 4);
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn failures_have_exit_code_1_and_their_reason_on_stderr() {
    let failed = || Reply::status(400, "application/json", r#"{"error":{"message":"no such thing"}}"#);
    let cut = || Reply::stream(sse::text("Half an ans") + &sse::end("length", (1, 0, 1)));
    let good = || Reply::stream(sse::answer("Fine."));
    let check = |replies: &[fn() -> Reply], prompts: &[&str], code: i32, stdout: &str, stderr: &[&str]| {
        let server = MockServer::start(replies.iter().map(|reply| reply()));
        let home = Home::with_model(&server);
        home.settings(&json!({"compaction": {"enabled": false}}));
        let said = run(&home, &[&["-p"], prompts].concat());
        assert_eq!((said.code, said.stdout.as_str()), (code, stdout), "{said:?}");
        assert_says(&said.stderr, stderr);
    };
    check(&[failed], &["a"], 1, "", &["no such thing"]);
    let truncated = "Response was truncated: the model reached its output token limit.\n";
    check(&[cut], &["a"], 1, "Half an ans\n", &[truncated]);
    // The last answer decides; an earlier failure is reported.
    check(
        &[failed, good],
        &["a", "b"],
        0,
        "Fine.\n",
        &["Warning: message 1 of 2 was not answered", "no such thing"],
    );
    check(&[good, failed], &["a", "b"], 1, "", &["no such thing"]);
}

#[test]
fn what_cannot_begin_says_why() {
    let home = Home::new();
    for (args, says) in [
        (&["-p", "Hi"][..], &["No API key found for the selected model.", "agentctl login"][..]),
        (&["--mode", "json", "Hi"], &["No API key found for the selected model."]),
        (&["-p"], &["Error: there is no message", "git diff | agentd -p"]),
        (&["--mode", "json", "", " "], &["Error: there is no message"]),
        (&["-p", "@nope.txt"], &["/nope.txt", "Error: File not found: /"]),
        (&["-p", "@.", "x"], &["is a folder"]),
        (&["-p", "--session", "zzz", "x"], &["Error: No session found matching 'zzz'"]),
        (&["-p", "--model", "none/such", "x"], &["none/such"]),
    ] {
        let said = run(&home, args);
        assert_eq!(said.code, 1, "{args:?}: {said:?}");
        assert_says(&said.stderr, says);
        // With `--mode json` the header may be printed already.
        assert!(said.stdout.is_empty() || args[1] == "json" && said.stdout.lines().count() == 1, "{said:?}");
    }
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn json_is_the_header_and_the_events_of_the_protocol() {
    let replies = || {
        [
            Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
            Reply::stream(sse::answer("A\u{2028}B")),
            Reply::stream(sse::answer("Again.")),
        ]
    };
    let server = MockServer::start(replies());
    let home = Home::with_model(&server);
    let said = run(&home, &["--mode", "json", "one", "two"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    let records_said = lines(&said);
    assert_eq!(records_said[0], records(&home.session_files()[0])[0]);

    // `agentd --stdio` sends the same events.
    let server = MockServer::start(replies());
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let mut events = daemon.prompt("one");
    events.extend(daemon.prompt("two"));
    events.retain(|event| event["type"] != "response");
    assert_eq!(kinds(&records_said[1..]), kinds(&events));
    assert_eq!(text(answers(&records_said).last().unwrap()), "Again.");
    assert!(said.stdout.contains(r"A\u2028B"), "{}", said.stdout);
    assert_eq!(records_said.last().unwrap()["type"], "agent_settled");
}

#[test]
fn a_failed_answer_is_an_event_like_others_in_json() {
    let server = MockServer::start([Reply::status(400, "application/json", r#"{"error":{"message":"no"}}"#)]);
    let home = Home::with_model(&server);
    let said = run(&home, &["--mode", "json", "--no-session", "Hi"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_eq!(answers(&lines(&said))[0]["stopReason"], "error");
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn json_for_clients_that_want_the_answer_so_far() {
    let server = MockServer::always(Reply::stream(sse::text("Hel") + &sse::answer("lo")));
    let home = Home::with_model(&server);
    let said = run(&home, &["--mode", "json", "--cumulative-updates", "Hi"]);
    let updates: Vec<Value> =
        lines(&said).into_iter().filter(|event| event["type"] == "message_update").collect();
    assert_eq!(text(&updates.last().expect("updates")["message"]), "Hello");
    assert!(!said.stdout.contains(r#""role":"system""#), "{}", said.stdout);
}

#[test]
fn signals_store_what_there_is_and_have_their_exit_codes() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
        let home = Home::with_model(&server);
        let mut json = Ctl::start_with(agentd(&home, &["--mode", "json", "Go."]), Stdio::null());
        json.wait_for_stdout("text_delta");
        json.signal(signal);
        let said = json.finish();
        assert_eq!((said.code, said.stderr.as_str()), (code, ""));
        assert_eq!(answers(&lines(&said))[0]["stopReason"], "aborted");
        let last = records(&home.session_files()[0]).pop().expect("a last entry");
        assert_eq!(
            (text(&last["message"]).as_str(), &last["message"]["stopReason"]),
            ("Part", &json!("aborted"))
        );
    }
}

#[test]
fn a_signal_ends_what_tools_started() {
    let server = MockServer::start([Reply::stream(sse::calls(&[(
        "c1",
        "bash",
        json!({"command": "setsid sleep 1000 & echo $! > pid.new; mv pid.new pid; echo up; wait"}),
    )]))]);
    let home = Home::with_model(&server);
    let mut print = Ctl::start_with(agentd(&home, &["--mode", "json", "Go."]), Stdio::null());
    print.wait_for_stdout("up\\n");
    let child = processes::watch(&[home.read("pid").trim().parse().unwrap()]);
    print.signal(Signal::TERM);
    assert_eq!(print.finish().code, 143);
    child.assert_gone_within(DEADLINE);
}

#[test]
fn a_reader_that_leaves_ends_the_run() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("a")).gate(&gate).then(sse::text("b")).hang()]);
    let home = Home::with_model(&server);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = agentd(&home, &["--mode", "json", "Go."]);
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // The command holds the write end, too.
    drop(command);
    gate.wait_until_reached();
    drop(reader);
    gate.open();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_says(&stderr, &["Error: cannot write to stdout: Broken pipe"]);
    server.wait_for_disconnects(1);
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(last["message"]["stopReason"], "aborted");
}

/// The output exceeds all buffers on the way, and the reader begins late.
#[test]
fn a_slow_reader_gets_everything() {
    let word = "x".repeat(1 << 16);
    let words: String = (0..100).map(|_| sse::text(&word)).collect();
    let server = MockServer::start([Reply::stream(words + &sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = agentd(&home, &["--mode", "json", "--no-session", "Go."]);
    let mut child = command.stdin(Stdio::null()).stdout(writer).spawn().unwrap();
    drop(command);
    let _ = server.wait_for_requests(1);
    let said = std::io::read_to_string(reader).unwrap();
    assert!(child.wait().unwrap().success());
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let deltas = events.iter().filter_map(|event| event["assistantMessageEvent"]["delta"].as_str());
    assert_eq!(deltas.map(str::len).sum::<usize>(), 100 << 16);
    assert_eq!(text(answers(&events)[0]).len(), 100 << 16);
}

#[test]
fn the_examples_of_the_print_mode_page_run() {
    let page = std::fs::read_to_string(binaries::workspace().join("docs/print-mode.md")).unwrap();
    let examples: Vec<&str> = page
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```"))
        .map(|(block, _)| block)
        .collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let home = Home::new();
        home.write("Cargo.toml", "[package]\nname = \"x\"\n");
        let script = example.replace("agentd ", &format!("{} ", binaries::agentd().display()));
        let mut shell = home.command("/bin/sh");
        shell.args(["-e", "-c", &script]);
        let said = Ctl::start_with(shell, Stdio::null()).finish();
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{example}");
        assert!(!said.stdout.is_empty(), "{example}");
    }
}
