use proptest::prelude::*;

use super::*;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;

fn read(bytes: &[u8]) -> Loaded {
    load(&mut &*bytes, 1 << 20).unwrap()
}

fn session(bytes: &[u8]) -> Session {
    match read(bytes) {
        Loaded::Session(session) => *session,
        _ => panic!("no session: {}", String::from_utf8_lossy(bytes)),
    }
}

fn ids(session: &Session) -> Vec<&str> {
    session.tree.entries().iter().map(Entry::id).collect()
}

#[test]
fn odd_lines_are_skipped_and_counted() {
    let text = [
        HEADER.as_bytes(),
        b"\n\n  \r\n",
        br#"{"type":"label","id":"a","parentId":null}"#,
        b"\r\n{\"type\":\"label\",\"id\":\"torn",
        b"\n\0\0\0\n[1]\n7\n",
        br#"{"type":"label","parentId":"a"}"#,
        b"\n",
        br#"{"type":"session","id":"again"}"#,
        b"\n",
        br#"{"type":"from_the_future","id":"b","parentId":"a","x":"\ud800"}"#,
        b"\n{\"type\":\"label\",\"id\":\"c\",\"parentId\":\"b\",\"label\":\"\xFF\"}",
    ]
    .concat();
    let session = session(&text);
    assert_eq!(ids(&session), ["a", "b", "c"]);
    assert_eq!(
        session.tree.entries()[1].line(),
        r#"{"type":"from_the_future","id":"b","parentId":"a","x":"\ud800"}"#
    );
    assert!(session.tree.entries()[2].line().contains('\u{fffd}'));
    assert!(session.lacks_newline);
    let expected =
        LoadReport { broken_lines: 2, foreign_lines: 3, not_utf8_lines: 1, ..LoadReport::default() };
    assert_eq!(session.report, expected);
    assert_eq!(
        session.report.warning().unwrap(),
        "odd lines in the session file: 2 no JSON (skipped), 3 no session entries (skipped), 1 not UTF-8 (read \
         as far as they are)"
    );
    assert_eq!(LoadReport::default().warning(), None);
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
    assert_eq!(session.report.long_lines, 2);
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
        assert_eq!(session.report.broken_lines, u64::from(is_torn), "{cut}");
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

/// Reads in pieces of any size.
struct Pieces<'a>(&'a [u8], Vec<usize>);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.1.pop().unwrap_or(3).clamp(1, buffer.len()).min(self.0.len());
        let (piece, rest) = self.0.split_at(size);
        buffer[..size].copy_from_slice(piece);
        self.0 = rest;
        Ok(size)
    }
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_they_come(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..60),
        sizes in proptest::collection::vec(1usize..9, 0..40),
        max in 1usize..12,
    ) {
        let mut lines = Vec::new();
        let ending = each_line(&mut Pieces(&bytes, sizes), max, &mut |line| {
            lines.push(match line { Line::Bytes(bytes) => Some(bytes.to_vec()), Line::TooLong => None });
        }).unwrap();
        let mut expected: Vec<Option<Vec<u8>>> =
            bytes.split(|byte| *byte == b'\n').map(|line| (line.len() <= max).then(|| line.to_vec())).collect();
        if expected.last() == Some(&Some(Vec::new())) {
            expected.pop();
        }
        prop_assert_eq!(lines, expected);
        let wanted = match bytes.last() { None => Ending::NothingRead, Some(b'\n') => Ending::Newline, _ => Ending::MidLine };
        prop_assert_eq!(ending, wanted);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), header in any::<bool>()) {
        let text = if header { [HEADER.as_bytes(), b"\n", &bytes].concat() } else { bytes };
        let loaded = read(&text);
        prop_assert!(!header || matches!(loaded, Loaded::Session(_)));
    }
}
