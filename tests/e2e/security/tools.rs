//! Tools in a stranger's project: hostile ignore files, special files, and the files that control agentd.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use crate::support::{assert_says, ended, text};

/// Makes these calls one after the other; returns their results. The system bounds the daemon's memory, so that endless
/// reading ends it.
fn results(home: &Home, server: &MockServer, calls: &[(&str, Value)]) -> Vec<String> {
    let named: Vec<(String, &str, &Value)> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| (format!("c{at}"), *name, arguments))
        .collect();
    let calls: Vec<(&str, &str, Value)> =
        named.iter().map(|(id, name, arguments)| (id.as_str(), *name, (*arguments).clone())).collect();
    server.push(Reply::stream(sse::calls(&calls)));
    server.push(Reply::stream(sse::answer("Done.")));
    let mut daemon = Daemon::start_with(home, &["--no-session", "--tools", "+grep,+find,+ls"], |command| {
        // 1 GiB of address space.
        let program = command.get_program().to_owned();
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut limited = home.command("/bin/sh");
        limited.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]).arg(program).args(arguments);
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                limited.env(name, value);
            }
        }
        *command = limited;
    });
    let events = daemon.prompt("Search.");
    ended(&events, "toolResult").iter().map(|result| text(result)).collect()
}

fn pipe(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

/// The ignore files that the tools read, with their folders.
const IGNORE_FILES: [&str; 5] = [".gitignore", ".ignore", ".rgignore", ".fdignore", ".git/info/exclude"];

fn project(server: &MockServer) -> Home {
    let home = Home::with_model(server);
    home.write("src/a.txt", "needle\n");
    home.write("src/b.txt", "straw\n");
    fs::create_dir_all(home.project().join(".git/info")).unwrap();
    home
}

fn search_and_find() -> [(&'static str, Value); 2] {
    [
        ("grep", json!({"pattern": "needle", "path": "src"})),
        ("find", json!({"pattern": "*.txt", "path": "src"})),
    ]
}

#[test]
fn an_ignore_file_that_is_a_link_or_a_pipe_is_not_used() {
    let endless: [(&str, fn(&Path)); 3] = [
        ("a symbolic link", |path| symlink("/dev/zero", path).unwrap()),
        ("a named pipe", pipe),
        ("bytes long", |path| fs::File::create(path).unwrap().set_len(5 << 40).unwrap()),
    ];
    for (what, make) in endless {
        let server = MockServer::start([]);
        let home = project(&server);
        for name in IGNORE_FILES {
            make(&home.project().join(name));
        }
        let said = results(&home, &server, &search_and_find());
        assert_says(&said[0], &["a.txt:1: needle", "ignore files were not used: ", what]);
        assert_says(&said[1], &["a.txt\nb.txt", "ignore files were not used: ", what]);
    }
}

#[test]
fn rules_by_the_thousand_take_no_memory() {
    let server = MockServer::start([]);
    let home = project(&server);
    let dear: String = (0..20_000).map(|number| format!("*[!a-z]*{{b,c}}?{number}*\n")).collect();
    let many = "x\n".repeat(400_000);
    for (name, rules) in IGNORE_FILES.into_iter().zip([&dear, &many, &dear, &dear, &many]) {
        home.write(name, rules);
    }
    let said = results(&home, &server, &search_and_find());
    assert_says(
        &said[0],
        &["a.txt:1: needle", "4 ignore files were not used", "has more rules", "and 1 more"],
    );
    assert_says(&said[1], &["a.txt\nb.txt", "4 ignore files were not used"]);
}

#[test]
fn ignore_files_as_they_should_be_are_used_without_a_word() {
    let server = MockServer::start([]);
    let home = project(&server);
    home.write(".gitignore", "b.*\n");
    home.write(".git/info/exclude", "c.*\n");
    home.write("src/c.txt", "needle\n");
    let said = results(&home, &server, &search_and_find());
    assert_eq!(said, ["a.txt:1: needle", "a.txt"]);
}

/// A folder of this user below a world-writable one.
fn below_a_folder_for_all(home: &Home) -> (PathBuf, PathBuf) {
    let shared = home.root().join("shared");
    let mine = shared.join("mine");
    fs::create_dir_all(&mine).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(mine.join("a.txt"), "needle\n").unwrap();
    (shared, mine)
}

#[test]
fn ignore_files_of_another_user_hide_nothing() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let (shared, mine) = below_a_folder_for_all(&home);
    for name in [".gitignore", ".ignore", ".rgignore", ".fdignore"] {
        fs::write(shared.join(name), "*\n").unwrap();
        chown(shared.join(name), Some(65534), None).unwrap();
    }
    let calls = |folder: &Path| {
        [
            ("grep", json!({"pattern": "needle", "path": folder})),
            ("find", json!({"pattern": "*.txt", "path": folder})),
        ]
    };
    let said = results(&home, &server, &calls(&mine));
    assert_says(&said[0], &["a.txt:1: needle", "belongs to another user (uid 65534)"]);
    assert_says(&said[1], &["a.txt", "belongs to another user (uid 65534)"]);
    // The owner of a project decides, also where root works in it.
    let theirs = home.root().join("theirs");
    fs::create_dir(&theirs).unwrap();
    for (name, content) in [(".ignore", "b.txt\n"), ("a.txt", "needle\n"), ("b.txt", "needle\n")] {
        fs::write(theirs.join(name), content).unwrap();
        chown(theirs.join(name), Some(65534), None).unwrap();
    }
    chown(&theirs, Some(65534), None).unwrap();
    assert_eq!(results(&home, &server, &calls(&theirs)), ["a.txt:1: needle", "a.txt"]);
}

#[test]
fn the_tools_do_not_read_what_shows_the_daemons_secrets() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    symlink("/proc/self/environ", home.project().join("notes.txt")).unwrap();
    let calls = [
        ("read", json!({"path": "/proc/self/environ"})),
        ("read", json!({"path": "notes.txt"})),
        ("read", json!({"path": "/proc/kmsg"})),
        ("grep", json!({"pattern": "HOME", "path": "/proc/self/environ"})),
        ("grep", json!({"pattern": "HOME", "path": "/proc/self/task"})),
        ("grep", json!({"pattern": "HOME", "path": "notes.txt"})),
        ("edit", json!({"path": "/proc/self/comm", "edits": [{"oldText": "agentd", "newText": "x"}]})),
    ];
    let said = results(&home, &server, &calls);
    for (call, said) in calls.iter().zip(&said) {
        assert!(!said.contains("HOME="), "{call:?}: {said}");
    }
    for said in [&said[0], &said[1], &said[3], &said[5]] {
        assert_says(said, &["it is a file of /proc, which shows the state of processes"]);
    }
    assert_says(&said[4], &["No matches found", "could not be read"]);
    assert_says(&said[6], &["It is not a regular file"]);
}

#[test]
fn links_of_others_in_a_folder_for_all_lead_no_write_anywhere() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let (shared, mine) = below_a_folder_for_all(&home);
    let secret = mine.join("a.txt");
    for name in ["link", "folder"] {
        symlink(if name == "link" { &secret } else { &mine }, shared.join(name)).unwrap();
        std::os::unix::fs::lchown(shared.join(name), Some(65534), None).unwrap();
    }
    let said = results(
        &home,
        &server,
        &[
            ("write", json!({"path": shared.join("link"), "content": "x"})),
            ("write", json!({"path": shared.join("folder/a.txt"), "content": "x"})),
            ("edit", json!({"path": shared.join("link"), "edits": [{"oldText": "needle", "newText": "x"}]})),
        ],
    );
    for said in &said {
        assert_says(said, &["EACCES"]);
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "needle\n");
}

#[test]
fn a_search_that_meets_hostile_files_can_be_aborted_and_ends() {
    let server = MockServer::start([]);
    let home = project(&server);
    for name in ["src/p.txt", "src/.gitignore"] {
        pipe(&home.project().join(name));
    }
    symlink("/dev/zero", home.project().join("src/zero.txt")).unwrap();
    let said = results(&home, &server, &search_and_find());
    assert_says(&said[0], &["a.txt:1: needle"]);
    assert_says(&said[1], &["a.txt\nb.txt\np.txt\nzero.txt"]);
}

/// Tools that change files refuse the agent directory under any name.
#[test]
fn file_tools_leave_the_agent_directory_alone() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let models = home.agent_dir().join("models.json");
    let before = fs::read_to_string(&models).unwrap();
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, home.project().join(name)).unwrap();
    };
    link(&home.agent_dir(), "link");
    link(&models, "file");
    link(&home.agent_dir().join("auth.json"), "new");
    fs::hard_link(&models, home.project().join("hard")).unwrap();
    let theft = r#"{"providers": {"x": {"apiKey": "!env"}}}"#;
    let write = |path: &str| ("write", json!({"path": path, "content": theft}));
    let absolute = models.display().to_string();
    let tried = [
        write(&absolute),
        write("../agent/models.json"),
        write("link/settings.json"),
        write("link/skills/a/SKILL.md"),
        write("file"),
        write("new"),
        write("hard"),
        write("../agent/trust.json"),
        ("edit", json!({"path": "file", "edits": [{"oldText": "test-key-1234", "newText": "!env"}]})),
        ("edit", json!({"path": "hard", "edits": [{"oldText": "test-key-1234", "newText": "!env"}]})),
    ];
    let results = |settings: Value, tried: &[(&str, Value)]| {
        home.settings(&settings);
        let calls: Vec<(String, &str, Value)> = tried
            .iter()
            .enumerate()
            .map(|(index, (tool, arguments))| (format!("c{index}"), *tool, arguments.clone()))
            .collect();
        let calls: Vec<_> =
            calls.iter().map(|(id, tool, arguments)| (&**id, *tool, arguments.clone())).collect();
        server.push(Reply::stream(sse::calls(&calls)));
        server.push(Reply::stream(sse::answer("Done.")));
        let mut daemon = Daemon::start(&home, &["--no-session", "--approve", "--model", "fake/fake"]);
        let said = daemon.prompt("Write.");
        let ends = said.into_iter().filter(|line| line["type"] == "tool_execution_end");
        let mut ends: Vec<(String, bool, String)> = ends
            .map(|line| {
                let id = line["toolCallId"].as_str().unwrap().to_owned();
                (id, line["isError"] == json!(true), line["result"].to_string())
            })
            .collect();
        ends.sort();
        ends
    };
    // A project's setting has no effect, even if trusted.
    home.write(".agentd/settings.json", &json!({"agentDirWritable": ["*"]}).to_string());
    let refused = results(json!({}), &tried);
    assert_eq!(refused.len(), tried.len());
    for (id, is_error, said) in refused {
        assert!(is_error, "{id}: {said}");
        assert_says(&said, &["agentDirWritable", "the agent directory"]);
    }
    assert_eq!(fs::read_to_string(&models).unwrap(), before);
    let of_agent = |name: &str| home.agent_dir().join(name).exists();
    assert!(!of_agent("auth.json") && !of_agent("trust.json") && !of_agent("skills"));
    // The user allows some of it.
    let tried = [write("link/skills/a/SKILL.md"), write("link/models.json"), write("plain")];
    let done = results(json!({"agentDirWritable": ["skills/*"]}), &tried);
    assert_eq!(done.iter().map(|(_, is_error, _)| *is_error).collect::<Vec<_>>(), [false, true, false]);
    assert!(of_agent("skills/a/SKILL.md"));
    assert_eq!(fs::read_to_string(&models).unwrap(), before);
}
