use std::{
    fs,
    time::{Duration, SystemTime},
};

use agentd_protocol::model::ModelName;
use tempfile::TempDir;

use super::*;
use crate::cwd_dir_name;

/// A root of sessions, with files that were written one second after the other.
struct Root {
    dir: TempDir,
    count: u64,
}

impl Root {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), count: 0 }
    }

    fn of(&self, cwd: &str) -> SessionDir {
        SessionDir::of_cwd(self.dir.path(), Path::new(cwd))
    }

    fn shared(&self) -> SessionDir {
        SessionDir::custom(self.dir.path().join("shared"), self.dir.path(), Path::new("/w"))
    }

    fn add(&mut self, dir: &SessionDir, name: &str, content: &str) -> PathBuf {
        fs::create_dir_all(&dir.path).unwrap();
        let path = dir.path.join(name);
        fs::write(&path, content).unwrap();
        self.count += 1;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + self.count);
        File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        path
    }

    fn session(&mut self, dir: &SessionDir, id: &str, cwd: &str) -> PathBuf {
        let header = format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"cwd\":\"{cwd}\"}}\n");
        self.add(dir, &format!("t_{id}.jsonl"), &header)
    }

    fn find(&self, id: &str, dir: &SessionDir) -> Option<FoundSession> {
        find(id, dir, self.dir.path(), "/w").unwrap()
    }
}

#[test]
fn headers_are_found_within_the_first_megabyte() {
    let mut root = Root::new();
    let dir = root.of("/w");
    let mut header = |content: &str| {
        let path = root.add(&dir, "h.jsonl", content);
        read_header(&path).unwrap().map(|header| header.id().to_owned())
    };
    let line = r#"{"type":"session","id":"x"}"#;
    assert_eq!(header(line).as_deref(), Some("x"));
    assert_eq!(header(&format!("\n torn {{\n{line}\nrest")).as_deref(), Some("x"));
    let long = format!(r#"{{"type":"session","id":"long","cwd":"{}"}}"#, "d".repeat(100_000));
    assert_eq!(header(&format!("{long}\n{{}}")).as_deref(), Some("long"));
    let too_long = format!(r#"{{"type":"session","id":"long","cwd":"{}"}}"#, "d".repeat(1 << 20));
    assert_eq!(header(&too_long), None);
    for other in ["", "\n", "{}\n", "7\n{\"type\":\"session\",\"id\":\"x\"}\n", "text"] {
        assert_eq!(header(other), None, "{other}");
    }
    assert!(read_header(&dir.path.join("missing")).is_err());
}

#[test]
fn the_newest_of_the_folder() {
    let mut root = Root::new();
    let dir = root.of("/w");
    assert_eq!(newest(&dir, "/w").unwrap(), None);
    root.session(&dir, "old", "/w");
    let path = root.session(&dir, "new", "/w");
    root.add(&dir, "no-session.jsonl", "{}\n");
    root.add(&dir, "later.txt", "{\"type\":\"session\",\"id\":\"x\"}\n");
    fs::create_dir(dir.path.join("folder.jsonl")).unwrap();
    assert_eq!(newest(&dir, "/w").unwrap(), Some(path));
}

#[test]
fn a_shared_folder_is_sorted_by_working_directory() {
    let mut root = Root::new();
    let dir = root.shared();
    let mine = root.session(&dir, "mine", "/w");
    let theirs = root.session(&dir, "theirs", "/elsewhere");
    assert_eq!(newest(&dir, "/w").unwrap().as_ref(), Some(&mine));
    assert_eq!(find_by_id("theirs", &dir, "/w").unwrap(), None);
    assert_eq!(find_by_id("mine", &dir, "/w").unwrap(), Some(mine));
    assert_eq!(
        root.find("thei", &dir),
        Some(FoundSession::Elsewhere { path: theirs, cwd: "/elsewhere".into() })
    );
    assert_eq!(list(&dir, Some("/w"), ListText::First, &|| true).unwrap().sessions.len(), 1);
    assert_eq!(list(&dir, None, ListText::First, &|| true).unwrap().sessions.len(), 2);
}

#[test]
fn ids_and_their_beginnings() {
    let mut root = Root::new();
    let (dir, other) = (root.of("/w"), root.of("/other"));
    let exact = root.session(&dir, "ab", "/w");
    let long = root.session(&dir, "abc", "/w");
    let longer = root.session(&dir, "abcd", "/w");
    let elsewhere = root.session(&other, "abcx", "/other");
    let elsewhere_longer = root.session(&other, "abcxy", "/other");
    let odd_name = root.add(&dir, "any name.jsonl", "{\"type\":\"session\",\"id\":\"odd\"}\n");
    let local = |path: &PathBuf| Some(FoundSession::Local(path.clone()));
    let far = |path: &PathBuf| Some(FoundSession::Elsewhere { path: path.clone(), cwd: "/other".into() });
    assert_eq!(root.find("ab", &dir), local(&exact));
    assert_eq!(root.find("abc", &dir), local(&long));
    assert_eq!(root.find("abcd", &dir), local(&longer));
    // Of several beginnings, what was written to last; a local one before all others.
    assert_eq!(root.find("a", &dir), local(&longer));
    assert_eq!(root.find("abcx", &dir), far(&elsewhere));
    assert_eq!(root.find("abcxy", &dir), far(&elsewhere_longer));
    assert_eq!(root.find("odd", &dir), local(&odd_name));
    for none in ["", "x", "abcz"] {
        assert_eq!(root.find(none, &dir), None, "{none}");
    }
    assert_eq!(find_by_id("a", &dir, "/w").unwrap(), None);
    // A folder that is not there yet.
    assert_eq!(
        root.find("ab", &root.of("/third")).map(|found| matches!(found, FoundSession::Elsewhere { .. })),
        Some(true)
    );
    assert_eq!(dir.path.file_name().unwrap().to_str().unwrap(), cwd_dir_name(Path::new("/w")));
}

#[test]
fn paths_and_ids_are_told_apart() {
    for path in ["./x", "/a/b", "a\\b", "x.jsonl"] {
        assert!(looks_like_path(path), "{path}");
    }
    for id in ["x", "0199-aa", "jsonl"] {
        assert!(!looks_like_path(id), "{id}");
    }
}

#[test]
fn summaries() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/sessions/v3-1.5.jsonl");
    let summary = summarize(&sample, ListText::All, &|| true).unwrap().unwrap();
    let expected = SessionSummary {
        path: sample.clone(),
        id: "019f4a6c-21d3-7b52-a0c1-2f6f0e9d8c7b".into(),
        cwd: "/home/user/shop".into(),
        name: Some("Cart totals".into()),
        parent_session_path: summary.parent_session_path.clone(),
        created_ms: 1_795_231_691_123,
        modified_ms: 1_795_231_870_000,
        message_count: 9,
        turns: 3,
        cost: summary.cost,
        model: Some(ModelName { provider: "local".into(), id: "qwen".into() }),
        first_message: "The total is wrong.".into(),
        all_messages_text: "The total is wrong. I look. Tax is missing. Try without tax. Fix it, línea por \
                            línea\u{2028}please"
            .into(),
    };
    assert_eq!(summary, expected);
    assert!((summary.cost - 0.750_001).abs() < 1e-9);
    assert!(summary.parent_session_path.unwrap().ends_with(".jsonl"));
    let short = summarize(&sample, ListText::First, &|| true).unwrap().unwrap();
    assert_eq!(
        short,
        SessionSummary {
            all_messages_text: String::new(),
            parent_session_path: short.parent_session_path.clone(),
            ..expected
        }
    );
}

#[test]
fn lists_are_sorted_by_what_was_said_last() {
    let mut root = Root::new();
    let dir = root.of("/w");
    let said = |id: &str, ms: u64| {
        format!(
            "{{\"type\":\"session\",\"id\":\"{id}\",\"timestamp\":\"1970-01-01T00:00:01.000Z\"}}\n{{\"type\":\"message\",\"id\":\"a\",\"timestamp\":\"1970-01-01T00:00:09.000Z\",\"message\":{{\"role\":\"user\",\"content\":null,\"timestamp\":{ms}}}}}\ntorn {{\n"
        )
    };
    root.add(&dir, "1.jsonl", &said("late", 5_000));
    root.add(&dir, "2.jsonl", &said("early", 2_000));
    root.add(&dir, "3.jsonl", &said("null", 0).replace(",\"timestamp\":0", ""));
    root.session(&dir, "by-file", "/w");
    root.add(
        &dir,
        "5.jsonl",
        "{\"type\":\"session\",\"id\":\"by-header\",\"timestamp\":\"1970-01-01T00:00:03.000Z\"}",
    );
    root.add(&dir, "6.jsonl", "no session");
    let sessions = list(&dir, Some("/w"), ListText::First, &|| true).unwrap().sessions;
    let ids: Vec<_> = sessions.iter().map(|session| (&*session.id, session.modified_ms)).collect();
    assert_eq!(
        ids,
        [
            ("by-file", 1_000_004_000),
            ("null", 9_000),
            ("late", 5_000),
            ("by-header", 3_000),
            ("early", 2_000)
        ]
    );
    assert_eq!((&*sessions[1].first_message, sessions[1].message_count), ("(no messages)", 1));
    assert_eq!(list(&root.of("/nowhere"), None, ListText::First, &|| true).unwrap().sessions, []);
}

#[test]
fn what_nobody_waits_for_is_not_read() {
    let mut root = Root::new();
    let dir = root.of("/w");
    let long = root.session(&dir, "long", "/w");
    File::options().append(true).open(&long).unwrap().set_len(1 << 30).unwrap();
    let looks = std::cell::Cell::new(0);
    let is_wanted = || looks.replace(looks.get() + 1) < 3;
    assert!(summarize(&long, ListText::First, &is_wanted).is_err());
    assert_eq!(looks.get(), 4);
    assert!(list(&dir, None, ListText::First, &|| false).is_err());
    // Nobody keeps so much text.
    File::options().append(true).open(&long).unwrap().set_len(5 << 40).unwrap();
    let error = summarize(&long, ListText::First, &|| true).unwrap_err().to_string();
    assert!(error.contains("is 5497558138880 bytes long, more than the 4294967296"), "{error}");
    let listed = list(&dir, None, ListText::First, &|| true).unwrap();
    assert_eq!((listed.sessions, &listed.unreadable[0].0), (Vec::new(), &long));
}

#[test]
fn a_list_says_what_was_asked_and_what_it_took() {
    let mut root = Root::new();
    let dir = root.of("/w");
    let usage = |cost: f64| {
        format!(
            r#""usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"total":{cost}}}}}"#
        )
    };
    let entry = |kind: &str, day: u32, rest: &str| {
        format!(
            r#"{{"type":"{kind}","id":"{kind}{day}","parentId":null,"timestamp":"2026-01-0{day}T00:00:00.000Z",{rest}}}"#
        )
    };
    let answer = |day: u32, model: &str, cost: f64| {
        entry(
            "message",
            day,
            &format!(
                r#""message":{{"role":"assistant","content":[],"provider":"p","model":"{model}",{}}}"#,
                usage(cost)
            ),
        )
    };
    let question = r#""message":{"role":"user","content":"<stdin>\n+a\n</stdin>\n\nReview this."}"#;
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T00:00:00.000Z","cwd":"/w"}"#
            .to_owned(),
        entry("model_change", 1, r#""provider":"p","modelId":"chosen""#),
        entry("message", 1, question),
        // What a fork took over was paid for elsewhere.
        answer(1, "first", 8.0),
        answer(2, "second", 0.5),
        entry("message", 3, &format!(r#""message":{{"role":"toolResult","content":[],{}}}"#, usage(0.25))),
        entry("message", 3, r#""message":{"role":"toolResult","content":[]}"#),
        entry("compaction", 4, &format!(r#""summary":"s",{}"#, usage(1.0))),
        entry("custom", 4, &format!(r#""customType":"spending","data":{{{}}}"#, usage(2.0))),
        // Nothing but a role that can be read.
        entry("message", 5, r#""message":{"role":"assistant","provider":7,"usage":[]}"#),
    ];
    root.add(&dir, "s.jsonl", &lines.join("\n"));
    let sessions = list(&dir, None, ListText::First, &|| true).unwrap().sessions;
    let model = ModelName { provider: "p".into(), id: "second".into() };
    assert_eq!((sessions[0].turns, sessions[0].cost, &sessions[0].model), (3, 3.75, &Some(model)));
    assert_eq!((&*sessions[0].first_message, sessions[0].message_count), ("Review this.", 6));
    root.add(&dir, "s.jsonl", &lines[..2].join("\n"));
    let sessions = list(&dir, None, ListText::First, &|| true).unwrap().sessions;
    assert_eq!(sessions[0].model.as_ref().map(|model| &*model.id), Some("chosen"));
}
