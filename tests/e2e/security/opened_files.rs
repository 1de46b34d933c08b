//! Unexpected objects in the place of files of the agent directory, a project or the command line: nothing hangs, no
//! memory is filled, no content leaks, and the error names the file.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, chown, symlink},
    path::Path,
    process::{Command, Stdio},
};

use agentd_e2e::{Ctl, Daemon, Home, MockServer, Reply, Service, ctl, processes, sse};
use serde_json::{Value, json};

use crate::support::assert_says;

pub(super) fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    assert!(path.metadata().unwrap().file_type().is_fifo());
}

/// Makes a sparse file that exceeds all memory.
pub(super) fn make_endless(path: &Path) {
    fs::File::create(path).unwrap().set_len(5 << 40).unwrap();
}

fn told(daemon: &mut Daemon) -> String {
    daemon.done(json!({"type": "get_diagnostics"}))["diagnostics"].to_string()
}

#[test]
fn an_object_in_the_place_of_a_configuration_file_is_named_and_not_read() {
    for name in ["settings.json", "models.json", "auth.json"] {
        let home = Home::new();
        let path = home.agent_dir().join(name);
        let places: [(&dyn Fn(), &str); 5] = [
            (&|| make_pipe(&path), "is a named pipe, no regular file"),
            (&|| symlink("/dev/zero", &path).unwrap(), "is a device, no regular file"),
            (&|| symlink("/proc/self/environ", &path).unwrap(), "is a file of /proc"),
            (&|| make_endless(&path), "is 5497558138880 bytes long"),
            (&|| fs::create_dir(&path).unwrap(), "is a folder, no regular file"),
        ];
        for (make, problem) in places {
            make();
            let mut daemon = Daemon::start_with(&home, &[], |command| {
                command.env("CANARY_VARIABLE", "canary-4711");
            });
            let said = told(&mut daemon);
            assert_says(&said, &[name, problem]);
            assert!(!said.contains("canary-4711"), "{said}");
            let refused = daemon.call(json!({"type": "login", "provider": "openai", "key": "k-0123456789"}));
            assert_eq!(refused["success"], json!(name != "auth.json"), "{name}: {refused}");
            daemon.close();
            if path.is_dir() {
                fs::remove_dir(&path).unwrap()
            } else {
                fs::remove_file(&path).unwrap()
            }
            let _ = fs::remove_file(home.agent_dir().join("auth.json"));
        }
    }
}

/// Programs that manage dotfiles replace files by links.
#[test]
fn links_of_the_user_to_files_of_the_user_count() {
    let server = MockServer::start([Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    home.settings(&json!({"steeringMode": "all"}));
    for name in ["settings.json", "models.json"] {
        let (path, kept) = (home.agent_dir().join(name), home.root().join("home").join(name));
        fs::rename(&path, &kept).unwrap();
        symlink(&kept, &path).unwrap();
    }
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(told(&mut daemon), "[]");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["steeringMode"], "all");
    daemon.prompt("Hello.");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn files_of_another_user_are_refused_and_reported() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let home = Home::new();
    home.settings(&json!({"shellPath": "/tmp/evil"}));
    chown(home.agent_dir().join("settings.json"), Some(65534), None).unwrap();
    let mut daemon = Daemon::start(&home, &[]);
    assert_says(&told(&mut daemon), &["settings.json", "belongs to another user (uid 65534)", "chown"]);
    assert_eq!(daemon.done(json!({"type": "bash", "command": "echo works"}))["output"], "works\n");
    daemon.close();
    // What it would keep from happening does not happen without it.
    home.settings(&json!({"permissions": {"preset": "read-only"}}));
    chown(home.agent_dir().join("settings.json"), Some(65534), None).unwrap();
    let refused = ctl::run(&home, &["prompt", "--demo", "Hello."]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["settings.json", "belongs to another user (uid 65534)", "chown"]);
}

#[test]
fn settings_of_a_project_lie_in_the_project() {
    let home = Home::new();
    home.write_home("secret.json", r#"{"steeringMode": "all", "token": "hush-4711"}"#);
    home.write("shared.json", r#"{"steeringMode": "all"}"#);
    fs::create_dir_all(home.project().join(".agentd")).unwrap();
    let file = home.project().join(".agentd/settings.json");
    let mode = |home: &Home| {
        let mut daemon = Daemon::start(home, &["--approve"]);
        (daemon.done(json!({"type": "get_state"}))["steeringMode"].clone(), told(&mut daemon))
    };
    symlink(home.root().join("home/secret.json"), &file).unwrap();
    let (value, said) = mode(&home);
    assert_eq!(value, "one-at-a-time");
    assert_says(&said, &["settings.json", "leads out of its folder"]);
    assert!(!said.contains("hush-4711"), "{said}");
    fs::remove_file(&file).unwrap();
    symlink("../shared.json", &file).unwrap();
    assert_eq!(mode(&home).0, "all");
    fs::remove_file(&file).unwrap();
    make_pipe(&file);
    assert_says(&mode(&home).1, &["settings.json", "is a named pipe"]);
}

#[test]
fn locks_are_neither_followed_nor_cut() {
    let home = Home::new();
    let run = home.agent_dir().join("run");
    fs::create_dir_all(&run).unwrap();
    let precious = home.root().join("home/precious");
    fs::write(&precious, "precious").unwrap();
    for (lock, is_hard) in [("auth.lock", false), ("auth.lock", true), ("settings.lock", false)] {
        let lock = run.join(lock);
        let _ = fs::remove_file(&lock);
        if is_hard {
            fs::write(&precious, "precious".repeat(100)).unwrap();
            fs::hard_link(&precious, &lock).unwrap();
        } else {
            symlink(&precious, &lock).unwrap();
        }
        let before = fs::read_to_string(&precious).unwrap();
        let mut daemon = Daemon::start(&home, &[]);
        let command = if lock.ends_with("auth.lock") {
            json!({"type": "login", "provider": "openai", "key": "k-0123456789"})
        } else {
            json!({"type": "set_steering_mode", "mode": "all"})
        };
        let refused = daemon.call(command);
        if lock.ends_with("auth.lock") {
            assert_says(&refused.to_string(), &["auth.lock", "\"success\":false"]);
        }
        daemon.close();
        assert_eq!(fs::read_to_string(&precious).unwrap(), before, "{}", lock.display());
    }
    // The lock beside the socket.
    let place = home.root().join("home/run");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for make in [&|path: &Path| symlink("../precious", path).unwrap(), &make_pipe as &dyn Fn(&Path)] {
        let lock = place.join("a.sock.lock");
        let _ = fs::remove_file(&lock);
        make(&lock);
        let before = fs::read_to_string(&precious).unwrap();
        let socket = place.join("a.sock");
        let Err(ended) = Service::try_start(&home, &["--socket", socket.to_str().unwrap()], |_| {}) else {
            panic!("it started");
        };
        assert_says(&ended.stderr, &["a.sock.lock"]);
        assert_eq!(fs::read_to_string(&precious).unwrap(), before);
    }
}

/// Starts a process with this limit of file locks, which is how a mark is stored.
fn innocent(limit: &str) -> std::process::Child {
    let script = format!("ulimit -x {limit} && echo set && exec sleep 1000");
    let mut child =
        Command::new("/bin/bash").args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("bash");
    let mut said = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).expect("a limit that can be set");
    child
}

#[test]
fn notes_of_dead_daemons_kill_only_what_these_started() {
    let home = Home::new();
    let owners = home.agent_dir().join("run/owners");
    fs::create_dir_all(&owners).unwrap();
    let names = ["0000000000010000", "0000000012a05f20", "0000001000000000", "0000001000000001"];
    let mut innocents = names.map(|name| innocent(&u64::from_str_radix(name, 16).unwrap().to_string()));
    let ids = innocents.each_ref().map(|child| i32::try_from(child.id()).unwrap());
    let watched = processes::watch(&ids);
    fs::write(owners.join(names[0]), "").unwrap();
    fs::write(owners.join(names[1]), "1\n1\n").unwrap();
    // Notes as of a daemon that was killed before it wrote its processes, and of one that started later than they did.
    fs::write(owners.join(names[2]), "").unwrap();
    fs::write(owners.join(names[3]), format!("1\n{}\n", u64::MAX)).unwrap();
    // A pipe that used to block every command.
    make_pipe(&owners.join("0000001000000002"));
    symlink("/dev/zero", owners.join("0000001000000003")).unwrap();
    make_endless(&owners.join("0000001000000004"));
    fs::create_dir(owners.join("0000001000000005")).unwrap();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(daemon.done(json!({"type": "bash", "command": "echo works"}))["output"], "works\n");
    daemon.close();
    assert!(watched.all_alive());
    assert!(!owners.join(names[2]).exists(), "nobody wrote to the end of that one");
    for child in &mut innocents {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_pipe_as_log_or_as_target_of_an_export_hangs_nobody() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Hello.");
    daemon.close();
    let session = home.session_files()[0].display().to_string();
    let pipe = home.root().join("page.md");
    make_pipe(&pipe);
    let export = ["export", &session, "-o", pipe.to_str().unwrap()];
    let refused = ctl::run(&home, &export);
    assert_says(&refused.stderr, &["is there already"]);
    let refused = ctl::run(&home, &[&export[..], &["--force"]].concat());
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["page.md", "nobody reads from this named pipe"]);
    // A pipe with a reader is as good as stdout.
    let mut cat = home.command("/bin/cat");
    cat.arg(&pipe);
    let reader = Ctl::start_with(cat, Stdio::null());
    let writing = ctl::run(&home, &[&export[..], &["--force"]].concat());
    // The reader may or may not have opened the pipe: both results are fine.
    if writing.code == 0 {
        assert_says(&reader.finish().stdout, &["Hello.", "Ok."]);
    } else {
        assert_says(&writing.stderr, &["nobody reads"]);
        reader.signal(rustix::process::Signal::KILL);
    }
    for device in ["/dev/null", "/dev/stdout"] {
        let done = ctl::run(&home, &["export", &session, "-o", device, "--force", "--format", "md"]);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(done.stdout.contains("Hello."), device == "/dev/stdout", "{done:?}");
    }
    // A report is only written to a new file.
    let refused = ctl::run(&home, &["bug-report", &session, "-o", pipe.to_str().unwrap()]);
    assert_says(&refused.stderr, &["page.md", "is there already"]);

    let log = home.agent_dir().join("logs/agentd.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    for make in [&make_pipe as &dyn Fn(&Path), &|path: &Path| symlink("/dev/zero", path).unwrap()] {
        let _ = fs::remove_file(&log);
        make(&log);
        let refused = ctl::run(&home, &["up"]);
        assert_ne!(refused.code, 0, "{refused:?}");
        assert_says(&refused.stderr, &["agentd.log", "no regular file"]);
        let shown = ctl::run(&home, &["logs"]);
        assert_says(&shown.stderr, &["no regular file"]);
    }
}

#[test]
fn files_for_a_prompt_are_files() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    make_pipe(&home.project().join("pipe"));
    make_endless(&home.project().join("endless"));
    symlink("/dev/zero", home.project().join("zero")).unwrap();
    symlink("/proc/self/environ", home.project().join("variables")).unwrap();
    for (file, problem) in [
        ("pipe", "is a named pipe"),
        ("endless", "too large"),
        ("zero", "is a device"),
        ("variables", "is a file of /proc"),
        ("/dev/fd/0/../../zero", "is a device"),
    ] {
        let refused = ctl::run(&home, &["prompt", "--model", "fake/fake", "Look.", &format!("@{file}")]);
        assert_ne!(refused.code, 0, "{file}: {refused:?}");
        assert_says(&refused.stderr, &[problem]);
    }
    assert_eq!(server.requests().len(), 0);
    // The shell passes a pipe with a writer.
    let ctl_program = ctl::command(&home, &[]);
    let mut shell = home.command("/bin/bash");
    shell.args(["-c", "exec \"$0\" prompt --model fake/fake Look. @<(echo from a command)"]);
    shell.arg(ctl_program.get_program());
    let done = Ctl::start_with(shell, Stdio::null()).finish();
    assert_eq!(done.code, 0, "{done:?}");
    let asked = serde_json::to_string(server.requests()[0].messages()).unwrap();
    assert!(asked.contains("from a command"), "{asked}");
    let linked = home.project().join("linked.txt");
    home.write("real.txt", "from a link");
    symlink("real.txt", &linked).unwrap();
    assert_eq!(ctl::run(&home, &["prompt", "--model", "fake/fake", "Look.", "@linked.txt"]).code, 0);
    assert!(server.requests()[1].messages().iter().any(|it: &Value| it.to_string().contains("from a link")));
}

#[test]
fn recordings_to_play_are_files() {
    let home = Home::new();
    let folder = home.root().join("home/recordings");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("1-x.jsonl");
    let places: [(&dyn Fn(), &str); 4] = [
        (&|| make_pipe(&file), "is a named pipe"),
        (&|| symlink("/dev/zero", &file).unwrap(), "is a device"),
        (&|| symlink("/proc/self/environ", &file).unwrap(), "is a file of /proc"),
        (&|| make_endless(&file), "bytes long"),
    ];
    for (make, problem) in places {
        make();
        for named in [&folder, &file] {
            let command = ctl::agentd(&home, &["--stdio", "--replay", named.to_str().unwrap()]);
            let refused = Ctl::start_with(command, Stdio::null()).finish();
            assert_ne!(refused.code, 0, "{refused:?}");
            assert_says(&refused.stderr, &["1-x.jsonl", problem]);
        }
        fs::remove_file(&file).unwrap();
    }
}
