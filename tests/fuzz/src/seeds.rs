//! Seeds of the laws: recorded answers of servers, session files of real programs, and small texts of each kind
//! (`seeds/TARGET-WHAT` beside this folder, and earlier findings).

use std::{fs, io, path::Path};

/// The longest seed for a run without libFuzzer, in bytes: short inputs are tried more often.
const MOST_BYTES: usize = 12 * 1024;

/// Targets that read streams of servers.
const STREAMS: [&str; 11] = [
    "anthropic_messages",
    "azure_openai_responses",
    "bedrock_converse_stream",
    "google_generative_ai",
    "google_vertex",
    "mistral_conversations",
    "openai_codex_responses",
    "openai_completions",
    "openai_responses",
    "pi_messages",
    "events",
];

/// The name and content of every seed.
fn named(root: &Path, target: &str) -> Vec<(String, Vec<u8>)> {
    let start = format!("{target}-");
    let mut seeds = Vec::new();
    for folder in ["tests/fuzz/seeds", "tests/data/fuzz"] {
        seeds.extend(files(&root.join(folder), |name| name.starts_with(&start)));
    }
    if STREAMS.contains(&target) {
        for folder in ["tests/data/captures", "tests/data/composed"] {
            seeds.extend(files(&root.join(folder), |name| {
                !name.ends_with(".headers") && !name.ends_with(".md")
            }));
        }
    }
    if ["sessions", "old_sessions", "pages"].contains(&target) {
        seeds.extend(files(&root.join("tests/data/sessions"), |name| name.ends_with(".jsonl")));
    }
    if ["commands", "daemon_lines"].contains(&target) {
        // Lines of the protocol from the golden transcripts.
        let mark = if target == "commands" { "> " } else { "< " };
        for (name, text) in files(&root.join("tests/golden"), |name| name.ends_with(".jsonl")) {
            let text = String::from_utf8_lossy(&text).into_owned();
            for (at, line) in text.lines().filter_map(|line| line.strip_prefix(mark)).enumerate() {
                seeds.push((format!("{name}-{at}"), format!("{line}\n").into_bytes()));
            }
        }
    }
    if seeds.is_empty() {
        seeds.push(("empty".to_owned(), Vec::new()));
    }
    seeds
}

pub(crate) fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| wanted(name)).collect();
    names.sort();
    names
        .into_iter()
        .filter_map(|name| fs::read(folder.join(&name)).ok().map(|bytes| (name, bytes)))
        .collect()
}

/// The seeds, truncated if long.
pub(crate) fn of(root: &Path, target: &str) -> Vec<Vec<u8>> {
    let cut = |(_, mut bytes): (String, Vec<u8>)| {
        bytes.truncate(MOST_BYTES);
        bytes
    };
    named(root, target).into_iter().map(cut).collect()
}

/// Puts the inputs into `folder/TARGET`, a corpus of libFuzzer.
pub(crate) fn write(root: &Path, target: &str, folder: &Path) -> io::Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder)?;
    named(root, target).into_iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}

/// The words of `fuzz/words.dict`.
pub(crate) fn words(root: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(root.join("fuzz/words.dict")).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once('"')?.1.strip_suffix('"')).map(unescaped).collect()
}

/// A word as libFuzzer writes it: `\"`, `\\` and `\xAB`.
fn unescaped(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let hex = after.strip_prefix('x').and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        if let Some(byte) = hex {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            let length = after.chars().next().map_or(0, char::len_utf8);
            bytes.extend_from_slice(&after.as_bytes()[..length]);
            rest = &after[length..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
