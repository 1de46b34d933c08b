//! docs/reliability.md names a test for each promise: they are there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_e2e::binaries;

/// The sources of a folder of the workspace.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            found.push((path, text));
        }
    }
}

#[test]
fn every_promise_has_its_test() {
    let root = binaries::workspace();
    let page = fs::read_to_string(root.join("docs/reliability.md")).expect("the page");
    let mut found = Vec::new();
    for folder in ["client", "daemon", "protocol", "tests"] {
        sources(&root.join(folder), &mut found);
    }
    let words: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let named: Vec<(&str, &str)> = words.iter().filter_map(|word| word.split_once(".rs::")).collect();
    assert!(named.len() > 10, "the page names its tests as `file.rs::test`: {named:?}");
    for (file, test) in named {
        let end = format!("/{file}.rs");
        let is_there = found.iter().any(|(path, text)| {
            path.to_string_lossy().ends_with(&end) && text.contains(&format!("fn {test}("))
        });
        assert!(is_there, "docs/reliability.md names {file}.rs::{test}, which is not there");
    }
    // A row of a table of promises ends with its test.
    let mut in_promises = false;
    for line in page.lines() {
        if let Some(row) = line.strip_prefix("| ") {
            let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
            in_promises |= last == "test";
            assert!(
                !in_promises || last == "test" || last.starts_with("---") || last.contains('`'),
                "a promise without its test: {line}"
            );
        } else {
            in_promises = false;
        }
    }
}
