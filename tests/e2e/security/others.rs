//! Other users of the machine, and other programs of the same user.

use std::{
    fs,
    io::{self, BufRead, BufReader, ErrorKind, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    process::{Command, Output},
};

use agentd_e2e::{Home, Service, binaries, ctl};
use rustix::{process::Uid, thread::set_thread_res_uid};
use serde_json::json;

/// A user other than root, if the test runs as root; otherwise `None`.
fn nobody() -> Option<u32> {
    rustix::process::getuid().is_root().then_some(65534)
}

/// The daemon's response to another user.
fn ask_as(user: u32, socket: &Path) -> io::Result<String> {
    let socket = socket.to_owned();
    let asking = std::thread::spawn(move || {
        // Changes the user of this thread only, which ends with the question.
        let user = Uid::from_raw(user);
        set_thread_res_uid(user, user, user)?;
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(b"{\"type\":\"daemon_status\"}\n")?;
        let mut said = String::new();
        BufReader::new(stream).read_line(&mut said)?;
        Ok(said)
    });
    asking.join().unwrap()
}

/// Runs a script as another user without our groups.
fn as_user(user: u32, script: &str, args: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user.to_string(), "--regid", &user.to_string(), "--clear-groups", "--"]);
    command.args(["/bin/bash", "-c", script, "bash"]).args(args);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap()
}

#[test]
fn another_user_gets_no_word_out_of_the_daemon() {
    let Some(nobody) = nobody() else { return };
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let socket = service.socket();
    // The folder keeps others out.
    assert_eq!(ask_as(nobody, socket).unwrap_err().kind(), ErrorKind::PermissionDenied);
    // The daemon refuses them, too, when the folder is open.
    let mut folder = Some(socket);
    while let Some(path) = folder.filter(|path| path.starts_with(home.root())) {
        let mode = if path.is_dir() { 0o755 } else { 0o666 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        folder = path.parent();
    }
    match ask_as(nobody, socket) {
        Ok(said) => assert_eq!(said, "", "another user was answered"),
        Err(error) => {
            let ended = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            assert!(ended.contains(&error.kind()), "{error}");
        }
    }
    // Its own user is served.
    assert!(ask_as(0, socket).unwrap().contains("success\":true"));
}
/// Gives a home to another user, who then runs agentd.
fn hand_over(home: &Home, user: u32) {
    let done =
        Command::new("chown").arg("-R").arg(format!("{user}:{user}")).arg(home.root()).status().unwrap();
    assert!(done.success());
    fs::set_permissions(home.root(), fs::Permissions::from_mode(0o700)).unwrap();
}

/// A folder in which another user can run the programs under test.
fn programs(home: &Home) -> Option<String> {
    let folder = home.root().join("programs");
    fs::create_dir(&folder).ok()?;
    let agentd = ctl::agentd(home, &[]);
    binaries::copy(Path::new(agentd.get_program()), &folder.join("agentd"));
    folder.join("agentd").to_str().map(str::to_owned)
}

/// A model's command runs as the same user. It can read neither the daemon's memory nor its initial environment.
#[test]
#[cfg(target_os = "linux")]
fn commands_cannot_look_into_the_daemon() {
    let Some(nobody) = nobody() else { return };
    let home = Home::new();
    let agentd = programs(&home).unwrap();
    hand_over(&home, nobody);
    let look = "d=$PPID; while [ \"$(cat /proc/$d/comm)\" != agentd ]; do d=$(cut -d\\  -f4 /proc/$d/stat); done; \
                cat /proc/$d/environ && echo readable; head -c1 /proc/$d/mem; ls /proc/$d/fd; echo looked";
    let run = |variable: &str| {
        let command = json!({"id": "1", "type": "bash", "command": look});
        let script = format!(
            "cd \"$2\" && (printf '%s\\n' '{}'; sleep 0) | env {variable} HOME=\"$2\" AGENTD_DIR=\"$2/agent\" TMPDIR=\"$2/tmp\" \
             OPENAI_API_KEY=canary-of-the-daemon \"$1\" --stdio --no-session --on-eof drain",
            command.to_string().replace('\'', "'\\''")
        );
        let done = as_user(nobody, &script, &[&agentd, home.root().to_str().unwrap()]);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.contains("looked"), "{done:?}");
        said
    };
    let said = run("A=1");
    assert!(!said.contains("canary-of-the-daemon") && !said.contains("readable"), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    // Control: with `AGENTD_DUMPABLE` it can.
    let said = run("AGENTD_DUMPABLE=1");
    assert!(said.contains("readable"), "{said}");
}
