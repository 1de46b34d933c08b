//! Golden transcripts: what was sent, and every line that came back.
//!
//! A file has one record a line: `> ` before what is sent, `< ` before what must come next, `#` before remarks. Lines are
//! compared after normalisation, as text: the order of keys counts.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{Daemon, Home, normalize::Normalizer};

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Sent as it stands.
    Sent(String),
    /// Awaited, normalised.
    Awaited(String),
}

/// The folder of the transcripts.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Reads a transcript of that name.
#[must_use]
pub fn read(name: &str) -> Vec<Record> {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text)
}

fn parse(text: &str) -> Vec<Record> {
    let record = |line: &str| match line.split_at_checked(2) {
        Some(("> ", sent)) => Some(Record::Sent(sent.to_owned())),
        Some(("< ", awaited)) => Some(Record::Awaited(awaited.to_owned())),
        _ if line.is_empty() || line.starts_with('#') => None,
        _ => panic!("a transcript line begins with neither of `>`, `<` and `#`: {line}"),
    };
    text.lines().filter_map(record).collect()
}

/// Plays the transcript: sends its lines in their places, and compares everything that comes back.
pub fn play(name: &str, home: &Home, daemon: &mut Daemon) {
    let mut normalizer = Normalizer::new(home);
    let mut played = Vec::new();
    for record in read(name) {
        match record {
            Record::Sent(line) => {
                daemon.send_bytes(format!("{line}\n").as_bytes());
                played.push(format!("> {line}"));
            }
            Record::Awaited(expected) => {
                let got = normalizer.line(&daemon.line());
                // What a test composed by hand need not be written the way a program prints it.
                let expected: Value = serde_json::from_str(&expected).expect("a transcript line holds JSON");
                let expected = expected.to_string();
                assert_eq!(
                    got,
                    expected,
                    "{name} differs from what came. Until then:\n{}\nIt came:\n< {got}\nThe transcript has:\n< {expected}",
                    played.join("\n")
                );
                played.push(format!("< {got}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_and_empty_lines_are_skipped() {
        let records = parse("# remark\n\n> {\"a\":1}\n< {}\n");
        assert_eq!(records, [Record::Sent("{\"a\":1}".into()), Record::Awaited("{}".into())]);
    }
}
