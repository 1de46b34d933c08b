//! `agentctl extensions new`: an example extension, put where agentd finds it.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::{
    cli::{ExtensionLanguage, NewExtensionOptions},
    exit::{Exit, Fault, conclude},
    output,
    shared_daemon::Endpoint,
};

/// The examples of docs/writing-extensions.md.
const TYPESCRIPT: &str = include_str!("../../../docs/examples/extensions/guard.ts");
const PYTHON: &str = include_str!("../../../docs/examples/extensions/guard.py");
const SHELL: &str = include_str!("../../../docs/examples/extensions/branch.sh");
const RUST: &str = include_str!("../../../docs/examples/extensions/rust/src/main.rs");
const CARGO: &str = include_str!("../../../docs/examples/extensions/rust/Cargo.toml");

/// The name of the example's package in Rust.
const PACKAGE: &str = "name = \"guard\"";

/// The name of the examples' tool.
const TOOL: &str = "count_words";

/// The characters of an extension's name that the name of its tool begins with: models take names of 64 characters.
const TOOL_PREFIX: usize = 48;

/// A file of an extension.
struct NewFile {
    path: &'static str,
    text: String,
    is_program: bool,
}

/// Makes the extension.
pub(crate) fn new(options: &NewExtensionOptions) -> Exit {
    conclude(made(options))
}

fn made(options: &NewExtensionOptions) -> Result<Exit, Fault> {
    let NewExtensionOptions { name, lang, dir } = options;
    let parent = match dir {
        Some(dir) => dir.clone(),
        None => Endpoint::find()?.agent_dir.join("extensions"),
    };
    let folder = parent.join(name);
    write(&folder, &files(name, *lang)).map_err(|(path, error)| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Fault::new(Exit::Failed, format!("Error: {} is there already.", path.display()))
        }
        _ => Fault::new(Exit::Failed, format!("Error: cannot write {}: {error}", path.display())),
    })?;
    output::print(&said(&folder, *lang, dir.is_some()))
}

fn files(name: &str, lang: ExtensionLanguage) -> Vec<NewFile> {
    // Two extensions with a tool of one name cannot be there at once.
    let prefix: String = name.chars().take(TOOL_PREFIX).collect();
    let tool = format!("{}_{TOOL}", prefix.replace('-', "_"));
    let file = |path, text: &str| NewFile { path, text: text.replace(TOOL, &tool), is_program: false };
    let program = |path, text: &str| NewFile { is_program: true, ..file(path, text) };
    let manifest = |program: &str| {
        file("extension.json", &format!("{{\"command\": [\"{program}\"], \"protocol\": 1}}\n"))
    };
    match lang {
        ExtensionLanguage::Typescript => vec![file("index.ts", TYPESCRIPT)],
        ExtensionLanguage::Python => {
            vec![manifest("./extension.py"), program("extension.py", PYTHON)]
        }
        ExtensionLanguage::Shell => vec![manifest("./extension.sh"), program("extension.sh", SHELL)],
        ExtensionLanguage::Rust => vec![
            manifest(&format!("./target/release/{name}")),
            file("Cargo.toml", &CARGO.replace(PACKAGE, &format!("name = \"{name}\""))),
            file("src/main.rs", RUST),
        ],
    }
}

/// Writes the files into a folder that is not there yet. On an error nothing of it is left.
fn write(folder: &Path, files: &[NewFile]) -> Result<(), (PathBuf, io::Error)> {
    let of = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(of(parent))?;
    }
    fs::create_dir(folder).map_err(of(folder))?;
    let written = files.iter().try_for_each(|file| {
        let path = folder.join(file.path);
        write_file(&path, file).map_err(of(&path))
    });
    if written.is_err() {
        // What cannot be removed either is named by the error.
        let _ = fs::remove_dir_all(folder);
    }
    written
}

fn write_file(path: &Path, file: &NewFile) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if file.is_program { 0o755 } else { 0o644 };
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    opened.write_all(file.text.as_bytes())
}

fn said(folder: &Path, lang: ExtensionLanguage, is_elsewhere: bool) -> String {
    let mut text = format!("Made {}.\n", folder.display());
    if lang == ExtensionLanguage::Rust {
        let manifest = folder.join("Cargo.toml");
        text.push_str(&format!("Build it: cargo build --release --manifest-path '{}'\n", manifest.display()));
    }
    text.push_str(&if is_elsewhere {
        format!("Try it: agentctl prompt --extension '{}' \"Hello\"\n", folder.display())
    } else {
        "Sessions that are opened from now on have it; agentctl extensions list tries it.\n".to_owned()
    });
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn every_language_has_what_it_needs() {
        let root = tempfile::tempdir().unwrap();
        for (lang, expected) in [
            (ExtensionLanguage::Typescript, &["index.ts"][..]),
            (ExtensionLanguage::Python, &["extension.json", "extension.py"]),
            (ExtensionLanguage::Shell, &["extension.json", "extension.sh"]),
            (ExtensionLanguage::Rust, &["extension.json", "Cargo.toml", "src/main.rs"]),
        ] {
            let folder = root.path().join(format!("{lang:?}")).join("mine");
            write(&folder, &files("mine", lang)).unwrap();
            for path in expected {
                let about = fs::metadata(folder.join(path)).unwrap();
                let is_program = about.permissions().mode() & 0o100 != 0;
                assert_eq!(is_program, path.starts_with("extension.") && !path.ends_with("json"), "{path}");
            }
            let (path, error) = write(&folder, &files("mine", lang)).unwrap_err();
            assert_eq!((path, error.kind()), (folder, io::ErrorKind::AlreadyExists));
        }
        let script = fs::read_to_string(root.path().join("Python/mine/extension.py")).unwrap();
        assert!(script.contains("\"name\": \"mine_count_words\""), "{script}");
        let cargo = fs::read_to_string(root.path().join("Rust/mine/Cargo.toml")).unwrap();
        assert!(cargo.contains("name = \"mine\""), "{cargo}");
    }
}
