//! Rules of the sources themselves.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// All files of Rust below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn product() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["daemon", "client", "protocol"] {
        sources(&workspace().join(folder), &mut found);
    }
    assert!(found.len() > 300, "{}", found.len());
    found
}

#[test]
fn unsafe_code_is_where_the_page_says() {
    let page = fs::read_to_string(workspace().join("docs/security.md")).unwrap();
    let (_, rest) = page.split_once("<!-- unsafe: checked by a test -->").unwrap();
    let (list, _) = rest.split_once("<!-- end -->").unwrap();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let documented: BTreeSet<String> = rows.map(str::to_owned).collect();
    let mut found = BTreeSet::new();
    for path in product() {
        let text = fs::read_to_string(&path).unwrap();
        let blocks = text.matches("unsafe {").count();
        if blocks > 0 {
            let name = path.strip_prefix(workspace()).unwrap().display().to_string();
            let reasons = text.matches("SAFETY").count();
            assert!(
                reasons >= blocks,
                "{name} has {blocks} unsafe blocks and {reasons} remarks on why they are sound"
            );
            // It counts allocations in tests.
            if !name.ends_with("ai/src/fuzz/work.rs") {
                found.insert(name);
            }
        }
    }
    assert_eq!(found, documented, "docs/security.md lists the files with unsafe code");
}

#[test]
fn build_scripts_stay_at_home() {
    let scripts: Vec<PathBuf> = product().into_iter().filter(|path| path.ends_with("build.rs")).collect();
    assert_eq!(scripts, [workspace().join("daemon/crates/config/build.rs")]);
    let text = fs::read_to_string(&scripts[0]).unwrap();
    for word in ["Command", "http", "TcpStream", "curl"] {
        assert!(!text.contains(word), "the build script knows of {word}");
    }
}
