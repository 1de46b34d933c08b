use proptest::prelude::*;

use super::*;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;

fn read(bytes: &[u8]) -> Loaded {
    load(&mut &*bytes, 1 << 20).unwrap()
}

fn session(bytes: &[u8]) -> Session {
    match read(bytes) {
        Loaded::Session(session) => *session,
        _ => panic!("no session: {}", String::from_utf8_lossy(&bytes[..bytes.len().min(2000)])),
    }
}

fn ids(session: &Session) -> Vec<&str> {
    session.tree.entries().iter().map(Entry::id).collect()
}

/// Kind, line, first byte and length of each oddity.
fn found(session: &Session) -> Vec<(OddityKind, u64, u64, u64)> {
    let one = |it: &Oddity| (it.kind, it.place.line, it.place.byte, it.place.bytes);
    session.report.oddities().iter().map(one).collect()
}

fn label(id: &str, parent: &str) -> String {
    let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(r#"{{"type":"label","id":"{id}","parentId":{parent},"timestamp":"t"}}"#)
}

#[test]
fn odd_lines_are_skipped_and_named_with_their_places() {
    let lines: [&[u8]; 12] = [
        HEADER.as_bytes(),
        b"",
        b"  ",
        br#"{"type":"label","id":"a","parentId":null}"#,
        br#"{"type":"label","id":"torn"#,
        b"[1]",
        b"7 8",
        br#"{"type":"label","parentId":"a"}"#,
        br#"{"type":"session","id":"again"}"#,
        br#"{"type":"from_the_future","id":"b","parentId":"a","x":"\ud800"}"#,
        b"{\"type\":\"label\",\"id\":\"c\",\"parentId\":\"b\",\"label\":\"\xFF\"}",
        br#"{"type":"label","id":"half"#,
    ];
    let text = lines.join(&b'\n');
    let session = session(&text);
    assert_eq!(ids(&session), ["a", "b", "c"]);
    assert_eq!(
        session.tree.entries()[1].line(),
        r#"{"type":"from_the_future","id":"b","parentId":"a","x":"\ud800"}"#
    );
    assert!(session.tree.entries()[2].line().contains('\u{fffd}'));
    assert!(session.lacks_newline);
    let at = |line: usize| lines[..line - 1].iter().map(|line| line.len() as u64 + 1).sum::<u64>();
    let expected = [
        (OddityKind::Broken, 5),
        (OddityKind::NoEntry, 6),
        (OddityKind::Broken, 7),
        (OddityKind::NoEntry, 8),
        (OddityKind::SecondHeader, 9),
        (OddityKind::NotUtf8, 11),
        (OddityKind::TornTail, 12),
    ];
    let expected = expected.map(|(kind, line)| (kind, line as u64, at(line), lines[line - 1].len() as u64));
    assert_eq!(found(&session), expected);
    assert_eq!(
        session.report.warning().unwrap(),
        "odd lines in the session file: 1 torn at the end (skipped), 2 no JSON (skipped), 1 not UTF-8 (read as far as \
         they are), 2 no session entries (skipped), 1 a second header (skipped)"
    );
    assert_eq!(LoadReport::default().warning(), None);
}

#[test]
fn zeros_take_nothing_along() {
    let (a, b, c) = (label("a", "-"), label("b", "a"), label("c", "b"));
    let zeros = vec![0; 2 << 20];
    // In the place of a line's end and the next one's beginning; before a line; inside of one.
    let text = [
        format!("{HEADER}\n{a}").as_bytes(),
        &zeros,
        b.as_bytes(),
        b"\n\0\0",
        c.as_bytes(),
        b"\n{\"type\":\"lab\0\0el\"}\n",
    ]
    .concat();
    // The limit is below the zeros.
    let session = session(&text);
    assert_eq!(ids(&session), ["a", "b", "c"]);
    let kinds: Vec<(OddityKind, u64, u64)> =
        found(&session).iter().map(|(kind, line, _, bytes)| (*kind, *line, *bytes)).collect();
    use OddityKind::{Broken, Zeros};
    assert_eq!(kinds, [(Zeros, 2, 2 << 20), (Zeros, 3, 2), (Broken, 4, 12), (Zeros, 4, 2), (Broken, 4, 4)]);
    // A file that ends in zeros, and one that is nothing else.
    let tail = self::session(format!("{HEADER}\n{a}\n\0\0\0").as_bytes());
    assert_eq!((ids(&tail), tail.lacks_newline), (vec!["a"], true));
    assert!(matches!(read(&zeros), Loaded::Invalid));
    // When the header's block is lost, the owner of the file is unknown.
    assert!(matches!(read(format!("\0\0\0\n{a}\n").as_bytes()), Loaded::Invalid));
    assert_eq!(ids(&self::session(format!("\0\0{HEADER}\n{a}\n").as_bytes())), ["a"]);
}

#[test]
fn marks_and_line_ends_of_editors_do_no_harm() {
    let text = format!("\u{feff}{HEADER}\r\n{}\r\n{}\r\n", label("a", "-"), label("b", "a"));
    let session = session(text.as_bytes());
    assert_eq!(ids(&session), ["a", "b"]);
    let first = HEADER.len() as u64 + 4;
    assert_eq!(found(&session), [(OddityKind::ByteOrderMark, 1, 0, 3), (OddityKind::CrLf, 1, 0, first)]);
    assert_eq!((session.report.count(OddityKind::CrLf), session.report.total()), (3, 2));
    assert_eq!(session.report.warning(), None);
    assert!(!session.tree.header().line().contains('\u{feff}'));
    assert!(!session.tree.entries()[0].line().contains('\r'));
}

#[test]
fn records_whose_line_ends_were_lost_are_read() {
    let (a, b) = (label("a", "-"), label("b", "a"));
    let line = format!("{a} {b}{{\"type\":\"lab");
    let session = session(format!("{HEADER}\n{line}\n{}\n", label("c", "b")).as_bytes());
    assert_eq!(ids(&session), ["a", "b", "c"]);
    let at = (2, HEADER.len() as u64 + 1, line.len() as u64);
    assert_eq!(
        found(&session),
        [(OddityKind::Joined, at.0, at.1, at.2), (OddityKind::Broken, at.0, at.1, at.2)]
    );
    // A torn line is no entry, however much it looks like one.
    let torn = format!(r#"{{"type":"message","id":"x","message":{{"arguments":{a},"#);
    let session = self::session(format!("{HEADER}\n{torn}\n").as_bytes());
    assert_eq!((ids(&session), session.report.count(OddityKind::Broken)), (vec![], 1));
}

#[test]
fn odd_links_are_named() {
    let lines = [
        label("a", "-"),
        label("b", "a"),
        label("b", "a"),
        label("c", "gone"),
        label("b", "c"),
        label("d", "late"),
        label("x", "y"),
        label("y", "x"),
        label("late", "b"),
    ];
    let text = format!("{HEADER}\n{}\n", lines.join("\n"));
    let session = session(text.as_bytes());
    assert_eq!(ids(&session), ["a", "b", "c", "b", "d", "x", "y", "late"]);
    let kinds: Vec<(OddityKind, u64)> =
        found(&session).iter().map(|(kind, line, ..)| (*kind, *line)).collect();
    assert_eq!(
        kinds,
        [
            (OddityKind::Repeated, 4),
            (OddityKind::MissingParent, 5),
            (OddityKind::DuplicateId, 6),
            (OddityKind::LateParent, 7),
            (OddityKind::Cycle, 8),
        ]
    );
    let branch: Vec<&str> = session.tree.branch().iter().map(|entry| entry.id()).collect();
    assert_eq!(branch, ["a", "b", "c", "b", "late"]);
    assert_eq!(session.tree.parents(), [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(3)]);
    // The same in a file of version 2.
    let old = text.replace("\"version\":3", "\"version\":2");
    let of_old = self::session(old.as_bytes());
    assert_eq!(
        (found(&of_old), of_old.tree.parents(), of_old.report.migrated_from),
        (found(&session), session.tree.parents(), Some(2))
    );
}

#[test]
fn a_header_without_a_usable_version_is_read_by_its_entries() {
    let linked = format!("{}\n{}\n", label("a", "-"), label("b", "a"));
    let in_a_row =
        "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n";
    let header =
        |version: &str| format!(r#"{{"type":"session"{version},"id":"s","timestamp":"t","cwd":"/w"}}"#);
    for (version, entries, expected, is_odd) in [
        ("", in_a_row, 1, false),
        ("", "", 1, false),
        ("", linked.as_str(), 2, true),
        (r#","version":"3""#, &linked, 2, true),
        (r#","version":0"#, &linked, 2, true),
        (r#","version":-3"#, &linked, 2, true),
        (r#","version":2.5"#, &linked, 2, true),
        (r#","version":null"#, in_a_row, 1, true),
        (r#","version":{}"#, "", 1, true),
    ] {
        let header = header(version);
        let session = session(format!("{header}\n{entries}").as_bytes());
        assert_eq!(session.report.migrated_from, Some(expected), "{version} {entries}");
        let odd: &[_] = if is_odd { &[(OddityKind::Version, 1, 0, header.len() as u64)] } else { &[] };
        assert_eq!(found(&session), odd, "{version} {entries}");
        assert_eq!(session.tree.header().version(), 3);
        if entries == linked {
            assert_eq!(ids(&session), ["a", "b"], "{version}");
        }
    }
    assert!(matches!(read(header(r#","version":1e99"#).as_bytes()), Loaded::TooNew(u32::MAX)));
}

#[test]
fn two_sessions_in_one_file_are_two_branches() {
    let one = format!("{HEADER}\n{}\n{}\n", label("a", "-"), label("b", "a"));
    let two = format!("{HEADER}\n{}\n{}\n", label("c", "-"), label("d", "c"));
    let session = session(format!("{one}{two}").as_bytes());
    assert_eq!(ids(&session), ["a", "b", "c", "d"]);
    assert_eq!(session.tree.parents(), [None, Some(0), None, Some(2)]);
    assert_eq!(session.report.count(OddityKind::SecondHeader), 1);
}

/// Whatever a file holds, its bytes are parsed a few times at most, and the kept oddities are bounded.
#[test]
fn the_work_does_not_grow_with_the_oddities() {
    let many = |line: &dyn Fn(usize) -> String| {
        let lines: Vec<String> = (0..20_000).map(line).collect();
        format!("{HEADER}\n{}\n", lines.join("\n"))
    };
    let x = "x".repeat(40);
    for (name, text) in [
        (
            "good",
            many(&|at| label(&at.to_string(), &at.checked_sub(1).map_or("-".into(), |at| at.to_string()))),
        ),
        ("broken", many(&|_| format!("{{\"{x}"))),
        ("no entries", many(&|_| format!("{{\"x\":\"{x}\"}}"))),
        ("repeated", many(&|_| label("a", "-"))),
        ("one id", many(&|at| label("a", &at.to_string()))),
        ("orphans", many(&|at| label(&at.to_string(), "gone"))),
        ("backwards", many(&|at| label(&at.to_string(), &(at + 1).to_string()))),
        ("a circle", many(&|at| label(&at.to_string(), &((at + 1) % 20_000).to_string()))),
        ("zeros", many(&|at| format!("\0\0{}\0", label(&at.to_string(), "-")))),
        (
            "joined",
            many(&|at| label(&at.to_string(), "-"))
                .replace("t\"}\n{\"type\":\"label", "t\"}{\"type\":\"label"),
        ),
        ("headers", many(&|_| HEADER.to_owned())),
    ] {
        WORK.set(0);
        let session = session(text.as_bytes());
        assert!(WORK.get() <= 3 * text.len() as u64, "{name}: {} for {} bytes", WORK.get(), text.len());
        assert!(session.report.oddities().len() <= KEPT_ODDITIES, "{name}");
        assert_eq!(session.report.total() == 0, name == "good", "{name}");
        assert!(session.tree.branch().len() <= session.tree.entries().len(), "{name}");
    }
}

#[test]
fn what_is_no_session() {
    assert!(matches!(read(b""), Loaded::Empty));
    for text in ["\n", "text", "{}", "7\n", "[]\n", r#"{"type":"session"}"#, r#"{"type":"message","id":"x"}"#]
    {
        assert!(matches!(read(text.as_bytes()), Loaded::Invalid), "{text}");
        let with_header_later = format!("{text}\n{HEADER}\n");
        // Only what is no JSON may stand before the header.
        let is_json = !matches!(text, "\n" | "text");
        assert_eq!(matches!(read(with_header_later.as_bytes()), Loaded::Invalid), is_json, "{text}");
    }
    assert!(matches!(read(br#"{"type":"session","version":4,"id":"s"}"#), Loaded::TooNew(4)));
}

#[test]
fn long_lines_are_not_kept() {
    let long = format!(r#"{{"type":"label","id":"long","label":"{}"}}"#, "x".repeat(600));
    let text = format!("{HEADER}\n{long}\n{{\"type\":\"label\",\"id\":\"a\"}}\n{long}");
    let Loaded::Session(session) = load(&mut text.as_bytes(), 500).unwrap() else { panic!("no session") };
    assert_eq!(ids(&session), ["a"]);
    assert_eq!(session.report.count(OddityKind::TooLong), 2);
}

#[test]
fn of_a_file_cut_anywhere_the_whole_lines_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/sessions/v3-1.5.jsonl");
    let text = std::fs::read(path).unwrap();
    let ends: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b'\n').collect();
    for cut in 1..=text.len() {
        let loaded = read(&text[..cut]);
        // A line counts once its last byte is there; its LF does not matter.
        let Some(entries) = ends.iter().filter(|end| **end <= cut).count().checked_sub(1) else {
            assert!(matches!(loaded, Loaded::Invalid), "{cut}");
            continue;
        };
        let Loaded::Session(session) = loaded else { panic!("no session: {cut}") };
        assert_eq!(session.tree.entries().len(), entries, "{cut}");
        let is_torn = !ends.contains(&cut) && !ends.contains(&(cut - 1));
        assert_eq!(session.report.count(OddityKind::TornTail), u64::from(is_torn), "{cut}");
        assert_eq!(session.report.total(), u64::from(is_torn), "{cut}");
        assert_eq!(session.lacks_newline, text[cut - 1] != b'\n', "{cut}");
    }
}

#[test]
fn failing_reads_are_reported() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("bad sector"))
        }
    }
    assert_eq!(load(&mut Failing, 100).err().unwrap().to_string(), "bad sector");
}

#[test]
fn a_long_session_loads_in_time() {
    let mut text = HEADER.as_bytes().to_vec();
    for at in 0..100_000 {
        let parent = if at == 0 { "null".into() } else { format!("\"{:08x}\"", at - 1) };
        text.extend_from_slice(
            format!(
                "\n{{\"type\":\"message\",\"id\":\"{at:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{at}\",\"timestamp\":1}}}}"
            )
            .as_bytes(),
        );
    }
    let start = std::time::Instant::now();
    let session = session(&text);
    let context = crate::Context::new(&session.tree);
    assert_eq!(context.messages().len(), 100_000);
    // Half a second without optimisation; quadratic work would take minutes.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), header in any::<bool>()) {
        let text = if header { [HEADER.as_bytes(), b"\n", &bytes].concat() } else { bytes };
        let loaded = read(&text);
        prop_assert!(!header || matches!(loaded, Loaded::Session(_)));
    }
}
