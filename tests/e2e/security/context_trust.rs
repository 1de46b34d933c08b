//! Instructions from outside of the project's own files reach no model before the project is trusted.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    path::{Path, PathBuf},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, ctl, sse};
use serde_json::json;

use crate::support::{assert_says, text};

const SECRET: &str = "sk-a-secret-of-the-user";

fn home() -> (MockServer, Home) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    (server, home)
}

/// The system prompt in the project, and the diagnostics.
fn prompt(home: &Home, server: &MockServer, args: &[&str]) -> (String, String) {
    prompt_in(home, server, args, &home.project())
}

fn prompt_in(home: &Home, server: &MockServer, args: &[&str], cwd: &Path) -> (String, String) {
    let mut daemon = Daemon::start_with(home, args, |command| {
        command.current_dir(cwd);
    });
    daemon.prompt("Hi");
    let found = daemon.done(json!({"type": "get_diagnostics"})).to_string();
    daemon.close();
    (text(&server.requests().last().expect("a request").messages()[0]), found)
}

fn link(home: &Home, target: impl AsRef<Path>) -> PathBuf {
    let link = home.project().join("AGENTS.md");
    let _ = fs::remove_file(&link);
    symlink(target, &link).unwrap();
    link
}

/// The attack: a clone's instructions are a link to a secret.
#[test]
fn a_link_to_a_secret_is_sent_to_nobody() {
    let (server, home) = home();
    home.write_agent("auth.json", &json!({"openai": {"type": "api_key", "key": SECRET}}).to_string());
    home.write_home(".ssh/id_rsa", SECRET);
    for target in [
        home.agent_dir().join("auth.json"),
        home.root().join("home/.ssh/id_rsa"),
        "../home/.ssh/id_rsa".into(),
        "/proc/self/environ".into(),
    ] {
        link(&home, &target);
        let (system, told) = prompt(&home, &server, &["--no-session", "--model", "fake/fake"]);
        assert!(!system.contains(SECRET) && !system.contains("AGENTD_DIR"), "{}: {system}", target.display());
        assert_says(&told, &["project/AGENTS.md"]);
    }
    // Not even a trusted project may link there.
    for (target, says) in [
        (home.agent_dir().join("auth.json"), "leads into the agent directory"),
        ("/proc/self/environ".into(), "file of /proc"),
    ] {
        link(&home, &target);
        let (system, told) = prompt(&home, &server, &["--no-session", "--approve", "--model", "fake/fake"]);
        assert!(!system.contains(SECRET) && !system.contains("AGENTD_DIR"), "{}: {system}", target.display());
        assert_says(&told, &["project/AGENTS.md", says]);
    }
}

/// The question names the target of the link, and trust is for that target.
#[test]
fn a_link_out_of_the_project_is_asked_about() {
    let (server, home) = home();
    home.write_home("rules.md", "Whistle.");
    home.write_home(".ssh/id_rsa", SECRET);
    link(&home, "../home/rules.md");
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "one"}, "capabilities": {"sessions": true, "ui": true},
    }));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let question = client.event("extension_ui_request");
    assert_says(
        &question["title"].to_string(),
        &["AGENTS.md (a link that leads out of the project, to ", "home/rules.md)"],
    );
    let mut asks = |message: &str| {
        client.done(json!({"type": "prompt", "sessionId": id, "message": message}));
        client.settled();
        server.requests().last().expect("a request").body.to_string()
    };
    assert!(!asks("Before").contains("Whistle."));
    client.send(
        &json!({"type": "extension_ui_response", "id": question["id"], "value": "Always trust this folder"}),
    );
    client.until("a notice", |line| line["method"] == "notify");
    let mut asks = |message: &str| {
        client.done(json!({"type": "prompt", "sessionId": id, "message": message}));
        client.settled();
        server.requests().last().expect("a request").body.to_string()
    };
    assert!(asks("After").contains("Whistle."));
    // A pull, or a command of the model, changes the target.
    link(&home, "../home/.ssh/id_rsa");
    assert!(!asks("Later").contains(SECRET));
    let (system, told) = prompt(&home, &server, &["--no-session"]);
    assert!(!system.contains(SECRET), "{system}");
    assert_says(&told, &["AGENTS.md", "was changed since", "a link that leads out of the project, to "]);
}

/// Links within the project are read as before.
#[test]
fn links_within_the_project_need_no_trust() {
    let (server, home) = home();
    home.write(".git/HEAD", "ref: refs/heads/main\n");
    home.write("docs/rules.md", "Whistle.");
    home.write("sub/file", "");
    for target in ["../docs/rules.md".into(), home.project().join("docs/rules.md")] {
        let link = home.project().join("sub/CLAUDE.md");
        let _ = fs::remove_file(&link);
        symlink(target, link).unwrap();
        let (system, told) = prompt_in(&home, &server, &["--no-session"], &home.project().join("sub"));
        assert!(system.contains("Whistle."), "{system}");
        assert!(!told.contains("CLAUDE.md") && !told.contains("trust"), "{told}");
    }
}

/// The file of a folder above the project may belong to anybody.
#[test]
fn instructions_above_the_project_need_trust() {
    let (server, home) = home();
    fs::write(home.root().join("AGENTS.md"), "Whistle.").unwrap();
    home.write("AGENTS.md", "Hum.");
    home.write_agent("AGENTS.md", "Sing.");
    let (system, told) = prompt(&home, &server, &["--no-session"]);
    assert!(!system.contains("Whistle.") && system.contains("Hum.") && system.contains("Sing."), "{system}");
    assert_says(&told, &["AGENTS.md", "is outside of the project", "--approve"]);
    let told = ctl::run(&home, &["doctor"]).stdout;
    assert_says(&told, &["is outside of the project", "warn project trust"]);
    let (system, told) = prompt(&home, &server, &["--no-session", "--approve"]);
    assert!(system.contains("Whistle.") && system.contains("Hum."), "{system}");
    assert!(!told.contains("outside of the project"), "{told}");
    // Trust remains when the project's own file changes.
    home.write_agent("trust.json", &json!({home.project().display().to_string(): true}).to_string());
    for word in ["Whistle.", "Growl."] {
        fs::write(home.root().join("AGENTS.md"), word).unwrap();
        assert!(prompt(&home, &server, &["--no-session"]).0.contains(word));
    }
}

/// The attack: a file of another user in or above the project, such as `/tmp/AGENTS.md`.
#[test]
fn instructions_of_another_user_need_trust() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let (server, home) = home();
    let files = [home.root().join("AGENTS.md"), home.project().join("AGENTS.md")];
    for file in &files {
        fs::write(file, "Whistle.").unwrap();
        chown(file, Some(65534), Some(65534)).unwrap();
        let (system, told) = prompt(&home, &server, &["--no-session"]);
        assert!(!system.contains("Whistle."), "{system}");
        assert_says(&told, &["AGENTS.md", "another user's (uid 65534)", "--approve"]);
        assert!(prompt(&home, &server, &["--no-session", "--approve"]).0.contains("Whistle."));
        fs::remove_file(file).unwrap();
    }
    // Earlier trust does not cover a file that appears later.
    home.write(".pi/settings.json", "{}");
    home.write_agent("trust.json", &json!({home.project().display().to_string(): true}).to_string());
    prompt(&home, &server, &["--no-session"]);
    fs::write(&files[0], "Whistle.").unwrap();
    chown(&files[0], Some(65534), Some(65534)).unwrap();
    let (system, told) = prompt(&home, &server, &["--no-session"]);
    assert!(!system.contains("Whistle."), "{system}");
    assert_says(&told, &["AGENTS.md", "was changed since"]);
}

/// In a container, root works in the repository of a user.
#[test]
fn root_takes_the_instructions_of_the_user_whose_project_it_is() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let (server, home) = home();
    home.write(".git/HEAD", "ref: refs/heads/main\n");
    home.write("AGENTS.md", "Whistle.");
    for path in [home.project(), home.project().join(".git"), home.project().join("AGENTS.md")] {
        chown(path, Some(1000), Some(1000)).unwrap();
    }
    assert!(prompt(&home, &server, &["--no-session"]).0.contains("Whistle."));
    // Instructions of a third user are not used.
    chown(home.project().join("AGENTS.md"), Some(65534), None).unwrap();
    assert!(!prompt(&home, &server, &["--no-session"]).0.contains("Whistle."));
}

/// A session file can name another folder than the trusted project.
#[test]
fn trust_is_for_the_folder_that_a_session_is_opened_in() {
    let (server, home) = home();
    let other = home.root().join("other/project");
    fs::create_dir_all(&other).unwrap();
    fs::write(home.root().join("other/AGENTS.md"), "Whistle.").unwrap();
    let skill = "---\nname: planted\ndescription: planted skill\n---\nDo it.";
    fs::create_dir_all(other.join(".agents/skills/planted")).unwrap();
    fs::write(other.join(".agents/skills/planted/SKILL.md"), skill).unwrap();
    home.write(".pi/settings.json", "{}");
    let header = json!({"type": "session", "version": 3, "id": "0198c0de-0000-7000-8000-00000000c10f",
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": other});
    let file = home.root().join("other/s.jsonl");
    fs::write(&file, format!("{header}\n")).unwrap();
    let (system, _) = prompt(&home, &server, &["--approve", "--session", file.to_str().unwrap()]);
    assert!(!system.contains("Whistle.") && !system.contains("planted"), "{system}");
}
