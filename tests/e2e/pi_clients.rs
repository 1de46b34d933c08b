//! Behaviour that published clients of pi rely on, and the cumulative updates that clients before 0.84 expect.

use std::collections::HashMap;

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, binaries, sse};
use serde_json::{Value, json};

use crate::support::{answers, prompt, text};

#[test]
fn the_first_line_answers_the_first_command() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&prompt("Sent before anything was read."));
    let first = daemon.line();
    assert_eq!((&first["type"], &first["data"]["disposition"]), (&json!("response"), &json!("started")));
    daemon.settled();
}

#[test]
fn every_flag_of_a_client_is_accepted() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let args = [
        "--mode",
        "rpc",
        "--provider",
        "fake",
        "--model",
        "other",
        "--model",
        "fake:high",
        "--thinking",
        "low",
        "--tools",
        "read,bash",
        "--exclude-tools",
        "bash",
        "--name",
        "n",
        "--no-session",
        "--no-extensions",
        "-ne",
        "--no-skills",
        "-ns",
        "--no-prompt-templates",
        "-np",
        "--no-themes",
        "--no-context-files",
        "-nc",
        "--no-mcp",
        "--approve",
        "--offline",
        "--verbose",
        "--skill",
        "s",
        "--extension",
        "e",
        "-e",
        "e",
        "--prompt-template",
        "p",
        "--theme",
        "dark",
        "--append-system-prompt",
        "a",
        "--append-system-prompt",
        "b",
        "a positional message",
    ];
    // A package without extensions.
    std::fs::create_dir_all(home.project().join("e/skills")).expect("a folder");
    let mut daemon = Daemon::start(&home, &args);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["model"]["id"], &state["sessionName"]), (&json!("fake"), &json!("n")));
    daemon.prompt("Hi");
    let tools = server.requests()[0].body["tools"].as_array().unwrap().len();
    assert_eq!(tools, 1);
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    let home = Home::new();
    for (args, says) in [
        (&["-x"][..], "Unknown option: -x"),
        (&["@file"], "@file arguments are not supported in RPC mode"),
        (&["--provider", "p"], "--provider requires --model"),
        (&["--api-key", "k"], "--api-key requires a model"),
    ] {
        let ended = Daemon::start(&home, args).wait();
        assert_eq!((ended.status.code(), ended.rest), (Some(1), Vec::<Value>::new()), "{args:?}");
        assert!(ended.stderr.contains(says), "{}", ended.stderr);
    }
}

#[test]
fn versions() {
    let home = Home::new();
    let version = |name: &str, args: &[&str]| {
        let path = home.root().join(name);
        if !path.exists() {
            std::os::unix::fs::symlink(binaries::agentd(), &path).unwrap();
        }
        let output = home.command(path).args(args).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(version("pi", &["--version"]), "1.5.2\n");
    assert_eq!(version("agentd", &["--compat", "pi", "-v"]), "1.5.2\n");
    let own = version("agentd", &["--version"]);
    assert!(own.starts_with("agentd ") && own.ends_with(" (pi wire 1.5.2)\n"), "{own}");
}

#[test]
fn the_directory_of_pi_is_enough() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start_with(&home, &[], |command| {
        command.env_remove("AGENTD_DIR").env("PI_CODING_AGENT_DIR", home.agent_dir());
    });
    daemon.prompt("Hi");
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn stray_answers_and_empty_lists_do_no_harm() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&json!({"type": "extension_ui_response", "id": "nobody", "cancelled": true}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Hi", "images": []}));
    // The stray answer gets no response.
    assert_eq!(daemon.line()["id"], "p");
    daemon.settled();
}

#[test]
fn deltas_alone_rebuild_the_message() {
    let answer = sse::text("Hé")
        + &sse::text("llo")
        + &sse::call_start(0, "c1", "bash")
        + &sse::call_arguments(0, "{\"comma")
        + &sse::call_arguments(0, "nd\":\"true\"}")
        + &sse::end("tool_calls", (1, 0, 1));
    let server = MockServer::start([Reply::stream(answer), Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let events = daemon.prompt("Hi");
    let (mut words, mut arguments) = (String::new(), String::new());
    let first_end = events
        .iter()
        .position(|event| event["type"] == "message_end" && event["message"]["role"] == "assistant");
    let (updates, message) = (&events[..first_end.unwrap()], &events[first_end.unwrap()]["message"]);
    for event in updates.iter().filter(|event| event["type"] == "message_update") {
        assert_eq!((event.get("message"), event["assistantMessageEvent"].get("partial")), (None, None));
        let update = &event["assistantMessageEvent"];
        let delta = update["delta"].as_str().unwrap_or_default();
        match update["type"].as_str().unwrap() {
            "text_delta" => words.push_str(delta),
            "toolcall_delta" => arguments.push_str(delta),
            "toolcall_start" => {
                assert_eq!((&update["id"], &update["toolName"]), (&json!("c1"), &json!("bash")))
            }
            "text_end" => assert_eq!(update["content"], "Héllo"),
            "toolcall_end" => assert_eq!(update["toolCall"]["arguments"], json!({"command": "true"})),
            _ => {}
        }
    }
    assert_eq!((words.as_str(), arguments.as_str()), ("Héllo", r#"{"command":"true"}"#));
    assert_eq!(text(message), "Héllo");
}

#[test]
fn partial_results_are_cumulative() {
    // One pipe for each step: a pipe that is opened again could still be open from before.
    let script = "mkfifo 1 2 3; for i in 1 2 3; do echo $i; read -r x < $i; done";
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": script}))])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&prompt("Go."));
    for (step, expected) in [("1", "1\n"), ("2", "1\n2\n"), ("3", "1\n2\n3\n")] {
        let shown = |line: &Value| text(&line["partialResult"]) == expected;
        daemon.until(expected, shown);
        // Opening the pipe for writing waits for the script to read.
        std::fs::write(home.project().join(step), "x\n").unwrap();
    }
    daemon.settled();
}

#[test]
fn separators_of_other_parsers_are_escaped() {
    let server = MockServer::always(Reply::stream(sse::answer("a\u{2028}b\u{2029}c\u{85}d")));
    let home = Home::with_model(&server);
    let mut command = home.command(binaries::agentd());
    command.args(["--stdio", "--on-eof", "drain"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{}\n", prompt("Hi")).as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(!stdout.contains(['\u{2028}', '\u{2029}']), "{stdout}");
    assert!(stdout.contains(r"a\u2028b\u2029c"), "{stdout}");
    // The file holds them unescaped.
    let file = std::fs::read_to_string(&home.session_files()[0]).unwrap();
    assert!(file.contains("a\u{2028}b\u{2029}c"), "{file}");
}

/// stdout holds only records of the protocol, whatever the configuration or a tool's output. The harness checks every line
/// of every test; this test provokes.
#[test]
fn stdout_stays_clean() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[(
            "c1",
            "bash",
            json!({"command": "echo plain > /proc/self/fd/1; echo err >&2; ls -l /proc/self/fd"}),
        )])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    home.write_agent("settings.json", "not json");
    let mut daemon = Daemon::start_with(&home, &["--thinking", "lots"], |command| {
        command.env("AGENTD_LOG", "trace").env("RUST_LOG", "trace");
    });
    daemon.prompt("Go.");
    let ended = daemon.close();
    assert!(ended.stderr.contains("lots") && ended.stderr.contains("settings.json"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("test-key-1234"), "a key in the log");
}

#[test]
fn lines_may_end_as_on_windows() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send_bytes(b"{\"id\":\"a\",\"type\":\"get_state\"}\r\n");
    let answer = daemon.line();
    assert_eq!((&answer["id"], &answer["success"]), (&json!("a"), &json!(true)));
}

/// One client passes only these variables, so `AGENTD_DIR` is not set.
#[test]
fn a_bare_environment_and_the_variables_of_pi_are_enough() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let sessions = home.root().join("tmp/sessions");
    let mut daemon = Daemon::start_with(&home, &["--mode", "rpc"], |command| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", home.root().join("home"));
        for (name, value) in [("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TERM", "xterm"), ("TZ", "UTC")] {
            command.env(name, value);
        }
        command.env("PI_CODING_AGENT_DIR", home.agent_dir()).env("PI_CODING_AGENT_SESSION_DIR", &sessions);
        for name in ["PI_OFFLINE", "PI_SKIP_VERSION_CHECK", "PI_TELEMETRY", "PI_PACKAGE_DIR"] {
            command.env(name, "1");
        }
    });
    daemon.prompt("Hi");
    let ended = daemon.close();
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_dir(sessions).unwrap().count(), 1);
}

/// An answer with thinking, text and a tool call, in pieces.
fn call() -> String {
    sse::delta(json!({"reasoning_content": "Let me "}))
        + &sse::delta(json!({"reasoning_content": "see.\n"}))
        + &sse::text("Running \"it\"")
        + &sse::text(".\u{2028}")
        + &sse::call_start(0, "call_1", "bash")
        + &sse::call_arguments(0, "{\"command\": \"echo ")
        + &sse::call_arguments(0, "hi\", \"timeout\": 1")
        + &sse::call_arguments(0, "0}")
        + &sse::end("tool_calls", (100, 0, 20))
}

fn replies() -> [Reply; 2] {
    [
        Reply::stream(call()),
        Reply::stream(sse::text("It ") + &sse::text("worked.") + &sse::end("stop", (5, 0, 2))),
    ]
}

/// Checks every line of a run, and that both forms of the answer equal the sum of the deltas.
fn check(lines: &[Value]) {
    let mut texts: HashMap<u64, String> = HashMap::new();
    let mut updates = 0;
    for line in lines {
        assert_ne!(line["message"]["role"], "system", "{line}");
        assert_ne!(line["message"]["stopReason"], "pending", "{line}");
        for message in line["messages"].as_array().into_iter().flatten() {
            assert_ne!(message["role"], "system", "{line}");
        }
        if line["type"] == "message_start" {
            texts.clear();
        }
        if line["type"] != "message_update" {
            continue;
        }
        updates += 1;
        let event = &line["assistantMessageEvent"];
        assert_eq!(line["message"], event["partial"]);
        assert_eq!(
            (&line["message"]["role"], &line["message"]["stopReason"]),
            (&json!("assistant"), &json!("stop"))
        );
        assert_eq!(line["message"]["usage"], line["usage"]);
        let index = event["contentIndex"].as_u64().expect("an index");
        texts.entry(index).or_default().push_str(event["delta"].as_str().unwrap_or_default());
        let content = line["message"]["content"].as_array().expect("a list");
        assert_eq!(content.len(), texts.len());
        for (at, block) in content.iter().enumerate() {
            let text = &texts[&(at as u64)];
            match block["type"].as_str().expect("a type") {
                "toolCall" => assert!(block["arguments"].is_object()),
                kind => assert_eq!(block[kind], json!(text)),
            }
        }
        if event["type"] == "toolcall_end" {
            assert_eq!(content[usize::try_from(index).expect("small")], event["toolCall"]);
        }
    }
    assert!(updates > 10, "{updates} updates");
}

/// The arguments of the call in each update.
fn commands(lines: &[Value]) -> Vec<Value> {
    let deltas = lines.iter().filter(|line| line["assistantMessageEvent"]["type"] == "toolcall_delta");
    let mut commands: Vec<Value> =
        deltas.map(|line| line["message"]["content"][2]["arguments"].clone()).collect();
    commands.dedup();
    commands
}

/// Runs over a private daemon, the bridge, and the socket.
#[test]
fn every_update_carries_the_answer_so_far() {
    let wanted = [
        json!({}),
        json!({"command": "echo "}),
        json!({"command": "echo hi", "timeout": 1}),
        json!({"command": "echo hi", "timeout": 10}),
    ];
    for shared in [false, true] {
        let server = MockServer::start(replies());
        let home = Home::with_model(&server);
        let service = shared.then(|| Service::start(&home, &[]));
        let args = ["--cumulative-updates", "--no-session"];
        let mut daemon =
            if shared { Daemon::start_shared(&home, &args) } else { Daemon::start(&home, &args) };
        let lines = daemon.prompt("Go");
        check(&lines);
        assert_eq!(commands(&lines)[..], wanted);
        let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
        let roles: Vec<&str> =
            messages.as_array().expect("a list").iter().filter_map(|it| it["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
        assert_eq!(daemon.close().status.code(), Some(0));
        drop(service);
    }
    let server = MockServer::start(replies());
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let hello =
        json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "cumulative": true}});
    let known = client.done(hello)["capabilities"].clone();
    assert!(known.as_array().expect("a list").contains(&json!("cumulative")));
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&prompt("Go"));
    let lines = client.settled();
    check(&lines);
    let update = lines.iter().find(|line| line["type"] == "message_update").expect("an update");
    assert!(update["seq"].is_u64() && update["sessionId"].is_string());
}

/// The form belongs to a connection, not to the session.
#[test]
fn joining_in_the_middle_goes_on_from_there() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("First, "))
        .gate(&gate)
        .then(sse::text("second.") + &sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut plain = service.client();
    let opened = plain.done(json!({"type": "open_session", "cwd": home.project()}));
    plain.send(&prompt("Go"));
    plain.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    let mut late = service.client();
    late.done(
        json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "cumulative": true}}),
    );
    // A client that comes back needs the answer so far, even with a number.
    let since = json!({"epoch": opened["epoch"], "seq": 1});
    let attached =
        late.done(json!({"type": "attach_session", "sessionId": opened["sessionId"], "since": since}));
    assert_eq!(attached["replayed"], false);
    gate.open();
    let update = late.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    assert_eq!(update["message"]["content"], json!([{"type": "text", "text": "First, second."}]));
    assert_eq!(update["assistantMessageEvent"]["partial"], update["message"]);
    let (theirs, ours) = (plain.settled(), late.settled());
    assert!(theirs.iter().all(|line| line["type"] != "message_update" || line.get("message").is_none()));
    assert_eq!(answers(&theirs).last(), answers(&ours).last());
}
