//! `agentctl usage`: what sessions spent, from their files.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use agentd_e2e::{
    Home, Terminal, binaries,
    ctl::{self, Finished},
};
use serde_json::{Value, json};

/// A session file as any program may write it: an answer for each (day, model, dollars).
fn session(home: &Home, folder: &str, id: &str, cwd: &str, answers: &[(&str, &str, f64)]) -> PathBuf {
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2020-01-01T00:00:00.000Z", "cwd": cwd});
    let entries = answers.iter().enumerate().map(|(at, (day, model, cost))| {
        json!({"type": "message", "id": format!("{id}{at}"), "parentId": null, "timestamp": format!("{day}T12:00:00.000Z"),
            "message": {"role": "assistant", "provider": "p", "model": model, "content": [], "stopReason": "stop",
                "usage": {"input": 1000, "output": 200, "cost": {"total": cost}}}})
    });
    let lines: Vec<String> = [header].into_iter().chain(entries).map(|line| format!("{line}\n")).collect();
    let path = home.agent_dir().join("sessions").join(folder).join(format!("{id}.jsonl"));
    home.write_agent(&format!("sessions/{folder}/{id}.jsonl"), &lines.concat());
    path
}

fn two_projects() -> Home {
    let home = Home::new();
    session(&home, "a", "s1", "/code/a", &[("2026-01-01", "m", 0.5), ("2026-01-02", "n", 0.25)]);
    session(&home, "b", "s2", "/code/b", &[("2026-01-02", "m", 1.0)]);
    home.write_agent("sessions/a/broken.jsonl", "{\"type\":\"session\",\n\0\0\0");
    home.write_agent("sessions/a/other.jsonl", "{\"some\":\"thing\"}\n");
    home.write_agent("sessions/a/torn.jsonl", "{\"type\":\"ses");
    home
}

fn shown(home: &Home, args: &[&str]) -> String {
    let Finished { code, stdout, stderr } = ctl::run(home, &[&["usage"], args].concat());
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    stdout
}

#[test]
fn the_tables() {
    let home = two_projects();
    let by_day = "\
day            cost  tokens  answers  calls
2026-01-01  $0.5000    1.2k        1      0
2026-01-02  $1.2500    2.4k        2      0
total       $1.7500    3.6k        3      0
";
    assert_eq!(shown(&home, &[]), by_day);
    let by_model = "\
model     cost  tokens  answers  calls
p/m    $1.5000    2.4k        2      0
p/n    $0.2500    1.2k        1      0
total  $1.7500    3.6k        3      0
";
    assert_eq!(shown(&home, &["--by", "model"]), by_model);
    let by_project = "\
project     cost  tokens  answers  calls
/code/b  $1.0000    1.2k        1      0
/code/a  $0.7500    2.4k        2      0
total    $1.7500    3.6k        3      0
";
    assert_eq!(shown(&home, &["--by", "project"]), by_project);
    assert!(shown(&home, &["--by", "session"]).contains("s2  (no messages)"));
    assert_eq!(shown(&home, &["--since", "1d"]).lines().count(), 1);
    let report: Value = serde_json::from_str(&shown(&home, &["--json"])).unwrap();
    assert_eq!(
        (&report["total"]["costUsd"], &report["files"], &report["total"]["sessions"]),
        (&json!(1.75), &json!(5), &json!(2))
    );
    let wrong = ctl::run(&home, &["usage", "--since", "soon"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("such as 7d or 4w"), "{wrong:?}");
}

#[test]
fn what_is_new_is_counted_and_the_index_is_made_again_where_it_is_of_no_use() {
    let home = two_projects();
    shown(&home, &[]);
    let index = home.agent_dir().join("usage-index.json");
    assert_eq!(fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o600);
    let total = |home: &Home| {
        let report: Value = serde_json::from_str(&shown(home, &["--json"])).unwrap();
        report["total"]["costUsd"].as_f64().unwrap()
    };
    let path = session(&home, "b", "s3", "/code/b", &[("2026-01-03", "m", 4.0)]);
    assert_eq!(total(&home), 5.75);
    fs::remove_file(path).unwrap();
    assert_eq!(total(&home), 1.75);
    for text in ["", "{}", "no json"] {
        fs::write(&index, text).unwrap();
        assert_eq!(total(&home), 1.75, "{text:?}");
    }
    // An index that cannot be written costs time, not the report.
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    let said = ctl::run(&home, &["usage"]);
    assert!(
        said.code == 0 && said.stdout.contains("$1.7500") && said.stderr.contains("usage-index.json"),
        "{said:?}"
    );
}

#[test]
fn a_terminal_gets_bars() {
    let home = two_projects();
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["usage"]);
    terminal.wait_for("total");
    let shown = terminal.shown();
    assert!(shown.contains('█'), "{shown}");
    assert_eq!(terminal.finish().code, 0);
}
