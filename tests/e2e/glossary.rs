//! The words of docs/glossary.md: the ones that agentd does not use stand in no source and on no page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_e2e::binaries::workspace;

/// A row of the glossary's second table.
#[derive(Debug, PartialEq)]
struct Banned {
    /// Each phrase as its words, in small letters.
    phrases: Vec<Vec<String>>,
    instead: String,
    /// Spellings in which a phrase may stand, such as a file's name on the disk.
    exceptions: Vec<String>,
}

fn banned(page: &str) -> Vec<Banned> {
    let (_, table) =
        page.split_once("## Words that are not used").expect("the table of words that are not used");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")).skip(2);
    let cells = rows.map(|row| row.trim_end_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let banned = cells.map(|cells| Banned {
        phrases: cells[0].split(',').map(words).collect(),
        instead: cells[1].to_owned(),
        exceptions: cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect(),
    });
    banned.collect()
}

/// The words of a text in small letters. A name such as `see_through` or `LineRoom` is two words.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in text.chars() {
        let begins_hump = letter.is_uppercase() && before.is_lowercase();
        if !letter.is_alphanumeric() || begins_hump {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is always one").extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A word, or its plural.
fn is_same(word: &str, banned: &str) -> bool {
    word.strip_prefix(banned).is_some_and(|end| end.is_empty() || end == "s")
}

fn finds<'a>(line: &str, banned: &'a [Banned]) -> Option<&'a Banned> {
    let letters = line.to_lowercase();
    banned.iter().find(|entry| {
        // Most lines hold no first word of any phrase, and need not be taken apart.
        if !entry.phrases.iter().any(|phrase| letters.contains(&phrase[0])) {
            return false;
        }
        let mut line = line.to_owned();
        for exception in &entry.exceptions {
            line = line.replace(exception.as_str(), " ");
        }
        let words = words(&line);
        let holds = |phrase: &Vec<String>| {
            words
                .windows(phrase.len())
                .any(|part| part.iter().zip(phrase).all(|(word, banned)| is_same(word, banned)))
        };
        entry.phrases.iter().any(holds)
    })
}

/// The sources and pages below a folder that people write.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Data is as others wrote it; the rest is made by programs.
        let is_other =
            ["target", "data", "golden", "node_modules", "dist", "corpus", "seeds"].contains(&name.as_str());
        // These two name the words.
        let names_them = path.file_stem().is_some_and(|stem| stem == "glossary");
        if path.is_dir() && !is_other {
            texts(&path, found);
        } else if !names_them && (name.ends_with(".rs") || name.ends_with(".md")) {
            found.push(path);
        }
    }
}

#[test]
fn words_that_the_glossary_rules_out_are_not_used() {
    let root = workspace();
    let page = fs::read_to_string(root.join("docs/glossary.md")).unwrap();
    let banned = banned(&page);
    assert!(banned.len() > 5, "{banned:?}");
    let mut files = vec![root.join("README.md")];
    for folder in ["client", "clients", "daemon", "docs", "fuzz", "protocol", "tests"] {
        texts(&root.join(folder), &mut files);
    }
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            if let Some(entry) = finds(line, &banned) {
                let place = file.strip_prefix(&root).unwrap().display();
                found.push(format!("{place}:{}: write {}: {}", number + 1, entry.instead, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "docs/glossary.md rules out {} words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn names_are_words_and_exceptions_count() {
    let banned = banned(
        "## Words that are not used\n\n| not used | instead | except in |\n| --- | --- | --- |\n\
         | ledger | intent log | `.ledger` |\n| sees to it, board | do | |\n",
    );
    for line in ["CrashLedger", "the ledgers", "LEDGER", "Sees to it", "ToolBoard", "tool_board"] {
        assert!(finds(line, &banned).is_some(), "{line}");
    }
    for line in ["s.ledger", "keyboard", "sees it", "clipboard", "boarding"] {
        assert!(finds(line, &banned).is_none(), "{line}");
    }
}
