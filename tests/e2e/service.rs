//! `agentctl service`: files for systemd and launchd, in homes of tests; service managers are stand-ins.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use agentd_e2e::{
    Ctl, Home, binaries,
    ctl::{self, Finished},
};
use serde_json::{Value, json};

use crate::support::assert_says;

fn units(home: &Home) -> PathBuf {
    home.root().join("home/.config/systemd/user")
}

fn run(home: &Home, args: &[&str]) -> Finished {
    ctl::run(home, &[&["service"], args].concat())
}

fn states(home: &Home) -> (i32, Vec<String>) {
    let said = run(home, &["status", "--json"]);
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    (said.code, files.iter().map(|file| file["state"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn files_are_written_once_and_those_of_others_are_kept() {
    let home = Home::new();
    assert_eq!(states(&home), (1, vec!["missing".into(), "missing".into()]));
    let first = run(&home, &["install", "--kind", "systemd"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert_says(
        &first.stdout,
        &[
            "wrote ",
            "agentd.service",
            "systemctl --user daemon-reload",
            "systemctl --user enable --now agentd.socket",
        ],
    );
    let service = units(&home).join("agentd.service");
    let text = fs::read_to_string(&service).unwrap();
    let agentd = binaries::agentd();
    assert_says(&text, &[&format!("ExecStart=\"{}\" serve\n", agentd.display())]);
    assert_says(&text, &[&format!("Environment=\"AGENTD_DIR={}\"\n", home.agent_dir().display())]);
    let socket = fs::read_to_string(units(&home).join("agentd.socket")).unwrap();
    assert_says(&socket, &[&format!("ListenStream={}/run/agentd.sock\n", home.agent_dir().display())]);
    assert_eq!(fs::metadata(&service).unwrap().permissions().mode() & 0o022, 0);

    let again = run(&home, &["install", "--kind", "systemd"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains("is up to date") && !again.stdout.contains("wrote "), "{again:?}");
    assert_eq!(states(&home), (0, vec!["installed".into(), "installed".into()]));

    // A file that the user changed stays, and with it the other one.
    fs::write(&service, text.clone() + "# mine\n").unwrap();
    assert_eq!(states(&home), (1, vec!["changed".into(), "installed".into()]));
    for verb in ["install", "uninstall"] {
        let refused = run(&home, &[verb, "--kind", "systemd"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused:?}");
        assert_says(&refused.stderr, &["agentd.service was changed since agentctl wrote it", "--force"]);
    }
    assert!(fs::read_to_string(&service).unwrap().ends_with("# mine\n"));
    assert_eq!(run(&home, &["install", "--kind", "systemd", "--force"]).code, 0);
    assert_eq!(fs::read_to_string(&service).unwrap(), text);

    // So does the file of another program.
    fs::write(&service, "[Service]\nExecStart=/bin/true\n").unwrap();
    let refused = run(&home, &["install", "--kind", "systemd"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["was not written by agentctl"]);
    fs::write(&service, &text).unwrap();

    // `uninstall` removes what enabled them, too, and nothing else.
    let wants = units(&home).join("sockets.target.wants");
    fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink("../agentd.socket", wants.join("agentd.socket")).unwrap();
    std::os::unix::fs::symlink("../other.socket", wants.join("other.socket")).unwrap();
    let gone = run(&home, &["uninstall", "--kind", "systemd"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_says(&gone.stdout, &["removed ", "systemctl --user stop agentd.socket agentd.service"]);
    assert!(!service.exists() && fs::symlink_metadata(wants.join("agentd.socket")).is_err());
    assert!(fs::symlink_metadata(wants.join("other.socket")).is_ok());
    let nothing = run(&home, &["uninstall", "--kind", "systemd"]);
    assert_eq!(
        (nothing.code, nothing.stdout.as_str()),
        (0, "The service is not installed.\n"),
        "{nothing:?}"
    );
}

/// A home whose `systemctl` notes what it is asked for, and ends with `code`.
fn with_stand_in(home: &Home, code: i32, args: &[&str]) -> (Finished, String) {
    let bin = home.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let (program, log) = (bin.join("systemctl"), home.root().join("asked"));
    fs::write(&program, format!("#!/bin/sh\necho \"$*\" >> '{}'\nexit {code}\n", log.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let _ = fs::remove_file(&log);
    let mut command: Command = home.command(binaries::agentctl());
    let path = std::env::var("PATH").unwrap();
    command.arg("service").args(args).env("PATH", format!("{}:{path}", bin.display()));
    let finished = Ctl::start_with(command, std::process::Stdio::null()).finish();
    (finished, fs::read_to_string(&log).unwrap_or_default())
}

#[test]
fn the_service_manager_is_asked_only_with_now() {
    let home = Home::new();
    let (quiet, asked) = with_stand_in(&home, 0, &["install", "--kind", "systemd"]);
    assert_eq!((quiet.code, asked.as_str()), (0, ""), "{quiet:?}");
    let (done, asked) = with_stand_in(&home, 0, &["install", "--kind", "systemd", "--now"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(asked, "--user daemon-reload\n--user enable --now agentd.socket\n");
    let (failed, asked) = with_stand_in(&home, 7, &["install", "--kind", "systemd", "--now"]);
    assert_eq!((failed.code, asked.as_str()), (1, "--user daemon-reload\n"), "{failed:?}");
    assert_says(&failed.stderr, &["`systemctl --user daemon-reload` failed"]);
    let (gone, asked) = with_stand_in(&home, 0, &["uninstall", "--kind", "systemd", "--now"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_eq!(asked, "--user stop agentd.socket agentd.service\n--user daemon-reload\n");
    assert!(!units(&home).join("agentd.socket").exists());
}

/// A program of the machine that works in a home of a test; `None` where there is none, which is said.
fn program(home: &Home, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let works = |program: &PathBuf| {
        let ran = home.command(program).arg("--version").output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(works);
    if found.is_none() {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: there is no {name}");
    }
    found
}

/// An agent directory that needs escapes in both syntaxes.
const AGENTS: &str = "the \"agents\" \\ <&";

/// A command with paths that need escapes in every syntax.
fn odd(home: &Home, kind: &str) -> Finished {
    let folder = home.root().join("a b/100% $x & <y>");
    fs::create_dir_all(folder.join(AGENTS)).unwrap();
    let agentctl = folder.join("agentctl");
    for (from, name) in [(binaries::agentctl(), "agentctl"), (binaries::agentd(), "agentd")] {
        binaries::copy(&from, &folder.join(name));
    }
    let mut command: Command = home.command(agentctl);
    command.args(["service", "install", "--kind", kind]).env("AGENTD_DIR", folder.join(AGENTS));
    command.env("AGENTD_SOCKET", home.root().join("s p%t.sock"));
    Ctl::start_with(command, std::process::Stdio::null()).finish()
}

#[test]
fn systemd_reads_its_units() {
    let home = Home::new();
    let installed = odd(&home, "systemd");
    assert_eq!(installed.code, 0, "{installed:?}");
    let Some(verifier) = program(&home, "systemd-analyze") else { return };
    for name in ["agentd.service", "agentd.socket"] {
        let mut command: Command = home.command(&verifier);
        command.args(["verify", "--user", "--man=no", "--recursive-errors=no"]).arg(units(&home).join(name));
        command.env("XDG_RUNTIME_DIR", home.root().join("tmp"));
        let verified = Ctl::start_with(command, std::process::Stdio::null()).finish();
        // Also empty: everything that it does not understand is a line.
        let about_ours: Vec<&str> = verified.stderr.lines().filter(|line| line.contains("agentd.")).collect();
        assert_eq!((verified.code, about_ours), (0, Vec::<&str>::new()), "{verified:?}");
    }
}

#[test]
fn a_parser_reads_the_launch_agent() {
    let home = Home::new();
    let installed = odd(&home, "launchd");
    assert_eq!(installed.code, 0, "{installed:?}");
    assert_says(&installed.stdout, &["launchctl bootstrap gui/", "dev.agentd.plist"]);
    let Some(python) = program(&home, "python3") else { return };
    let agent = home.root().join("home/Library/LaunchAgents/dev.agentd.plist");
    let mut command: Command = home.command(python);
    let script = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    command.args(["-c", script]).arg(agent);
    let read = Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(read.code, 0, "{read:?}");
    let read: Value = serde_json::from_str(&read.stdout).unwrap();
    let folder = home.root().join("a b/100% $x & <y>");
    let words = json!([folder.join("agentd"), "serve", "--socket", home.root().join("s p%t.sock")]);
    assert_eq!(read["ProgramArguments"], words);
    assert_eq!(read["EnvironmentVariables"]["AGENTD_DIR"], json!(folder.join(AGENTS)));
    assert_eq!(read["KeepAlive"]["SuccessfulExit"], json!(false));
    assert_eq!(read["StandardErrorPath"], json!(folder.join(AGENTS).join("logs/agentd.log")));
}

#[test]
fn print_writes_nothing() {
    let home = Home::new();
    for (kind, wanted) in [
        ("systemd", &["[Service]", "[Socket]", "agentd.socket"][..]),
        ("launchd", &["<plist version=\"1.0\">"][..]),
    ] {
        let printed = run(&home, &["install", "--kind", kind, "--print"]);
        assert_eq!(printed.code, 0, "{printed:?}");
        assert_says(&printed.stdout, wanted);
    }
    assert!(!units(&home).exists() && !home.root().join("home/Library").exists());
}
