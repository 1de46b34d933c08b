//! Shell commands: the user's own, and the tool `bash` with terminals, folders, variables and refused commands. Background
//! processes have a file of their own.

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, binaries, ctl, processes, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, ended, text};

#[test]
fn output_exit_code_and_environment() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = daemon.done(json!({"type": "bash", "command": "pwd; echo err >&2; exit 7"}));
    let output = format!("{}\nerr\n", home.project().display());
    assert_eq!(result, json!({"output": output, "exitCode": 7, "cancelled": false, "truncated": false}));
    let result = daemon.done(json!({"type": "bash", "command": "kill -TERM $$"}));
    assert_eq!(result["exitCode"], 143);
    // stdin is empty: neither our terminal nor our pipes.
    assert_eq!(daemon.done(json!({"type": "bash", "command": "cat; echo end"}))["output"], "end\n");
}

#[test]
fn the_model_sees_commands_unless_excluded() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "bash", "command": "echo seen"}));
    daemon.done(json!({"type": "bash", "command": "echo hidden", "excludeFromContext": true}));
    daemon.prompt("What did I run?");
    let requests = server.requests();
    let all: Vec<String> = requests[0].messages().iter().map(text).collect();
    let all = all.join("\n");
    assert!(all.contains("Ran `echo seen`\n```\nseen\n\n```"), "{all}");
    assert!(!all.contains("hidden"), "{all}");
}

#[test]
fn abort_bash_kills_what_was_started() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait";
    daemon.send(&json!({"id": "b", "type": "bash", "command": script}));
    let mut output = String::new();
    while output.lines().count() < 2 {
        let update = daemon.event("bash_execution_update");
        assert_eq!(update["id"], "b");
        output.push_str(update["delta"].as_str().expect("a delta"));
    }
    let ids: Vec<i32> = output.lines().map(|line| line.parse().expect("a process id")).collect();
    let children = processes::watch(&ids);
    // `abort` stops runs and leaves the command alone.
    daemon.done(json!({"type": "abort"}));
    assert!(children.all_alive());
    daemon.done(json!({"type": "abort_bash"}));
    children.assert_gone_within(DEADLINE);
    let response = daemon.until("the response", |line| line["id"] == "b" && line["type"] == "response");
    assert_eq!(response["data"]["cancelled"], true);
    assert_eq!(response["data"].get("exitCode"), None);
    assert_eq!(response["data"]["output"], json!(output));
}

#[test]
fn long_output_is_cut_at_the_front_and_kept_in_a_file() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = daemon.done(json!({"type": "bash", "command": "seq 1 5000"}));
    assert_eq!(result["truncated"], true);
    let output = result["output"].as_str().unwrap();
    assert!(output.ends_with("\n5000") || output.ends_with("\n5000\n"), "{}", &output[output.len() - 20..]);
    assert!(output.lines().count() <= 2000);
    let path = result["fullOutputPath"].as_str().expect("a path");
    assert!(path.starts_with(&home.root().join("tmp").display().to_string()), "{path}");
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!(whole.lines().count(), 5000);
}

#[test]
fn commands_run_at_the_same_time() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "bash", "command": "mkfifo pipe"}));
    daemon.send(&json!({"id": "r", "type": "bash", "command": "cat pipe"}));
    daemon.send(&json!({"id": "w", "type": "bash", "command": "echo through > pipe"}));
    let answered = |id: &'static str| move |line: &Value| line["type"] == "response" && line["id"] == id;
    let lines = daemon.all_until("the writer's end", answered("w"));
    let reader = match lines.into_iter().find(answered("r")) {
        Some(line) => line,
        None => daemon.until("the reader's end", answered("r")),
    };
    assert_eq!(reader["data"]["output"], "through\n");
}

/// A model that makes these calls one turn each, then answers with text.
pub(crate) fn calling(calls: &[(&str, Value)]) -> MockServer {
    let replies = calls.iter().enumerate().map(|(number, (tool, arguments))| {
        Reply::stream(sse::calls(&[(&format!("c{number}"), tool, arguments.clone())]))
    });
    MockServer::start(replies.chain([Reply::stream(sse::answer("Ok."))]).collect::<Vec<_>>())
}

/// The results of these calls with this setting `bash`.
fn results(bash: &Value, calls: &[(&str, Value)]) -> Vec<Value> {
    let home = Home::with_model(&calling(calls));
    results_in(&home, bash, &["--no-session"])
}

fn results_in(home: &Home, bash: &Value, args: &[&str]) -> Vec<Value> {
    home.settings(&json!({ "bash": bash }));
    let events = Daemon::start(home, args).prompt("Go.");
    ended(&events, "toolResult").into_iter().cloned().collect()
}

/// The result of one call of the tool.
fn bash(setting: &Value, arguments: Value) -> Value {
    results(setting, &[("bash", arguments)]).remove(0)
}

#[test]
fn a_command_can_have_a_terminal() {
    let on = json!({"pty": true, "cols": 100});
    let script = "test -t 0 && test -t 1 && test -t 2 && echo yes; stty size; tput cols; echo $TERM $PAGER";
    let result = bash(&on, json!({"command": script, "pty": true, "rows": 30}));
    assert_eq!(text(&result), "yes\n30 100\n100\nxterm-256color cat\n", "{result}");
    assert_eq!(result["isError"], false);
    let result = bash(&on, json!({"command": "test -t 1 || echo no"}));
    assert_eq!(text(&result), "no\n");
    // Without the setting, the argument has no effect.
    let result = bash(&json!({}), json!({"command": "test -t 1 || echo no", "pty": true}));
    assert_eq!(text(&result), "no\n");
    let result = bash(&on, json!({"command": "true", "pty": true, "rows": 0}));
    assert_eq!(text(&result), "Invalid rows: must be a whole number from 1 to 1000");
}

#[test]
fn what_is_shown_of_a_terminal_is_its_text() {
    let script =
        "for i in 1 50 100; do printf '\\r%3d%%' $i; done; echo; printf '\\033[31mred\\033[0m\\n'; exit 3";
    let result = bash(&json!({"pty": true}), json!({"command": script, "pty": true}));
    assert_eq!(text(&result), "100%\nred\n\n\nCommand exited with code 3");
    let result = bash(&json!({"pty": true}), json!({"command": "seq 5000", "pty": true}));
    assert_says(&text(&result), &["5000\n\n[Showing lines 3001-5000 of 5000. Full output: "]);
    let file = std::fs::read_to_string(result["details"]["fullOutputPath"].as_str().expect("a path"));
    assert!(file.is_err(), "the home is gone with its test");
}

#[test]
fn nobody_waits_for_keys_that_nobody_presses() {
    let script = "cat; read -r line || echo end; read -r line < /dev/tty || echo end; read -rsn 1 key; echo key; bash -i 2>/dev/null; echo done";
    let result = bash(&json!({"pty": true}), json!({"command": script, "pty": true}));
    let said = text(&result);
    assert!(said.contains("end\nend\nkey\n") && said.ends_with("done\n"), "{said:?}");
    // The terminal answers queries.
    let script =
        "stty -echo -icanon; printf '\\033[6n'; IFS= read -rd R answer; printf '%q' \"$answer\"; echo";
    let result = bash(&json!({"pty": true}), json!({"command": script, "pty": true}));
    assert_says(&text(&result), &["[1;1"]);
    // A command that still waits is stopped by its time limit.
    let script = "echo before; stty -icanon -echo min 1; while :; do head -c 1 > /dev/null; done";
    let result = bash(&json!({"pty": true}), json!({"command": script, "pty": true, "timeout": 2}));
    assert_eq!(text(&result), "before\n\n\nCommand timed out after 2 seconds");
}

#[test]
fn a_setting_limits_the_time_of_commands_that_say_none() {
    let result = bash(&json!({"timeoutMs": 500}), json!({"command": "echo before; sleep 1000"}));
    let wanted = "before\n\n\nCommand timed out after 0.5 seconds, the default here: the argument timeout gives a command more time";
    assert_eq!(text(&result), wanted);
    // The call's own counts, also where it is longer.
    let result = bash(&json!({"timeoutMs": 500}), json!({"command": "sleep 1; echo after", "timeout": 600}));
    assert_eq!(text(&result), "after\n");
}

#[test]
fn folders_and_variables_are_the_commands_own() {
    let home = Home::with_model(&calling(&[
        ("bash", json!({"command": "pwd; echo $A-$PI_MODEL", "cwd": "sub", "env": {"A": "b c"}})),
        ("bash", json!({"command": "true", "cwd": "missing"})),
        ("bash", json!({"command": "true", "env": {"1A": "secret"}})),
        ("bash", json!({"command": "pwd; echo $A."})),
    ]));
    home.write("sub/file", "");
    let results = results_in(&home, &json!({"cwd": true, "env": true}), &["--no-session"]);
    let sub = home.project().join("sub");
    assert_eq!(text(&results[0]), format!("{}\nb c-fake\n", sub.display()));
    let missing = home.project().join("missing");
    let expected =
        format!("Working directory does not exist: {}\nCannot execute bash commands.", missing.display());
    assert_eq!((text(&results[1]), &results[1]["isError"]), (expected, &json!(true)));
    assert_says(&text(&results[2]), &["Invalid environment variable name: \"1A\""]);
    assert_eq!(text(&results[3]), format!("{}\n.\n", home.project().display()));
}

#[test]
fn commands_are_refused_where_a_tool_does_better() {
    let home = Home::with_model(&calling(&[
        ("bash", json!({"command": "cat a.txt"})),
        ("bash", json!({"command": "command cat a.txt"})),
        ("bash", json!({"command": "cat a.txt | tr a-z A-Z"})),
        ("bash", json!({"command": "grep -rn one ."})),
    ]));
    home.write("a.txt", "one\n");
    let results = results_in(&home, &json!({"intercept": true}), &["--no-session"]);
    assert_eq!(results[0]["isError"], true);
    assert_says(&text(&results[0]), &["was not run", "Call read with {\"path\":\"a.txt\"}."]);
    assert_eq!(text(&results[1]), "one\n");
    assert_eq!(text(&results[2]), "ONE\n");
    // `grep` is not active by default, so the command runs.
    assert_eq!(text(&results[3]), "./a.txt:1:one\n");
}

#[test]
fn rules_of_ones_own_refuse_and_bad_ones_are_told() {
    let call = ("bash", json!({"command": "npm install"}));
    let home = Home::with_model(&calling(&[call]));
    home.write_agent(
        "settings.json",
        "{\"bash\": {\"intercept\": [\n{\"pattern\": \"^npm (\"},\n{\"pattern\": \"^npm i\", \"message\": \"Use pnpm.\"}]}}",
    );
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    assert_eq!(text(ended(&events, "toolResult")[0]), "The command was not run. Use pnpm.");
    let told = daemon.done(json!({"type": "get_diagnostics"}));
    let told = &told["diagnostics"][0];
    assert_eq!((&told["line"], &told["kind"]), (&json!(2), &json!("settings")), "{told}");
    assert_says(&told.to_string(), &["bash.intercept[0]", "no regular expression: unclosed group"]);
    let explained = ctl::run(&home, &["config", "explain", "bash.background"]);
    assert_says(&explained.stdout, &["bash.background", "false"]);
}

#[test]
fn the_examples_of_the_documentation_can_be_used() {
    let text = std::fs::read_to_string(binaries::workspace().join("docs/tools.md")).unwrap();
    let examples = text.split("```json\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    let mut count = 0;
    for (example, _) in examples {
        let home = Home::new();
        home.settings(&serde_json::from_str(example).expect("JSON"));
        let checked = ctl::run(&home, &["config", "check"]);
        assert!(!format!("{checked:?}").contains("ignored"), "{example}: {checked:?}");
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn models_are_told_of_what_is_on_and_of_nothing_else() {
    let offered = |setting: Value, args: &[&str]| {
        let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
        let home = Home::with_model(&server);
        home.settings(&setting);
        Daemon::start(&home, &[args, &["--no-session"]].concat()).prompt("Go.");
        let body = server.requests()[0].body.clone();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> =
            tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect();
        let bash = tools.iter().find(|tool| tool["function"]["name"] == "bash");
        let arguments = bash.map(|bash| &bash["function"]["parameters"]["properties"]);
        let arguments = arguments.and_then(Value::as_object).map(|it| it.keys().cloned().collect::<Vec<_>>());
        (names.join(" "), arguments.unwrap_or_default().join(" "))
    };
    let plain = ("read bash edit write".to_owned(), "command timeout".to_owned());
    assert_eq!(offered(json!({}), &[]), plain);
    assert_eq!(offered(json!({"bash": {"pty": false, "rows": 5}}), &[]), plain);
    let all = json!({"bash": {"pty": true, "background": true, "cwd": true, "env": true}});
    let of_bash = "command timeout pty rows cols background cwd env";
    let processes = "process_list process_output process_input process_kill";
    assert_eq!(offered(all.clone(), &[]), (format!("read bash edit write {processes}"), of_bash.to_owned()));
    assert_eq!(offered(all.clone(), &["--tools", "bash"]), (format!("bash {processes}"), of_bash.to_owned()));
    let without = offered(all.clone(), &["--tools", "bash", "--exclude-tools", "process_i*,process_kill"]);
    assert_eq!(without.0, "bash process_list process_output");
    assert_eq!(offered(all, &["--tools", "read"]), ("read".to_owned(), String::new()));
}
