//! Undo: what tool calls change is kept, shown and given back.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use agentd_e2e::{Daemon, Home, ctl};
use serde_json::{Value, json};

/// A home whose model makes the given calls, each for the prompt of its place: `run 0`, `run 1`, …
fn home(calls: &[Value]) -> Home {
    let home = Home::new();
    let mut steps: Vec<Value> = Vec::new();
    for (number, calls) in calls.iter().enumerate() {
        let calls: Vec<Value> =
            calls.as_array().expect("a list").iter().map(|call| json!({"toolCall": call})).collect();
        let prompt = format!("run {number}");
        steps.push(json!({"when": {"prompt": prompt, "results": 0}, "emit": calls}));
        steps.push(json!({"when": {"prompt": prompt}, "emit": [{"text": "Done."}]}));
    }
    home.write_home("script.json", &json!({"steps": steps}).to_string());
    let script = home.root().join("home/script.json");
    home.configure(&json!({"providers": {"script": {"api": "scripted", "baseUrl": script, "apiKey": "none",
        "models": [{"id": "script"}]}}}));
    home.settings(
        &json!({"defaultProvider": "script", "defaultModel": "script", "toolExecution": "sequential",
        "undo": {"enabled": true}}),
    );
    home
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "arguments": {"command": command}})
}

fn start(home: &Home) -> Daemon {
    introduce(Daemon::start(home, &[]))
}

fn introduce(mut daemon: Daemon) -> Daemon {
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon
}

fn created(events: &[Value]) -> Vec<&Value> {
    events
        .iter()
        .filter(|event| event["type"] == "checkpoint_created")
        .map(|event| &event["checkpoint"])
        .collect()
}

fn undo(daemon: &mut Daemon) -> Value {
    daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}))
}

/// Everything in the project but `.git`: path, mode, content or target, and of files the time.
fn picture(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>, Option<std::time::SystemTime>)> {
    let (mut all, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            if path.file_name().unwrap() == ".git" {
                continue;
            }
            let (content, time) = if about.is_symlink() {
                (fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(), None)
            } else if about.is_dir() {
                folders.push(path.clone());
                (Vec::new(), None)
            } else {
                (fs::read(&path).unwrap(), Some(about.modified().unwrap()))
            };
            all.push((path, about.permissions().mode(), content, time));
        }
    }
    all.sort();
    all
}

#[test]
fn a_tree_that_commands_and_file_tools_changed_is_given_back() {
    let home = home(&[json!([
        bash("sed -i s/one/two/ a && rm -rf sub && mv m moved && chmod 755 script"),
        bash("git checkout -q other && mkdir -p out && for n in 1 2 3; do echo $n > out/$n.o; done"),
        bash("rm link && ln -s b link"),
        {"name": "write", "arguments": {"path": "new/file", "content": "text"}},
        {"name": "edit", "arguments": {"path": "b", "edits": [{"oldText": "bee", "newText": "wasp"}]}},
    ])]);
    let root = home.project();
    for (name, content) in
        [("a", "one\n"), ("b", "bee\n"), ("m", "m"), ("script", "#!\n"), ("sub/deep/x", "x")]
    {
        home.write(name, content);
    }
    fs::create_dir(root.join("sub/empty")).unwrap();
    symlink("a", root.join("link")).unwrap();
    home.write("tracked", "main\n");
    let git = "git init -q -b main && git add tracked && git -c user.name=x -c user.email=x@x commit -qm 1 && \
               git checkout -q -b other && echo other > tracked && git -c user.name=x -c user.email=x@x commit -qam 2 && \
               git checkout -q main";
    let made = home.command("/bin/sh").args(["-c", git]).status().expect("sh runs");
    assert!(made.success());
    let before = picture(&root);
    let mut daemon = start(&home);
    let events = daemon.prompt("run 0");
    assert_eq!(created(&events).len(), 5);
    let after = picture(&root);
    assert_ne!(before, after);
    let done = undo(&mut daemon);
    assert_eq!(done["conflicts"], json!([]));
    assert_eq!(picture(&root), before);
    let done = daemon.done(json!({"type": "restore_checkpoint", "step": "redo"}));
    assert_eq!(done["conflicts"], json!([]));
    assert_eq!(picture(&root), after);
    // Each checkpoint is an entry of the session, on disk.
    let session = fs::read_to_string(&home.session_files()[0]).unwrap();
    assert_eq!(session.matches(r#""customType":"checkpoint""#).count(), 7);
}

#[test]
fn what_the_user_changed_since_is_left_and_the_verbs_say_so() {
    let home = home(&[json!([bash("echo agent > a; echo agent > b")]), json!([bash("echo again > b")])]);
    home.write("a", "one\n");
    home.write("b", "one\n");
    for number in 0..2 {
        let args = ["prompt", "--private", "--undo", "on", "--continue", &format!("run {number}")];
        assert_eq!(ctl::run(&home, &args).code, 0);
    }
    let diff = ctl::run(&home, &["diff"]);
    assert_eq!(diff.stdout, "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-agent\n+again\n");
    let stat = ctl::run(&home, &["diff", "--session-start", "--stat"]);
    assert_eq!(stat.stdout, " a |     2 +-\n b |     2 +-\n 2 files changed, 2 lines added, 2 removed\n");
    assert_eq!(ctl::run(&home, &["undo"]).code, 0);
    assert_eq!(home.read("b"), "agent\n");
    home.write("a", "mine\n");
    let preview = ctl::run(&home, &["undo", "--preview"]);
    assert_eq!((preview.code, home.read("b").as_str()), (1, "agent\n"));
    let undone = ctl::run(&home, &["undo"]);
    assert_eq!(undone.code, 1);
    let left = format!("left as it is: {}: it was changed since", home.project().join("a").display());
    assert!(undone.stderr.contains(&left), "{}", undone.stderr);
    assert_eq!((home.read("a"), home.read("b")), ("mine\n".into(), "one\n".into()));
    let nothing = ctl::run(&home, &["undo"]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.contains("There is nothing to undo"), "{}", nothing.stderr);
    assert_eq!(ctl::run(&home, &["redo"]).code, 0);
    assert_eq!(home.read("b"), "agent\n");
}

#[test]
fn a_long_file_is_skipped_and_said() {
    let home = home(&[json!([bash("truncate -s 5G large; echo x > small")])]);
    let mut daemon = start(&home);
    let events = daemon.prompt("run 0");
    let checkpoint = created(&events)[0];
    let large = home.project().join("large");
    assert_eq!(checkpoint["skipped"][0]["path"], json!(large));
    assert_eq!(checkpoint["paths"], json!([home.project().join("small")]));
    undo(&mut daemon);
    assert!(large.exists() && !home.project().join("small").exists());
}

#[test]
fn ten_thousand_files_come_back() {
    let home = home(&[json!([bash("for n in $(seq 10000); do echo new > f$n; done; rm -rf old")])]);
    for number in 0..100 {
        home.write(&format!("old/{number}"), &number.to_string());
    }
    let before = picture(&home.project());
    let mut daemon = start(&home);
    let events = daemon.prompt("run 0");
    assert_eq!(
        (&created(&events)[0]["created"], &created(&events)[0]["deleted"]),
        (&json!(10000), &json!(101))
    );
    assert_eq!(undo(&mut daemon)["conflicts"], json!([]));
    assert_eq!(picture(&home.project()), before);
}

#[test]
fn a_restoring_that_was_killed_is_completed() {
    let home = home(&[json!([bash("rm -rf sub; for n in 1 2 3 4; do echo new > f$n; done")])]);
    home.write("sub/a", "a");
    home.write("sub/b", "b");
    home.write("f1", "old");
    let before = picture(&home.project());
    let mut daemon = start(&home);
    daemon.prompt("run 0");
    let state = daemon.done(json!({"type": "get_state"}));
    let session = state["sessionFile"].as_str().expect("a file").to_owned();
    drop(daemon);
    let mut killed = introduce(Daemon::start_with(&home, &["--session", &session], |command| {
        command.env("AGENTD_FAIL_POINTS", "undo.step@3");
    }));
    killed.send(&json!({"type": "restore_checkpoint", "step": "undo"}));
    killed.wait();
    assert_ne!(picture(&home.project()), before);
    let mut daemon = introduce(Daemon::start(&home, &["--session", &session]));
    let list = daemon.done(json!({"type": "list_checkpoints"}));
    assert_eq!(list["checkpoints"].as_array().map(Vec::len), Some(2), "{list}");
    assert_eq!(picture(&home.project()), before);
}

#[test]
fn what_a_full_disk_kept_from_being_restored_is_restored_later() {
    let home = home(&[json!([bash("rm a; echo new > b")])]);
    home.write("a", "a");
    home.write("b", "b");
    let before = picture(&home.project());
    let mut daemon = introduce(Daemon::start_with(&home, &[], |command| {
        command.env("AGENTD_FAIL_POINTS", "undo.step@2:enospc");
    }));
    daemon.prompt("run 0");
    let first = undo(&mut daemon);
    assert_eq!(first["restored"].as_array().map(Vec::len), Some(1), "{first}");
    assert!(
        first["conflicts"][0]["why"].as_str().is_some_and(|why| why.contains("No space left")),
        "{first}"
    );
    let second = undo(&mut daemon);
    assert_eq!(second["conflicts"], json!([]));
    assert_eq!(picture(&home.project()), before);
}

#[test]
fn a_call_that_was_killed_with_the_daemon_leaves_the_others_to_undo() {
    let home =
        home(&[json!([bash("echo agent > a")]), json!([bash("echo lost > b; echo > started; sleep 600")])]);
    home.write("a", "a");
    let mut daemon = start(&home);
    daemon.prompt("run 0");
    let session =
        daemon.done(json!({"type": "get_state"}))["sessionFile"].as_str().expect("a file").to_owned();
    daemon.send(&json!({"type": "prompt", "message": "run 1"}));
    daemon.event("tool_execution_start");
    drop(daemon);
    let mut daemon = introduce(Daemon::start(&home, &["--session", &session]));
    let done = undo(&mut daemon);
    assert_eq!(done["conflicts"], json!([]));
    assert_eq!(home.read("a"), "a");
}

#[test]
fn without_undo_nothing_is_kept_and_the_commands_say_how() {
    let home = home(&[json!([bash("echo x > a")])]);
    home.settings(&json!({"defaultProvider": "script", "defaultModel": "script"}));
    let mut daemon = start(&home);
    let events = daemon.prompt("run 0");
    assert_eq!(created(&events).len(), 0);
    assert!(daemon.done(json!({"type": "get_state"})).get("undo").is_none());
    assert!(!home.agent_dir().join("undo").exists());
    let refused = daemon.refused(json!({"type": "list_checkpoints"}));
    assert_eq!(refused["code"], "unsupported");
}

#[test]
fn a_full_disk_is_said_by_the_call_the_run_and_the_verbs_and_fails_no_call() {
    let home = home(&[json!([
        bash("echo agent > a"),
        {"name": "write", "arguments": {"path": "b", "content": "text"}},
    ])]);
    home.write("a", "a\n");
    let mut daemon = introduce(Daemon::start_with(&home, &[], |command| {
        command.env("AGENTD_FAIL_POINTS", "undo.record@1+:enospc");
    }));
    let events = daemon.prompt("run 0");
    let results: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_execution_end").collect();
    assert_eq!(results.len(), 2);
    for result in results {
        let text = result["result"]["content"].to_string();
        assert!(text.contains("[Undo: what this call changed is not kept"), "{result}");
        assert!(text.contains("No space left"), "{result}");
        assert_eq!(result["isError"], false, "{result}");
    }
    let told = created(&events);
    assert_eq!(told.len(), 2);
    assert!(told[0]["skipped"][0]["path"].as_str().is_some_and(|path| path.ends_with("/a")), "{told:?}");
    assert_eq!((home.read("a").as_str(), home.read("b").as_str()), ("agent\n", "text"));
    let list = daemon.done(json!({"type": "list_checkpoints"}));
    assert_eq!(list["checkpoints"].as_array().map(Vec::len), Some(2), "{list}");
    let diff = daemon.done(json!({"type": "diff_checkpoint"}));
    assert_eq!(diff["skipped"].as_array().map(Vec::len), Some(2), "{diff}");
    let preview = daemon.done(json!({"type": "restore_checkpoint", "step": "undo", "preview": true}));
    assert_eq!(preview["skipped"], diff["skipped"], "{preview}");
}

#[test]
fn agentctl_names_what_is_not_kept_in_the_run_and_afterwards() {
    let home = home(&[json!([bash("echo agent > a; echo longer than ten bytes > long")])]);
    home.write("a", "a\n");
    home.settings(&json!({"defaultProvider": "script", "defaultModel": "script",
        "undo": {"enabled": true, "maxFileBytes": 10}}));
    let run = ctl::run(&home, &["prompt", "--private", "run 0"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stderr.contains("Cannot be undone: ") && run.stderr.contains("undo.maxFileBytes"),
        "{}",
        run.stderr
    );
    let diff = ctl::run(&home, &["diff"]);
    assert!(diff.stderr.contains("not kept: "), "{}", diff.stderr);
    let undone = ctl::run(&home, &["undo"]);
    assert_eq!(undone.code, 1);
    assert!(
        undone.stderr.contains("not kept: ") && undone.stderr.contains("undo.maxFileBytes"),
        "{}",
        undone.stderr
    );
    assert_eq!(home.read("a"), "a\n");
}
