//! Inputs that broke a law once. The tests of every crate with laws include this file and read them again.

use std::{fs, panic, path::Path};

/// Checks each law against the inputs that were found for it, and that it has a fuzz target.
pub(crate) fn check(laws: &[(&str, fn(&[u8]))]) {
    let is_root = |folder: &&Path| folder.join("tests/data/fuzz").is_dir();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(is_root).unwrap();
    let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    let mut inputs: Vec<_> =
        fs::read_dir(root.join("tests/data/fuzz")).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    for (target, law) in laws {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml has no {target}");
        let start = format!("{target}-");
        for path in &inputs {
            if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&start)) {
                let input = fs::read(path).unwrap();
                assert!(panic::catch_unwind(|| law(&input)).is_ok(), "{} breaks a law", path.display());
            }
        }
    }
}
