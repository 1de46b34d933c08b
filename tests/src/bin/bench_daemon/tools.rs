//! Tool calls of a model, from the start of `agentd --stdio` to the call's result, each beside the program that people use
//! for the task.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, processes, sse};
use serde_json::{Value, json};

use crate::report::{Report, Scale};

const MIB: u64 = 1 << 20;

pub(crate) fn run(scale: Scale, report: &mut Report) {
    let home = Home::new();
    searching(&home, scale, report);
    listing(&home, scale, report);
    reading(&home, scale, report);
    editing(&home, scale, report);
    commands(&home, scale, report);
}

/// Files in folders of a hundred, of 1 to 13 KB of words; a few of them hold the pattern.
fn searching(home: &Home, scale: Scale, report: &mut Report) {
    let files = scale.of(50_000, 500);
    let tree = home.root().join("tree");
    for number in 0..files {
        let folder = tree.join(format!("d{:03}/e{:02}", number / 1000, number / 100 % 10));
        if number % 100 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        let special = number % (files / 25) == 7;
        let name = format!("{}{number}.txt", if special { "needle-" } else { "file" });
        let mut out = BufWriter::new(File::create(folder.join(name)).unwrap());
        for line in 0..20 + number * 7919 % 240 {
            writeln!(out, "{:08x} some words of a line, as they stand in files", line * number * 31).unwrap();
        }
        if special {
            writeln!(out, "here is the needle {number}").unwrap();
        }
    }
    let text = tree.display().to_string();
    let rounds = scale.of(7, 1);
    let pattern = r"needle \d+$";
    let mut rg = in_folder("rg", &tree);
    rg.args(["--no-config", "--line-number", "--color=never", "--hidden", pattern, "."]);
    compare(
        "grep, 25 of 50,000 files match",
        rounds,
        report,
        home,
        &call("grep", json!({"pattern": pattern, "path": text})),
        &mut rg,
    );
    let mut rg = in_folder("rg", &tree);
    rg.args(["--no-config", "--line-number", "--color=never", "--hidden", "nowhere to be found", "."]);
    compare(
        "grep, none matches",
        rounds,
        report,
        home,
        &call("grep", json!({"pattern": "nowhere to be found", "path": text})),
        &mut rg,
    );
    let mut fd = in_folder("fdfind", &tree);
    fd.args(["--glob", "--hidden", "--color=never", "needle-*", "."]);
    compare(
        "find, 25 of 50,000 fit",
        rounds,
        report,
        home,
        &call("find", json!({"pattern": "needle-*", "path": text})),
        &mut fd,
    );
    let mut fd = in_folder("fdfind", &tree);
    fd.args(["--glob", "--hidden", "--color=never", "--max-results", "1001", "*", "."]);
    compare(
        "find, the first 1,000 of all",
        rounds,
        report,
        home,
        &call("find", json!({"pattern": "*", "path": text})),
        &mut fd,
    );
    fs::remove_dir_all(&tree).unwrap();
}

fn listing(home: &Home, scale: Scale, report: &mut Report) {
    let folder = home.root().join("many");
    fs::create_dir(&folder).unwrap();
    for number in 0..scale.of(100_000, 1000) {
        File::create(folder.join(format!("file-{:06}", number * 7919 % 1_000_003))).unwrap();
    }
    let mut ls = Command::new("ls");
    ls.arg("-1A").arg(&folder);
    compare(
        "ls of 100,000 entries",
        scale.of(7, 1),
        report,
        home,
        &call("ls", json!({"path": folder})),
        &mut ls,
    );
    fs::remove_dir_all(&folder).unwrap();
}

/// A sparse file: its holes are read like everything else.
fn reading(home: &Home, scale: Scale, report: &mut Report) {
    let path = home.root().join("large");
    let mut file = File::create(&path).unwrap();
    file.set_len(scale.of(10 << 30, 100 << 20) as u64).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    for line in 0..1000 {
        writeln!(file, "line {line} at the end").unwrap();
    }
    let mut wc = Command::new("wc");
    wc.arg("-l").arg(&path);
    let args = json!({"path": path, "offset": 900, "limit": 20});
    compare(
        "read near the end of 10 GiB (beside: wc -l)",
        scale.of(3, 1),
        report,
        home,
        &call("read", args),
        &mut wc,
    );
    fs::remove_file(&path).unwrap();
}

fn editing(home: &Home, scale: Scale, report: &mut Report) {
    let path = home.root().join("edited");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let lines = scale.of(1_000_000, 10_000);
    for line in 0..lines {
        writeln!(out, "{line:07} a line of fifty bytes as in other files").unwrap();
    }
    out.into_inner().unwrap().sync_all().unwrap();
    let line = format!("{:07} a line", lines / 2);
    let edits = json!([{"oldText": format!("{line} of"), "newText": format!("{line} so of")}]);
    // Reverts the previous call.
    let mut sed = Command::new("sed");
    sed.arg("-i").arg(format!("s/^{line} so of/{line} of/")).arg(&path);
    let edit = call("edit", json!({"path": path, "edits": edits}));
    compare("edit of 50 MB (beside: sed -i)", scale.of(3, 1), report, home, &edit, &mut sed);
    fs::remove_file(&path).unwrap();
}

fn commands(home: &Home, scale: Scale, report: &mut Report) {
    let line = "0123456789 as much as fits on a line of a hundred characters, so that there are lines as in logs ....";
    let bytes = scale.of(200 << 20, 2 << 20);
    let command = format!("yes '{line}' | head -c {bytes}");
    let mut sh = Command::new("sh");
    sh.arg("-c").arg(format!("{command} > {}", home.root().join("out").display()));
    compare(
        "bash, 200 MiB of output (beside: sh, into a file)",
        scale.of(3, 1),
        report,
        home,
        &call("bash", json!({"command": command})),
        &mut sh,
    );

    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(home, &["--no-session"]);
    let rounds = scale.of(500, 10);
    let mut times: Vec<Duration> = (0..=rounds)
        .map(|_| timed(|| drop(daemon.done(json!({"type": "bash", "command": "true"})))))
        .collect();
    // The guard starts with the first command.
    report.time("bash command `true`, the first one", times.remove(0));
    report.times("bash command `true`, from command to answer", &mut times, 95);
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| timed(|| drop(Command::new("sh").args(["-c", "true"]).output().unwrap())))
        .collect();
    report.times("sh -c true, from this process", &mut times, 95);
}

/// A program that works in a folder.
fn in_folder(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

/// A model's answer that calls one tool.
fn call(tool: &str, arguments: Value) -> Reply {
    Reply::stream(sse::calls(&[("c1", tool, arguments)]))
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// Makes the call in a daemon of its own, and runs the other program, in turns.
fn compare(name: &str, rounds: usize, report: &mut Report, home: &Home, reply: &Reply, other: &mut Command) {
    other.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut ours, mut calls, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut peak = 0;
    for _ in 0..rounds {
        let server = MockServer::start([reply.clone(), Reply::stream(sse::answer("Done."))]);
        home.configure(&agentd_e2e::home::models(&server.base_url()));
        let begun = Instant::now();
        let mut daemon =
            Daemon::start(home, &["--no-session", "--tools", "read,bash,edit,write,grep,find,ls"]);
        daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
        let started = daemon.event("tool_execution_start");
        let call_begun = Instant::now();
        let ended = daemon.event("tool_execution_end");
        ours.push(begun.elapsed());
        calls.push(call_begun.elapsed());
        assert_eq!(ended["isError"], false, "{name}: {started} {ended}");
        daemon.settled();
        peak = processes::usage(daemon.id()).peak.max(peak);
        daemon.close();
        let begun = Instant::now();
        match other.output() {
            Ok(_) => theirs.push(begun.elapsed()),
            Err(error) => report.note(&format!("{}: {error}", PathBuf::from(other.get_program()).display())),
        }
    }
    report.median(&format!("{name}: agentd, from its start"), &mut ours);
    report.median(&format!("{name}: the call alone"), &mut calls);
    if !theirs.is_empty() {
        report.median(&format!("{name}: {}", other.get_program().display()), &mut theirs);
    }
    report.figure(
        &format!("{name}: agentd's peak memory"),
        crate::report::exact(peak) / crate::report::exact(MIB),
        "MiB",
    );
}
