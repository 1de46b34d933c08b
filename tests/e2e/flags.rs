//! The command line through the real binary: under its own name, as `--compat pi`, and as `pi`.

use std::{path::PathBuf, process::Command};

use agentd_e2e::{
    Daemon, Home, MockServer, Reply, binaries,
    ctl::{Ctl, Finished, agentd, feed},
    sse,
};
use serde_json::{Value, json};

use crate::support::{assert_says, prompt, records, text};

/// `agentd` under the name `pi`.
fn pi(home: &Home, args: &[&str]) -> Command {
    let path = home.root().join("pi");
    if !path.exists() {
        std::os::unix::fs::symlink(binaries::agentd(), &path).unwrap();
    }
    let mut command = home.command(path);
    command.args(args);
    command
}

fn run(command: Command) -> Finished {
    Ctl::start_with(command, std::process::Stdio::null()).finish()
}

/// A home whose models are where pi has them, and `AGENTD_DIR` is not set.
fn home_of_pi(server: &MockServer) -> Home {
    let home = Home::new();
    let folder = home.root().join("home/.pi/agent");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("models.json"), agentd_e2e::home::models(&server.base_url()).to_string())
        .unwrap();
    home
}

fn session_files(folder: PathBuf) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())).collect()
}

#[test]
fn as_pi_the_directories_and_the_name_are_those_of_pi() {
    let who = json!({"command": "printf %s \"$AI_AGENT\""});
    let server = MockServer::start(
        [(); 3]
            .iter()
            .flat_map(|()| {
                [Reply::stream(sse::calls(&[("c", "bash", who.clone())])), Reply::stream(sse::answer("Ok."))]
            })
            .collect::<Vec<_>>(),
    );
    let home = home_of_pi(&server);
    let commands = [pi(&home, &["-p", "Hi"]), pi(&home, &["Hi"]), agentd(&home, &["--compat", "pi", "Hi"])];
    for mut command in commands {
        command.env_remove("AGENTD_DIR");
        let said = run(command);
        assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "Ok.\n", ""));
    }
    let folder = home.root().join("home/.pi/agent");
    let files = session_files(folder.join("sessions"));
    assert_eq!(files.len(), 3);
    for file in files {
        let records = records(&file);
        let result = records.iter().find(|record| record["message"]["role"] == "toolResult").unwrap();
        assert_eq!(text(&result["message"]), "pi");
    }
}

#[test]
fn as_pi_the_variable_of_pi_wins() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut command = pi(&home, &["-p", "Hi"]);
    command.env("PI_CODING_AGENT_DIR", home.agent_dir()).env("AGENTD_DIR", home.root().join("tmp"));
    assert_eq!(run(command).code, 0);
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn as_pi_all_modes_work() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    // One client passes flags before the mode.
    let mut daemon = Daemon::start_command(pi(&home, &["--no-session", "--mode", "rpc"]));
    daemon.send(&prompt("Sent before anything was read."));
    assert_eq!(daemon.line()["type"], "response");
    daemon.settled();
    assert!(daemon.close().status.success());
    let json = run(pi(&home, &["--mode", "json", "Hi"]));
    let first: Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((json.code, &first["type"]), (0, &json!("session")));
    // Without a mode, stdin is the prompt, since there is no terminal interface.
    assert_eq!(feed(pi(&home, &[]), "Hi").stdout, "Ok.\n");
    let nothing = run(pi(&home, &[]));
    assert_eq!(nothing.code, 1);
    assert_says(&nothing.stderr, &["there is no message", "agentd serve"]);
}

#[test]
fn version_flags_need_no_configuration() {
    let home = Home::new();
    for flag in ["--version", "-v"] {
        let mut command = pi(&home, &[flag]);
        command.env_clear();
        let said = run(command);
        assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "1.5.2\n", ""));
    }
}

#[test]
fn mistakes_end_with_1_and_say_what_is_wrong() {
    let home = Home::new();
    for (args, says) in [
        (&["--mode"][..], "Error: --mode requires text, json, rpc, or acp"),
        (&["--mode", "x"], "Error: Invalid mode \"x\". Valid values: text, json, rpc, acp"),
        (&["--mode", "rpc", "-x"], "Error: Unknown option: -x"),
        (&["--mode", "rpc", "--modle", "m"], "Error: Unknown option: --modle. Did you mean --model?"),
        (&["--mode", "rpc", "@file"], "Error: @file arguments are not supported in RPC mode"),
        (&["--mode", "rpc", "--model"], "Error: --model needs a value"),
        (
            &["-p", "x", "--provider", "p"],
            "Error: --provider requires --model (for example: --provider p --model <pattern>)",
        ),
        (
            &["-p", "x", "--api-key", "k"],
            "Error: --api-key requires a model to be specified via --model, --provider/--model, or --models",
        ),
        (&["-p", "x", "--fork", "a", "-c"], "Error: --fork cannot be combined with --continue"),
        (&["-p", "x", "--fork", "a"], "Error: No session found matching 'a'"),
        (&["--mode", "rpc", "--session", "x"], "Error: No session found matching 'x'"),
        (&["--mode", "rpc", "--session-id", "-a"], "Error: Session id must be non-empty"),
        (&["-r"], "Error: --resume opens a picker"),
        (&["hello"], "Error: hello is about one session"),
    ] {
        let said = run(agentd(&home, args));
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{args:?}");
        assert!(said.stderr.starts_with(says), "{args:?}: {}", said.stderr);
    }
    assert_eq!(home.session_files(), Vec::<PathBuf>::new());
}

#[test]
fn what_is_not_there_is_said_on_stderr_alone() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let said = run(agentd(
        &home,
        &["-p", "Hi", "-e", "mine.ts", "--theme", "dark", "--no-mcp", "--tui-mode", "full"],
    ));
    let warning = "Warning: --extension mine.ts: this version of agentd runs no extensions; skills and prompt templates of a package count\n";
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "Ok.\n", warning));
}

#[test]
fn offline_is_told_to_what_tools_start() {
    let show = json!({"command": "printf %s \"$PI_OFFLINE\""});
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c", "bash", show)])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    assert_eq!(run(agentd(&home, &["-p", "Hi", "--offline"])).code, 0);
    let records = records(&home.session_files()[0]);
    let result = records.iter().find(|record| record["message"]["role"] == "toolResult").unwrap();
    assert_eq!(text(&result["message"]), "1");
}

#[test]
fn copies_can_be_given_an_id_that_is_free() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    assert_eq!(run(agentd(&home, &["-p", "Hi", "--session-id", "first"])).code, 0);
    assert_eq!(run(agentd(&home, &["-p", "More", "--fork", "first", "--session-id", "second"])).code, 0);
    let ids: Vec<Value> = home.session_files().iter().map(|file| records(file)[0]["id"].clone()).collect();
    assert!(ids.contains(&json!("first")) && ids.contains(&json!("second")), "{ids:?}");
    let again = run(agentd(&home, &["-p", "More", "--fork", "first", "--session-id", "second"]));
    assert_eq!(again.code, 1);
    assert_says(
        &again.stderr,
        &["A session with the id 'second' is there already", "Choose another --session-id"],
    );
    assert_eq!(home.session_files().len(), 2);
}

#[test]
fn models_are_listed_and_searched() {
    let server = MockServer::always(Reply::silence());
    let home = Home::with_model(&server);
    for args in [&["--list-models"][..], &["--list-models", "FAK"], &["--list-models", "--offline"]] {
        let said = run(agentd(&home, args));
        assert_eq!((said.code, said.stdout.lines().count()), (0, 2), "{said:?}");
    }
    let none = run(agentd(&home, &["--list-models", "nothing"]));
    assert_says(&none.stderr, &["No model with a key matches \"nothing\""]);
}
