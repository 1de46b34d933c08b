use std::os::unix::fs::PermissionsExt as _;

use agentd_http::register_secret;
use serde_json::json;

use super::*;

const LOG: &str = "program.log";

/// Runs `work` with a log, and gives what stands there after it.
fn logged(work: impl FnOnce(&ProgramLog)) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let log = ProgramLog::at(folder.path().join("agent").join(LOG));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        work(&log);
        log.flushed().await;
    });
    let mode = fs::metadata(log.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let text = fs::read_to_string(log.path()).unwrap();
    text.lines().map(|line| line.split_once("Z [").map_or(line, |(_, line)| line).to_owned()).collect()
}

#[test]
fn messages_and_errors_are_lines() {
    register_secret("a-secret-of-the-log-42");
    let lines = logged(|log| {
        let source = log.source("s");
        source.message("error", Some("db"), &json!("one\ntwo\u{1b}[2J\n"));
        source.message("info", None, &json!({"a": [1, "a-secret-of-the-log-42"]}));
        source.message("info\nx", None, &json!("y".repeat(10_000)));
        source.errors("half ");
        source.errors("a line\n\nanother\nthe ");
        source.errors("end");
    });
    assert_eq!(lines[..3], ["s] error db: one", "    two [2J", "s] info: {\"a\":[1,\"[redacted]\"]}"]);
    assert_eq!(lines[3], format!("s] info x: {}", "y".repeat(MAX_TEXT)));
    assert_eq!(lines[4..], ["s] stderr: half a line", "s] stderr: another", "s] stderr: the end"]);
}

#[test]
fn a_flood_is_counted_and_not_written() {
    let lines = logged(|log| {
        let source = log.source("s");
        (0..1000).for_each(|number| source.message("info", None, &json!(number)));
    });
    // A second may have passed between them.
    let left_out: Vec<u64> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("s] warning agentd: ")?.split(' ').next()?.parse().ok())
        .collect();
    let is_note = |line: &&String| line.contains("more than 100 messages in a second");
    let written = lines.len() - left_out.len() - lines.iter().filter(is_note).count();
    assert!(lines.iter().any(|line| is_note(&line)));
    assert_eq!(written as u64 + left_out.iter().sum::<u64>(), 1000);
    assert!(written >= LINES_A_SECOND as usize && !left_out.is_empty(), "{written}");
}

#[test]
fn lines_of_each_second_are_counted() {
    let (mut rate, start) = (LineRate::default(), Instant::now());
    (0..LINES_A_SECOND).for_each(|_| assert_eq!(rate.admit(start), Admitted::Yes { before: 0 }));
    for is_first in [true, false, false] {
        assert_eq!(rate.admit(start + SECOND / 2), Admitted::No { is_first });
    }
    assert_eq!(rate.admit(start + SECOND), Admitted::Yes { before: 3 });
    assert_eq!(rate.admit(start + SECOND), Admitted::Yes { before: 0 });
}

#[test]
fn what_finds_no_room_is_counted() {
    let lines = logged(|log| {
        // The runtime has one thread, and so nothing is written meanwhile.
        log.lock().is_writing = true;
        let long = "z".repeat(MAX_QUEUE / 2);
        (0..4).for_each(|_| log.push(line("s", "info", &long)));
        log.write_queued();
    });
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1], "agentd] warning: 3 messages were left out");
}

#[test]
fn a_long_log_is_moved_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LOG);
    let length = |path: &Path| fs::metadata(path).unwrap().len();
    let half = vec![b'x'; (MAX_FILE / 2) as usize];
    for _ in 0..5 {
        append(&path, &half).unwrap();
    }
    assert_eq!((length(&path), length(&folder.path().join("program.log.1"))), (MAX_FILE / 2, MAX_FILE));
    // A text that is longer than a file may be is written all the same.
    append(&path, &vec![b'y'; MAX_FILE as usize + 1]).unwrap();
    assert_eq!(length(&path), MAX_FILE + 1);
    // A file in the way of another process is left alone.
    let file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(move_away(&file, &path).unwrap());
}

#[test]
fn a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join(LOG), folder.path().join("other"));
    fs::write(&other, "").unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(append(&path, b"x").is_err());
    assert_eq!(fs::read(&other).unwrap(), b"");
}
