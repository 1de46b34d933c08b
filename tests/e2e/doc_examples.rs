//! Examples in the documentation of crates are run by `cargo test`, and crates without any are not searched for them: that takes
//! seconds for each.

use std::{fs, path::Path};

use cargo_metadata::MetadataCommand;

/// Whether a Rust file has an example that rustdoc would run: a block of code in a doc comment, without a language or with Rust's.
fn has_example(source: &str) -> bool {
    let mut is_open = false;
    source.lines().filter_map(|line| line.trim_start().strip_prefix("//")).any(|line| {
        let Some(language) = line.trim_start_matches(['/', '!']).trim().strip_prefix("```") else {
            return false;
        };
        is_open = !is_open;
        is_open && matches!(language.split(',').next(), Some("" | "rust" | "no_run" | "should_panic"))
    })
}

fn any_file(folder: &Path, wanted: fn(&str) -> bool) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            any_file(&path, wanted)
        } else {
            path.extension().is_some_and(|ending| ending == "rs")
                && wanted(&fs::read_to_string(&path).unwrap())
        }
    })
}

#[test]
fn crates_with_examples_have_them_run_and_others_say_that_there_are_none() {
    let manifest = agentd_e2e::binaries::workspace().join("Cargo.toml");
    let packages =
        MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata").packages;
    for package in packages {
        let Some(library) = package.targets.iter().find(|target| target.is_lib()) else { continue };
        let folder = library.src_path.parent().unwrap();
        assert_eq!(
            library.doctest,
            any_file(folder.as_std_path(), has_example),
            "{}: set `doctest = false` below [lib] in its Cargo.toml exactly where it has no example",
            package.name
        );
    }
}

#[test]
fn blocks_of_other_languages_are_no_examples() {
    for (source, is_example) in [
        ("/// ```\n/// let a = 1;\n/// ```", true),
        ("    //! ```no_run\n", true),
        ("/// ```json\n/// {}\n/// ```\n/// more", false),
        ("/// ```text\n/// a\n/// ```\n/// ```\n", true),
        ("let fence = \"```\";", false),
    ] {
        assert_eq!(has_example(source), is_example, "{source}");
    }
}
