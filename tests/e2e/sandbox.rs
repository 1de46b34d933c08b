//! The sandbox on the real programs: what commands and file tools of a session may touch.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::ExitStatusExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, binaries, ctl, sse};
use serde_json::{Value, json};

use crate::support::assert_says;

/// Whether this system can enforce all of a sandbox; otherwise checks that it is refused, honestly.
pub(crate) fn is_enforced() -> bool {
    let probe = Command::new(binaries::agentd()).arg("sandbox-probe").output().unwrap();
    assert_eq!(probe.status.into_raw(), 0);
    let support: Value = serde_json::from_slice(&probe.stdout).unwrap();
    if support["layers"].as_array().unwrap().len() == 3 && support["landlockAbi"].as_u64() >= Some(6) {
        return true;
    }
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let ran = ctl::run(&home, &["prompt", "--model", "fake/fake", "--sandbox", "workspace-write", "Hello."]);
    assert_ne!(ran.code, 0);
    assert_says(&ran.stderr, &["cannot be enforced here", "sandbox.required"]);
    false
}

/// A model that makes one call and then says that it is done.
pub(crate) fn calling(tool: &str, arguments: &Value) -> MockServer {
    let call = Reply::stream(sse::calls(&[("call_1", tool, arguments.clone())]));
    MockServer::start([call, Reply::stream(sse::answer("Done."))])
}

/// What the model is told about its call.
fn told(server: &MockServer) -> String {
    server.requests()[1].body.to_string()
}

/// Runs a prompt whose model makes one call; returns what the model is told.
pub(crate) fn one_call(home: &Home, server: &MockServer, flags: &[&str]) -> String {
    let args = [&["prompt", "--model", "fake/fake"], flags, &["Do it."]].concat();
    let ran = ctl::run(home, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    told(server)
}

/// A file beside the project.
fn outside(home: &Home) -> PathBuf {
    home.project().parent().unwrap().join("outside")
}

pub(crate) const WORKSPACE: [&str; 2] = ["--sandbox", "workspace-write"];

#[test]
fn a_command_writes_in_the_workspace_alone_and_the_model_is_told_why() {
    if !is_enforced() {
        return;
    }
    let server = calling(
        "bash",
        &json!({"command": "echo x > inside && echo $TMPDIR && touch $TMPDIR/t && echo y > ../outside"}),
    );
    let home = Home::with_model(&server);
    let told = one_call(&home, &server, &WORKSPACE);
    assert_says(&told, &["Read-only file system", "[Sandbox: it could write only below", "--writable-root"]);
    assert_eq!(fs::read_to_string(home.project().join("inside")).unwrap(), "x\n");
    assert!(!outside(&home).exists());
    for name in [".agentd", ".pi"] {
        assert!(!home.project().join(name).exists(), "{name} was only there for the session");
    }
}

#[test]
fn a_background_process_that_fails_at_once_is_explained_too() {
    if !is_enforced() {
        return;
    }
    let server = calling("bash", &json!({"command": "echo y > ../outside", "background": true}));
    let home = Home::with_model(&server);
    home.settings(&json!({"bash": {"background": true}}));
    assert_says(
        &one_call(&home, &server, &WORKSPACE),
        &["Read-only file system", "[Sandbox: it could write only below"],
    );
    assert!(!outside(&home).exists());
}

#[test]
fn without_the_flag_nothing_is_confined() {
    let server = calling("bash", &json!({"command": "echo y > ../outside", "outsideSandbox": true}));
    let home = Home::with_model(&server);
    let told = one_call(&home, &server, &[]);
    assert!(!told.contains("[Sandbox:") && !told.contains("\"outsideSandbox\":{"), "{told}");
    assert!(outside(&home).exists());
}

#[test]
fn a_writable_root_is_writable_and_a_read_only_sandbox_is_not() {
    if !is_enforced() {
        return;
    }
    let command = json!({"command": "echo a > ../other/a; echo b > b; true"});
    for (flags, other, own) in [
        (&["--sandbox", "workspace-write", "--writable-root", "../other"][..], true, true),
        (&["--sandbox", "read-only"][..], false, false),
    ] {
        let server = calling("bash", &command);
        let home = Home::with_model(&server);
        let folder = home.project().parent().unwrap().join("other");
        fs::create_dir(&folder).unwrap();
        one_call(&home, &server, flags);
        assert_eq!((folder.join("a").exists(), home.project().join("b").exists()), (other, own), "{flags:?}");
    }
}

#[test]
fn file_tools_obey_the_same_rules() {
    if !is_enforced() {
        return;
    }
    let secret = |home: &Home| home.root().join("home/secret");
    let prepare = |server: &MockServer| {
        let home = Home::with_model(server);
        home.settings(&json!({"sandbox": {"mode": "workspace-write", "deniedPaths": ["~/secret"]}}));
        fs::create_dir(secret(&home)).unwrap();
        fs::write(secret(&home).join("key"), "canary").unwrap();
        fs::write(home.project().join("plain"), "canary in plain sight\n").unwrap();
        symlink(secret(&home).join("key"), home.project().join("link")).unwrap();
        symlink(home.project().parent().unwrap(), home.project().join("up")).unwrap();
        home
    };
    let cases: [(&str, Value, &[&str]); 7] = [
        (
            "write",
            json!({"path": "../outside", "content": "x"}),
            &["does not allow writing", "--writable-root"],
        ),
        ("write", json!({"path": "up/outside", "content": "x"}), &["does not allow writing"]),
        ("write", json!({"path": ".git/hooks/pre-commit", "content": "x"}), &["read-only"]),
        ("edit", json!({"path": "link", "edits": [{"oldText": "canary", "newText": "x"}]}), &["denies"]),
        ("read", json!({"path": "link"}), &["denies", "sandbox.deniedPaths"]),
        ("read", json!({"path": "~/secret/key"}), &["denies"]),
        ("write", json!({"path": "made/new", "content": "x"}), &["Successfully wrote"]),
    ];
    for (tool, arguments, says) in cases {
        let server = calling(tool, &arguments);
        let home = prepare(&server);
        let told = one_call(&home, &server, &[]);
        assert_says(&told, says);
        assert!(!outside(&home).exists());
        assert_eq!(fs::read_to_string(secret(&home).join("key")).unwrap(), "canary");
        assert!(!told.contains("1\\tcanary"), "{told}");
    }
    // Searching from above passes over it.
    let server = calling("grep", &json!({"pattern": "canary", "path": ".."}));
    let home = prepare(&server);
    let told = one_call(&home, &server, &["--tools", "grep"]);
    assert_says(&told, &["canary in plain sight"]);
    assert!(!told.contains("secret/key"), "{told}");
}

#[test]
fn commands_do_not_see_what_is_denied() {
    if !is_enforced() {
        return;
    }
    let server =
        calling("bash", &json!({"command": "cat ~/secret/key ~/.agentd/auth.json; ls ~/secret; true"}));
    let home = Home::with_model(&server);
    home.settings(&json!({"sandbox": {"mode": "workspace-write", "deniedPaths": ["~/secret"]}}));
    fs::create_dir(home.root().join("home/secret")).unwrap();
    fs::write(home.root().join("home/secret/key"), "canary-1").unwrap();
    fs::write(home.agent_dir().join("auth.json"), r#"{"x": {"type": "api_key", "key": "canary-2"}}"#)
        .unwrap();
    let told = one_call(&home, &server, &[]);
    assert!(!told.contains("canary"), "{told}");
    assert_says(&told, &["cat: "]);
}

#[test]
fn no_command_drives_its_own_daemon() {
    if !is_enforced() {
        return;
    }
    // A socket that the sandbox does not know of is reached, and the daemon refuses.
    for (sockets, is_named, says) in
        [("off", false, ""), ("on", false, ""), ("on", true, "its session has a sandbox")]
    {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let socket = folder.path().join("named.sock");
        let ctl = binaries::agentctl();
        let command = match is_named {
            true => format!("AGENTD_SOCKET={} {} ps 2>&1; echo code $?", socket.display(), ctl.display()),
            false => format!("{} ps 2>&1; echo code $?", ctl.display()),
        };
        let server = calling("bash", &json!({ "command": command }));
        let home = Home::with_model(&server);
        home.settings(&json!({"sandbox": {"mode": "workspace-write", "unixSockets": sockets}}));
        let named = ["--socket", socket.to_str().unwrap()];
        let service = Service::start(&home, if is_named { &named } else { &[] });
        let mut client = service.client();
        client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
        let open = json!({"type": "open_session", "cwd": home.project(), "args": ["--model", "fake/fake"]});
        let id = client.done(open)["sessionId"].as_str().unwrap().to_owned();
        client.send(&json!({"type": "prompt", "sessionId": id, "message": "Do it."}));
        client.event("agent_settled");
        let told = told(&server);
        assert!(told.contains("code ") && !told.contains("code 0"), "{sockets}: {told}");
        assert_says(&told, &[says]);
    }
}

#[test]
fn the_state_says_what_is_enforced() {
    if !is_enforced() {
        return;
    }
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--sandbox", "workspace-write", "--network", "off"]);
    assert_eq!(daemon.done(json!({"type": "get_state"})).get("sandbox"), None, "pi's clients do not know it");
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let state = &daemon.done(json!({"type": "get_state"}))["sandbox"];
    assert_eq!(
        (&state["mode"], &state["enforced"], &state["network"], &state["unixSockets"]),
        (&json!("workspace-write"), &json!(["mounts", "landlock", "seccomp"]), &json!("off"), &json!("off"))
    );
    let project = home.project().canonicalize().unwrap();
    assert_eq!(state["writableRoots"][0], json!(project));
    assert_eq!(state["writableRoots"][1], state["temporaryFolder"]);
    assert_eq!(state.get("gaps"), None);
    let denied = state["deniedPaths"].as_array().unwrap();
    assert!(denied.iter().any(|path| path.as_str().unwrap().ends_with("auth.json")), "{state}");
    // A command of the user is confined, too.
    let ran =
        daemon.done(json!({"type": "bash", "command": "touch ../outside; touch $TMPDIR/a && echo $TMPDIR"}));
    assert_says(
        ran["output"].as_str().unwrap(),
        &["Read-only file system", state["temporaryFolder"].as_str().unwrap()],
    );
    let temporary = PathBuf::from(state["temporaryFolder"].as_str().unwrap());
    assert!(temporary.join("a").exists());
    daemon.close();
    assert!(!temporary.exists(), "it goes with the session");
}

#[test]
fn what_cannot_be_used_opens_no_session() {
    let refused = |settings: Value, flags: &[&str], says: &[&str]| {
        let server = MockServer::start([]);
        let home = Home::with_model(&server);
        home.settings(&settings);
        let ran = ctl::run(&home, &[&["prompt", "--model", "fake/fake"], flags, &["Hello."]].concat());
        assert_ne!(ran.code, 0);
        assert_says(&ran.stderr, says);
        assert!(server.requests().is_empty());
    };
    refused(json!({"sandbox": {"mode": "strict"}}), &[], &["sandbox.mode"]);
    refused(json!({"sandbox": {"mode": "read-only", "deniedPath": []}}), &[], &["deniedPath"]);
    if !is_enforced() {
        return;
    }
    refused(
        json!({}),
        &["--sandbox", "read-only", "--writable-root", "/no/such"],
        &["/no/such", "--writable-root"],
    );
    refused(json!({}), &["--sandbox", "read-only", "--writable-root", "/"], &["whole file system"]);
    refused(
        json!({"sandbox": {"mode": "workspace-write", "deniedPaths": ["."]}}),
        &[],
        &["sandbox.deniedPaths"],
    );
    for folder in ["/proc", "/sys/kernel", "/dev"] {
        refused(
            json!({}),
            &["--sandbox", "read-only", "--writable-root", folder],
            &["belongs to the system"],
        );
    }
    refused(json!({"sandbox": {"mode": "read-only", "deniedPaths": ["/dev"]}}), &[], &["their devices"]);
    refused(json!({}), &["--sandbox", "workspace-write", "--ssh", "nowhere.invalid"], &["another host"]);
}

#[test]
fn a_sandbox_alone_asks_nothing() {
    if !is_enforced() {
        return;
    }
    // What the policy of permissions does not understand, and would ask about.
    let server = calling("bash", &json!({"command": "eval 'echo under''stood'; env -i sh -c 'echo $0'"}));
    let home = Home::with_model(&server);
    let told = one_call(&home, &server, &WORKSPACE);
    assert_says(&told, &["understood"]);
    let mut daemon = Daemon::start(&home, &WORKSPACE);
    let ran = daemon.done(json!({"type": "bash", "command": "env"}));
    assert_says(ran["output"].as_str().unwrap(), &["HOME="]);
    daemon.close();
}

#[test]
fn a_command_leaves_the_sandbox_only_when_the_user_agrees() {
    if !is_enforced() {
        return;
    }
    let call = json!({"command": "echo y > ../outside", "outsideSandbox": true});
    // Nobody is there: it is refused, even where unanswered questions count as a yes.
    for settings in [json!({}), json!({"permissions": {"onTimeout": "allow"}})] {
        let server = calling("bash", &call);
        let home = Home::with_model(&server);
        home.settings(&settings);
        let ran =
            ctl::run(&home, &["prompt", "--model", "fake/fake", "--sandbox", "workspace-write", "Do it."]);
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        assert_says(&told(&server), &["asks to run outside of the sandbox"]);
        assert!(!outside(&home).exists());
    }
    for (answer, made) in [("Yes, this once", true), ("No", false)] {
        let server = calling("bash", &call);
        let home = Home::with_model(&server);
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "ui": true}}));
        let args = ["--model", "fake/fake", "--sandbox", "workspace-write"];
        let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
        assert_eq!(opened["sandbox"]["mode"], "workspace-write", "{opened}");
        client.send(&json!({"type": "prompt", "sessionId": opened["sessionId"], "message": "Do it."}));
        let question = client.event("extension_ui_request");
        let options: Vec<&str> =
            question["options"].as_array().unwrap().iter().map(|option| option.as_str().unwrap()).collect();
        assert!(
            options.iter().all(|option| !option.contains("always") && !option.contains("session")),
            "{question}"
        );
        client.send(&json!({"type": "extension_ui_response", "id": question["id"], "value": answer}));
        client.event("agent_settled");
        assert_eq!(outside(&home).exists(), made, "{answer}");
    }
}

#[test]
fn bwrap_makes_the_mounts_where_it_is_asked_for() {
    if !is_enforced() {
        return;
    }
    let server = calling("bash", &json!({"command": "echo x > inside && echo y > ../outside"}));
    let home = Home::with_model(&server);
    home.settings(&json!({"sandbox": {"mode": "workspace-write", "namespaces": "bwrap"}}));
    let ran = ctl::run(&home, &["prompt", "--model", "fake/fake", "Do it."]);
    if !Path::new("/usr/bin/bwrap").exists() {
        assert_ne!(ran.code, 0);
        return assert_says(&ran.stderr, &["install bubblewrap"]);
    }
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_says(&told(&server), &["Read-only file system", "[Sandbox:"]);
    assert!(home.project().join("inside").exists() && !outside(&home).exists());
}
