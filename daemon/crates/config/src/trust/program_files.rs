//! The files of a project that are run in the user's name once the project is trusted: its extensions, its packages, its hooks and its
//! tools.

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::hook_files::{HOOK_FOLDERS, TOOLS, named_programs};
use crate::{
    Environment, ProjectFolders, json_file::read_project_json, real_folders::real_path, resolve_path,
};

/// The folders of a project folder whose files are run, and where packages that the project names are installed.
const FOLDERS: [&str; 6] = ["extensions", "npm/node_modules", "git", HOOK_FOLDERS[0], HOOK_FOLDERS[1], TOOLS];

/// The settings whose entries are paths of such files.
const LISTS: [&str; 2] = ["extensions", "packages"];

/// The bytes of all files that are hashed; of the files beyond that, length and time of change count.
const MAX_HASHED: u64 = 64 << 20;

/// The most files and folders that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// The hash of an unreadable file, which is not used either.
pub(super) const UNREADABLE: &str = "unreadable";

/// The hash of what is too much to be looked at: it is never the same as before.
pub(super) const TOO_MANY: &str = "too many files";

/// The deepest nesting of folders.
const MAX_DEPTH: usize = 64;

/// A hash of what each entry of those folders holds, and of each path that the project's settings name in the project. What extensions
/// import from elsewhere in the project does not count. Costs nothing where a project has none of them. Reads files; blocks.
pub(super) fn program_files(
    cwd: &Path,
    folders: &ProjectFolders,
    environment: &Environment,
) -> Vec<(PathBuf, String)> {
    let project = real_path(cwd);
    let mut look = Look { project: &project, hashed: 0, entries: 0 };
    let roots: BTreeSet<PathBuf> = folders
        .each()
        .flat_map(|folder| {
            FOLDERS.map(|below| folder.join(below)).into_iter().flat_map(|root| children(&root))
        })
        .chain(named(&project, folders, environment))
        .chain(named_programs(cwd, folders))
        .collect();
    let hashes = roots.into_iter().filter_map(|root| {
        let hash = look.root(&root)?;
        Some((root, hash))
    });
    hashes.collect()
}

/// The entries of a folder. Packages of a scope are one entry.
fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// What the project's settings name: files and folders of the project itself.
fn named<'a>(
    project: &'a Path,
    folders: &'a ProjectFolders,
    environment: &'a Environment,
) -> impl Iterator<Item = PathBuf> + 'a {
    let settings = folders.find("settings.json");
    let listed = settings.and_then(|file| {
        let value = read_project_json(&file).ok()??.value;
        let base = file.parent()?.to_owned();
        let texts: Vec<String> = LISTS
            .iter()
            .filter_map(|list| value.get(*list)?.as_array())
            .flatten()
            .filter_map(|entry| entry.as_str().or_else(|| entry.get("source").and_then(Value::as_str)))
            .map(str::to_owned)
            .collect();
        Some((base, texts))
    });
    listed.into_iter().flat_map(move |(base, texts)| {
        let paths = texts.into_iter().filter_map(move |text| {
            let path = resolve_path(&without_pattern(&text)?, &base, environment);
            real_path(&path).starts_with(project).then_some(path)
        });
        paths.collect::<Vec<_>>()
    })
}

/// The path of an entry; of a pattern, the folder that it is matched in. `None` for what is no path.
fn without_pattern(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['+', '!', '-']);
    if text.is_empty() || ["npm:", "git:", "builtin:"].iter().any(|kind| text.starts_with(kind)) {
        return None;
    }
    let text = text.strip_prefix("file://").unwrap_or(text);
    let end = text.find(['*', '?', '[', '{']).unwrap_or(text.len());
    if end == text.len() {
        return Some(text.to_owned());
    }
    Some(text[..end].rfind('/').map_or_else(|| ".".to_owned(), |slash| text[..=slash].to_owned()))
}

/// The walk over the files, with what it may still cost.
struct Look<'a> {
    project: &'a Path,
    hashed: u64,
    entries: usize,
}

impl Look<'_> {
    /// The hash of a file or of all that is in a folder; `None` where there is nothing.
    fn root(&mut self, path: &Path) -> Option<String> {
        let about = path.symlink_metadata().ok()?;
        let mut hasher = Sha256::new();
        let mut above = Vec::new();
        match self.add(&mut hasher, path, &about, &mut above) {
            Ok(()) => Some(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Some(TOO_MANY.to_owned()),
            Err(_) => Some(UNREADABLE.to_owned()),
        }
    }

    /// Adds a file, a folder or a link. `above` are the folders around it, without links.
    fn add(
        &mut self,
        hasher: &mut Sha256,
        path: &Path,
        about: &Metadata,
        above: &mut Vec<PathBuf>,
    ) -> io::Result<()> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too many files"));
        }
        if about.is_symlink() {
            let real = real_path(path);
            hasher.update(b"link\0");
            hasher.update(real.as_os_str().as_encoded_bytes());
            // What is outside the project is not the project's to change.
            return match real.starts_with(self.project).then(|| real.metadata()) {
                Some(Ok(about)) => self.add(hasher, &real, &about, above),
                Some(Err(_)) | None => Ok(()),
            };
        }
        if about.is_dir() {
            return self.add_folder(hasher, path, above);
        }
        if !about.is_file() {
            hasher.update(b"other\0");
            return Ok(());
        }
        hasher.update(b"file\0");
        hasher.update(about.len().to_le_bytes());
        self.hashed = self.hashed.saturating_add(about.len());
        if self.hashed > MAX_HASHED {
            hasher.update(about.ctime().to_le_bytes());
            hasher.update(about.ctime_nsec().to_le_bytes());
            return Ok(());
        }
        let opened = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).open(path);
        match opened {
            Ok(file) => contents(hasher, file, about.len()),
            // Nobody can run it either.
            Err(_) => {
                hasher.update(UNREADABLE);
                Ok(())
            }
        }
    }

    fn add_folder(&mut self, hasher: &mut Sha256, path: &Path, above: &mut Vec<PathBuf>) -> io::Result<()> {
        let real = real_path(path);
        hasher.update(b"folder\0");
        // A link that leads to a folder around itself.
        if above.contains(&real) {
            return Ok(());
        }
        if above.len() >= MAX_DEPTH {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too deep"));
        }
        let mut entries = children(path);
        entries.sort();
        above.push(real);
        for entry in entries {
            hasher.update(entry.file_name().unwrap_or_default().as_encoded_bytes());
            hasher.update(b"\0");
            if let Ok(about) = entry.symlink_metadata() {
                self.add(hasher, &entry, &about, above)?;
            }
        }
        above.pop();
        hasher.update(b"end\0");
        Ok(())
    }
}

fn contents(hasher: &mut Sha256, file: File, length: u64) -> io::Result<()> {
    // A file that grows meanwhile is not read without an end.
    let mut file = file.take(length);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::AgentDir;

    fn write(root: &Path, below: &str, text: &str) {
        let path = root.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn now(cwd: &Path) -> Vec<(PathBuf, String)> {
        let folders = ProjectFolders::of(cwd, &AgentDir::at("/nowhere"));
        program_files(cwd, &folders, &Environment::default())
    }

    #[test]
    fn every_file_that_is_run_counts() {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap();
        assert_eq!(now(&cwd), []);
        write(&cwd, ".pi/extensions/a.ts", "a");
        write(&cwd, ".pi/extensions/b/index.ts", "b");
        write(&cwd, ".pi/npm/node_modules/c/lib/x.js", "c");
        write(&cwd, ".pi/git/host/user/d/index.ts", "d");
        write(&cwd, "tools/e/e.ts", "e");
        write(&cwd, "own/f.ts", "f");
        write(&cwd, "aside.ts", "not run");
        let settings = r#"{"extensions": ["../tools/**/*.ts", "!../tools/x", "npm:no"], "packages": [{"source": "../own"}, "npm:c", "../.."]}"#;
        write(&cwd, ".pi/settings.json", settings);
        let first = now(&cwd);
        let names: Vec<String> = first.iter().map(|(path, _)| path.display().to_string()).collect();
        let shown = |below: &str| names.iter().any(|name| name.ends_with(below));
        assert!(
            shown("extensions/a.ts") && shown("extensions/b") && shown("node_modules/c") && shown("git/host")
        );
        assert!(
            names.iter().any(|name| name.contains("tools")) && names.iter().any(|name| name.contains("own"))
        );
        assert!(!names.iter().any(|name| name.contains("aside")), "{names:?}");
        write(&cwd, "aside.ts", "changed");
        assert_eq!(now(&cwd), first);
        for file in [
            ".pi/extensions/b/index.ts",
            ".pi/npm/node_modules/c/lib/x.js",
            ".pi/git/host/user/d/index.ts",
            "tools/e/e.ts",
            "own/f.ts",
        ] {
            let before = fs::read_to_string(cwd.join(file)).unwrap();
            // As long as before.
            write(&cwd, file, "!");
            assert_ne!(now(&cwd), first, "{file}");
            write(&cwd, file, &before);
            assert_eq!(now(&cwd), first, "{file}");
        }
        write(&cwd, "tools/e/new.ts", "");
        assert_ne!(now(&cwd), first);
    }

    #[test]
    fn links_are_what_they_lead_to() {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap().join("p");
        write(&cwd, "src/a.ts", "a");
        write(&cwd, "../outside.ts", "o");
        fs::create_dir_all(cwd.join(".pi/extensions/d")).unwrap();
        symlink("../../src/a.ts", cwd.join(".pi/extensions/a.ts")).unwrap();
        symlink("../../../outside.ts", cwd.join(".pi/extensions/o.ts")).unwrap();
        symlink("..", cwd.join(".pi/extensions/d/around")).unwrap();
        let first = now(&cwd);
        write(&cwd, "src/a.ts", "b");
        let second = now(&cwd);
        assert_ne!(second, first);
        write(&cwd, "../outside.ts", "another");
        assert_eq!(now(&cwd), second);
        fs::remove_file(cwd.join(".pi/extensions/o.ts")).unwrap();
        symlink("../../src/a.ts", cwd.join(".pi/extensions/o.ts")).unwrap();
        assert_ne!(now(&cwd), second);
    }

    #[test]
    fn patterns_are_of_folders() {
        let check =
            |text: &str, path: Option<&str>| assert_eq!(without_pattern(text).as_deref(), path, "{text}");
        check("a/b.ts", Some("a/b.ts"));
        check("!a/b/*.ts", Some("a/b/"));
        check("*.ts", Some("."));
        check("file:///x", Some("/x"));
        check("npm:a", None);
        check("-builtin:mcp", None);
        check("", None);
    }
}
