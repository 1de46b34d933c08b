//! The tool `eval`: cells of code in interpreters that stay, on the real binaries.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, ctl, processes, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    sandbox::{WORKSPACE, is_enforced},
    support::{assert_says, ended, text},
};

/// A PNG of one pixel, as an expression of Python.
const PNG: &str = "bytes.fromhex('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c636060600000000400\
                   01f61738550000000049454e44ae426082')";

/// A home whose sessions have the tool, with more settings.
fn home(model: &MockServer, more: Value) -> Home {
    let home = Home::with_model(model);
    let mut settings = json!({"eval": {"enabled": true}});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    home.settings(&settings);
    home
}

/// A model that runs these cells of Python, a turn each, and then says `Ok.`
fn cells(cells: &[&str]) -> MockServer {
    in_language("py", cells)
}

fn in_language(language: &str, cells: &[&str]) -> MockServer {
    let mut replies: Vec<Reply> = Vec::new();
    for (number, code) in cells.iter().enumerate() {
        let arguments = json!({"language": language, "code": code});
        replies.push(Reply::stream(sse::calls(&[(&format!("c{number}"), "eval", arguments)])));
    }
    replies.push(Reply::stream(sse::answer("Ok.")));
    MockServer::start(replies)
}

fn results(events: &[Value]) -> Vec<String> {
    ended(events, "toolResult").into_iter().map(text).collect()
}

fn pid(text: &str) -> i32 {
    text.trim().parse().expect("a process id")
}

#[test]
fn it_is_there_only_where_the_setting_says_so_and_an_interpreter_is() {
    let model = MockServer::start([]);
    let plain = Home::with_model(&model);
    let ask = |home: &Home| {
        let mut daemon = Daemon::start(home, &["--no-session"]);
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.prompt("Go.");
        model.requests().last().unwrap().clone()
    };
    ask(&plain);
    assert_eq!(offered(&model, 0), ["read", "bash", "edit", "write"]);
    let with = home(&model, json!({}));
    let request = ask(&with);
    assert_eq!(offered(&model, 1), ["read", "bash", "edit", "write", "eval"]);
    assert!(request.messages()[0].to_string().contains("- eval: Run code in an interpreter"));

    // No Python: only JavaScript is declared.
    let bin = with.project().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(which("node"), bin.join("node")).unwrap();
    let mut only_node = Daemon::start_with(&with, &["--no-session"], |command| {
        command.env("PATH", &bin);
    });
    model.push(Reply::stream(sse::answer("Ok.")));
    only_node.prompt("Go.");
    let tools = model.requests().last().unwrap().body["tools"].to_string();
    assert!(tools.contains(r#""enum":["js"]"#) && !tools.contains("Python"), "{tools}");
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a search path");
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .expect("the program")
}

#[test]
fn state_stays_with_the_session_and_nothing_outlives_it() {
    let model = cells(&[
        "import os, subprocess\nx = 41\nchild = subprocess.Popen(['sleep', '1000'])\nchild.pid",
        "x += 1; x",
        "os.getpid()",
    ]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    let seen = results(&events);
    assert_eq!(seen[1], "42\n");
    let (child, kernel) = (pid(&seen[0]), pid(&seen[2]));
    let updates = events.iter().filter(|event| event["type"] == "tool_execution_start");
    assert_eq!(updates.count(), 3);
    let details = &ended(&events, "toolResult")[1]["details"];
    assert_eq!((&details["language"], &details["cells"][0]["status"]), (&json!("py"), &json!("complete")));
    let listed = daemon.done(json!({"type": "list_processes"})).to_string();
    assert!(listed.contains(&format!("\"pid\":{kernel},")), "{listed}");
    let watched = processes::watch(&[child, kernel]);
    daemon.close();
    watched.assert_gone_within(DEADLINE);
}

#[test]
fn an_image_reaches_the_model_and_the_exported_page() {
    let model = cells(&[&format!("display({PNG})")]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    let result = ended(&events, "toolResult")[0].clone();
    assert_eq!(text(&result), "(displayed 1 image(s); no text output)");
    assert_eq!(result["content"][1]["mimeType"], "image/png");
    daemon.done(json!({"type": "export_html", "outputPath": "page.html"}));
    assert!(home.read("page.html").contains("data:image/png;base64,iVBORw0KGgo"));
}

#[test]
fn cells_call_tools_through_the_permissions() {
    let code = "write('made.txt', 'by a cell')\nprint(read('made.txt'))\ntry:\n    tool.bash(command='rm made.txt')\nexcept ToolError as error:\n    \
                print('refused:', error)\ntool.edit(path='made.txt', edits=[{'oldText': 'cell', 'newText': 'tool'}])\nlen(tool.bash(command='ls'))";
    let model = cells(&[code]);
    let rules = json!([{ "tool": "bash", "command": "rm *", "action": "deny", "reason": "keep it" }]);
    let home = home(&model, json!({"permissions": {"rules": rules}, "undo": {"enabled": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    let events = daemon.prompt("Go.");
    let result = ended(&events, "toolResult")[0].clone();
    assert_says(
        &text(&result),
        &[
            "by a cell\n",
            "refused: Permission denied: rule 1 of the setting permissions.rules refuses it: keep it.",
        ],
    );
    assert_eq!(home.read("made.txt"), "by a tool");
    let nested: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_end" && event["parentToolCallId"] == "c0")
        .map(|event| (event["toolName"].as_str().unwrap(), event["isError"].as_bool().unwrap()))
        .collect();
    assert_eq!(nested, [("write", false), ("read", false), ("bash", true), ("edit", false), ("bash", false)]);
    let record = &result["nestedCalls"];
    assert_eq!(
        (record["calls"].as_array().map(Vec::len), &record["complete"]),
        (Some(5), &json!(true)),
        "{record}"
    );
    let file = home.session_files().pop().unwrap();
    let stored = fs::read_to_string(file).unwrap();
    assert!(
        stored.contains("\"nestedCalls\"") && !stored.contains("\"toolName\":\"write\""),
        "calls of cells are no entries"
    );
}

#[test]
fn a_tool_that_is_not_there_and_the_kernel_itself_are_refused() {
    let code = "for name, arguments in (('nothing', {}), ('eval', {'language': 'py', 'code': '1'})):\n    try:\n        call(name, arguments)\n    except \
                ToolError as error:\n        print(error)\nprint(call('eval', {'language': 'js', 'code': '1 + 1'}))";
    let model = cells(&[code]);
    let home = home(&model, json!({}));
    let events = Daemon::start(&home, &[]).prompt("Go.");
    assert_says(
        &results(&events)[0],
        &["Tool nothing not found", "A cell cannot run another cell in its own kernel", "\n2\n"],
    );
}

#[test]
fn an_abort_ends_the_cell_and_the_kernel_goes_on() {
    let code = "import subprocess\nkept = 'here'\nopen('pid', 'w').write(str(subprocess.Popen(['setsid', 'sleep', '1000']).pid) + '\\n')\n\
                import time\nprint('sleeps')\ntime.sleep(1000)";
    let arguments = json!({"language": "py", "code": code});
    let model = MockServer::start([Reply::stream(sse::calls(&[("c0", "eval", arguments)]))]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    daemon.until("what the cell prints", |event| {
        event["type"] == "tool_execution_update" && text(&event["partialResult"]).contains("sleeps")
    });
    let watched = processes::watch(&[pid(&home.read("pid"))]);
    daemon.done(json!({"type": "abort"}));
    watched.assert_gone_within(DEADLINE);
    let aborted = results(&daemon.settled());
    assert!(aborted[0].starts_with("sleeps") && aborted[0].ends_with("Cell aborted"), "{aborted:?}");
    for reply in
        [sse::calls(&[("c9", "eval", json!({"language": "py", "code": "kept"}))]), sse::answer("Ok.")]
    {
        model.push(Reply::stream(reply));
    }
    let events = daemon.prompt("Go on.");
    assert_eq!(results(&events), ["'here'\n"]);
}

#[test]
fn a_killed_kernel_is_replaced_with_a_note() {
    let model = cells(&["import os; os.getpid()"]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let kernel = pid(&results(&daemon.prompt("Go."))[0]);
    let watched = processes::watch(&[kernel]);
    processes::signal(u32::try_from(kernel).unwrap(), Signal::KILL);
    watched.assert_gone_within(DEADLINE);
    for reply in
        [sse::calls(&[("c9", "eval", json!({"language": "py", "code": "'on'"}))]), sse::answer("Ok.")]
    {
        model.push(Reply::stream(reply));
    }
    let events = daemon.prompt("Go on.");
    assert_says(
        &results(&events)[0],
        &["[The Python kernel of earlier cells is gone: signal 9 ended it.", "'on'"],
    );
}

#[test]
fn plan_mode_and_rules_refuse_it_and_the_client_shows_it() {
    let model = cells(&["print('ran')"]);
    let home_of_plan = home(&model, json!({}));
    let ran = ctl::run(&home_of_plan, &["prompt", "--model", "fake/fake", "--plan-mode", "Go."]);
    let told = model.requests()[1].body.to_string();
    assert!(told.contains("Nothing is changed before the user has approved a plan"), "{told} {}", ran.stderr);

    let model = in_language("js", &["console.log('ran')"]);
    let rules = json!([{ "tool": "eval", "action": "deny", "reason": "no code" }]);
    let refused = home(&model, json!({"permissions": {"rules": rules}}));
    let ran = ctl::run(&refused, &["prompt", "--model", "fake/fake", "Go."]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_says(&ran.stderr, &["eval js console.log('ran')", "no code"]);
}

#[test]
fn javascript_keeps_its_state_and_calls_tools() {
    let code = "const names = (await tool.bash({command: 'echo a; echo b'})).trim().split('\\n'); names";
    let model = in_language("js", &[code, "const more = [...names, 'c']; more.length"]);
    let home = home(&model, json!({}));
    let events = Daemon::start(&home, &[]).prompt("Go.");
    assert_eq!(results(&events), ["[ 'a', 'b' ]\n", "3\n"]);
}

#[test]
fn loops_of_javascript_are_interrupted_wherever_they_run() {
    let (timer, after_await) =
        ("setInterval(() => { for (;;); }, 0); await new Promise(() => {})", "await 1; for (;;) n++");
    let call = |code: &str, timeout: u64| {
        Reply::stream(sse::calls(&[(
            "c",
            "eval",
            json!({"language": "js", "code": code, "timeout": timeout}),
        )]))
    };
    let model = MockServer::start([
        call("var n = 1; process.pid", 30),
        call(after_await, 1),
        call(timer, 1),
        call("`${process.pid} ${n > 1}`", 30),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = home(&model, json!({}));
    let seen = results(&Daemon::start(&home, &[]).prompt("Go."));
    for interrupted in &seen[1..3] {
        assert_says(interrupted, &["Interrupted"]);
    }
    // The kernel is the same one, with its variables.
    assert_eq!(seen[3].trim(), format!("'{} true'", pid(&seen[0])));
}

/// A home whose kernels of Jupyter are run by a Python that knows no packages but those of a folder.
fn with_jupyter(model: &MockServer, kernels: &[&str], packages: &str) -> Home {
    let home = home(model, json!({}));
    let python = home.root().join("python");
    let program = format!(
        "#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 PYTHONPATH={packages} exec {} -S \"$@\"\n",
        which("python3").display()
    );
    fs::write(&python, program).expect("a program");
    fs::set_permissions(&python, Permissions::from_mode(0o755)).expect("a program");
    home.settings(&json!({"eval": {"enabled": true, "languages": kernels, "python": python}}));
    home
}

/// Stands in for Jupyter: its interface to programs, and a kernel.
const JUPYTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/jupyter");

#[test]
fn kernels_of_jupyter_run_cells() {
    let call = |code: &str, timeout: u64| {
        let arguments = json!({"language": "jupyter:toy", "code": code, "timeout": timeout});
        Reply::stream(sse::calls(&[("c", "eval", arguments)]))
    };
    let image = format!("{{'image/png': __import__('base64').b64encode({PNG}).decode()}}");
    let model = MockServer::start([
        call("n = 1\nprint('said')", 30),
        call("n + 41", 30),
        call("{'text/html': '<table><tr><th>a</th></tr><tr><td>1</td></tr></table>', 'text/plain': 'x'}", 30),
        call(&image, 30),
        call("while True: n += 1", 1),
        call("n > 1000", 30),
        call("1/0", 30),
        call("import os; os._exit(3)", 30),
        call("'n' in globals()", 30),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = with_jupyter(&model, &["jupyter:toy"], JUPYTER);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    assert!(model.requests()[0].body["tools"].to_string().contains(r#""enum":["jupyter:toy"]"#));
    let seen = results(&events);
    assert_eq!(seen[..3], ["said\n", "42\n", "| a |\n| --- |\n| 1 |\n"]);
    assert_eq!(ended(&events, "toolResult")[3]["content"][1]["mimeType"], "image/png", "{events:?}");
    assert_says(&seen[4], &["KeyboardInterrupt"]);
    assert_eq!(seen[5], "True\n");
    assert_says(&seen[6], &["ZeroDivisionError: division by zero", "Command exited with code 1"]);
    assert_says(&seen[7], &["the kernel ended with code 3"]);
    assert_says(&seen[8], &["The jupyter:toy kernel of earlier cells is gone", "False"]);
    // The bridge and its kernel end with the session.
    let children = processes::watch(&processes::children(daemon.id()));
    assert!(daemon.close().status.success());
    children.assert_gone_within(DEADLINE);
}

#[test]
fn a_kernel_of_jupyter_that_is_not_there_says_so() {
    let call = |kernel: &str| {
        Reply::stream(sse::calls(&[(
            "c",
            "eval",
            json!({"language": format!("jupyter:{kernel}"), "code": "1"}),
        )]))
    };
    let model = MockServer::start([call("other"), Reply::stream(sse::answer("Ok."))]);
    let named = with_jupyter(&model, &["jupyter:other"], JUPYTER);
    let seen = results(&Daemon::start(&named, &[]).prompt("Go."));
    assert_says(&seen[0], &["Jupyter has no kernel 'other'; there are: toy"]);
    let model = MockServer::start([call("toy"), Reply::stream(sse::answer("Ok."))]);
    let without = with_jupyter(&model, &["jupyter:toy"], "/nowhere");
    let seen = results(&Daemon::start(&without, &[]).prompt("Go."));
    assert_says(&seen[0], &["jupyter_client cannot be imported", "(setting eval.python)"]);
}

#[test]
fn a_sandbox_confines_cells() {
    if !is_enforced() {
        return;
    }
    let model = cells(&[
        "open('inside', 'w').write('x')\ntry:\n    open('/etc/outside', 'w')\nexcept OSError as error:\n    print(error)",
    ]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &WORKSPACE);
    let events = daemon.prompt("Go.");
    assert_says(&results(&events)[0], &["Read-only file system: '/etc/outside'"]);
    assert!(home.project().join("inside").exists());
}
