//! Where a server works, and where its program is. Looks at folders; blocks.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::{config::ServerConfig, table::is_of_type};

/// Folders above a file that are looked at.
const MAX_DEPTH: usize = 64;

/// Entries of a folder that are looked at for a marker with `*`.
const MAX_ENTRIES: usize = 2000;

/// The folders of a project in which package managers put programs.
const PROJECT_PROGRAMS: [&str; 3] = ["node_modules/.bin", ".venv/bin", "venv/bin"];

/// Where programs are looked for.
pub(crate) struct ProgramSearch<'a> {
    /// The variable `PATH`.
    pub(crate) path: Option<&'a OsStr>,
    /// The session's working directory, for paths that are not absolute.
    pub(crate) cwd: &'a Path,
    /// The folder for `~`.
    pub(crate) home: &'a Path,
    /// The folders of the workspace of a project that is trusted; programs in it count then.
    pub(crate) trusted: Option<&'a [PathBuf]>,
}

impl ProgramSearch<'_> {
    /// The program of a command, for a server that works in `root`.
    pub(crate) fn find(&self, command: &str, root: &Path) -> Option<PathBuf> {
        if command.contains('/') || command == "~" {
            let path = match command.strip_prefix("~/") {
                Some(rest) => self.home.join(rest),
                None => self.cwd.join(command),
            };
            return is_program(&path).then_some(path);
        }
        let of_project = self.trusted.into_iter().flat_map(|folders| {
            let is_inside = |folder: &&Path| folders.iter().any(|top| folder.starts_with(top));
            root.ancestors().take(MAX_DEPTH).take_while(is_inside).flat_map(|folder| {
                PROJECT_PROGRAMS.iter().map(move |programs| folder.join(programs).join(command))
            })
        });
        let folders = self.path.into_iter().flat_map(std::env::split_paths);
        // A relative entry of `PATH` means another folder wherever the program runs.
        let on_path = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(command));
        of_project.chain(on_path).find(|path| is_program(path) && !self.is_empty_proxy(path))
    }

    /// Whether it is rustup in the name of a program that none of its toolchains has: rustup puts its links beside itself, whether the
    /// component is installed or not.
    fn is_empty_proxy(&self, path: &Path) -> bool {
        let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return false };
        let id = |path: &Path| path.metadata().ok().map(|about| (about.dev(), about.ino()));
        let rustup = id(&folder.join("rustup"));
        if rustup.is_none() || rustup != id(path) {
            return false;
        }
        // Elsewhere by `RUSTUP_HOME`, nothing is known.
        let Ok(toolchains) = fs::read_dir(self.home.join(".rustup/toolchains")) else { return false };
        !toolchains.flatten().any(|toolchain| is_program(&toolchain.path().join("bin").join(name)))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// The value of a variable in an environment; the last one counts.
pub(crate) fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Whether a server is for a file of this name.
pub(crate) fn is_for(server: &ServerConfig, path: &Path) -> bool {
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    !server.disabled && server.file_types.iter().any(|file_type| is_of_type(&name, file_type))
}

/// The folder that a server works in for a file: the uppermost one with a marker in the folder of the workspace that the file is in, or in
/// the repository around it; else that folder of the workspace. `None` for a server that needs a marker where there is none.
pub(crate) fn root_of(server: &ServerConfig, path: &Path, workspace: &[PathBuf]) -> Option<PathBuf> {
    let folder = path.parent().unwrap_or(path);
    let inside = workspace.iter().filter(|top| folder.starts_with(top));
    let top = inside.max_by_key(|top| top.components().count());
    let outermost = |top: &Path| {
        let folders: Vec<&Path> =
            folder.ancestors().take(MAX_DEPTH).take_while(|folder| folder.starts_with(top)).collect();
        folders.into_iter().rev().find(|folder| has_marker(folder, server)).map(Path::to_owned)
    };
    if let Some(found) = top.and_then(|top| outermost(top)) {
        return Some(found);
    }
    // The session may work in a part of a project.
    let repository = folder.ancestors().take(MAX_DEPTH).find(|folder| folder.join(".git").exists());
    if let Some(found) = repository.and_then(outermost) {
        return Some(found);
    }
    if server.needs_marker {
        return None;
    }
    Some(top.cloned().unwrap_or_else(|| repository.unwrap_or(folder).to_owned()))
}

/// Whether a project of a server begins in a folder.
pub(crate) fn has_marker(folder: &Path, server: &ServerConfig) -> bool {
    server.root_markers.iter().any(|marker| match marker.strip_prefix('*') {
        None => folder.join(marker).exists(),
        Some(end) => fs::read_dir(folder).is_ok_and(|entries| {
            let mut names = entries.take(MAX_ENTRIES).flatten().map(|entry| entry.file_name());
            names.any(|name| name.to_string_lossy().ends_with(end))
        }),
    })
}

#[cfg(test)]
mod tests {
    use agentd_config::AgentDir;

    use super::*;
    use crate::config::LspConfig;

    struct Folder {
        folder: tempfile::TempDir,
        config: LspConfig,
    }

    impl Folder {
        fn new(files: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, "").unwrap();
                let mode = if file.contains("bin/") { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            let config = LspConfig::load(&AgentDir::at("/nowhere"), None, &mut Vec::new());
            Self { folder, config }
        }

        fn root(&self, server: &str, file: &str, workspace: &str) -> Option<String> {
            let server = self.config.servers.iter().find(|it| it.name == server).unwrap();
            let workspace = [self.folder.path().join(workspace)];
            let root = root_of(server, &self.folder.path().join(file), &workspace)?;
            Some(root.strip_prefix(self.folder.path()).unwrap().display().to_string())
        }
    }

    #[test]
    fn the_root_is_the_uppermost_folder_with_a_marker() {
        let folder = Folder::new(&[
            "Cargo.toml",
            "p/Cargo.toml",
            "p/a/Cargo.toml",
            "p/a/src/x.rs",
            "q/.git/HEAD",
            "q/go.mod",
            "q/r/s/x.go",
            "n/x.sln",
        ]);
        assert_eq!(folder.root("rust-analyzer", "p/a/src/x.rs", "p").as_deref(), Some("p"));
        assert_eq!(folder.root("rust-analyzer", "p/a/src/x.rs", "p/a").as_deref(), Some("p/a"));
        // A part of a repository.
        assert_eq!(folder.root("gopls", "q/r/s/x.go", "q/r").as_deref(), Some("q"));
        assert_eq!(folder.root("csharp-ls", "n/a/x.cs", "n").as_deref(), Some("n"));
        assert_eq!(folder.root("rust-analyzer", "q/r/x.rs", "q/r"), None);
        assert_eq!(folder.root("bash-language-server", "q/r/s/x.sh", "q/r").as_deref(), Some("q/r"));
        assert_eq!(folder.root("bash-language-server", "n/x.sh", "q/r").as_deref(), Some("n"));
    }

    #[test]
    fn programs_of_a_project_count_only_when_it_is_trusted() {
        let folder = Folder::new(&[
            "p/node_modules/.bin/ls",
            "p/a/.venv/bin/ls",
            "bin/ls",
            "bin/other",
            "p/tool",
            "p/own/bin/ls",
        ]);
        let path = std::env::join_paths([folder.folder.path().join("bin"), "relative".into()]).unwrap();
        let workspace = [folder.folder.path().join("p")];
        let find = |command: &str, root: &str, is_trusted: bool| {
            let search = ProgramSearch {
                path: Some(&path),
                cwd: &workspace[0],
                home: folder.folder.path(),
                trusted: is_trusted.then_some(&workspace[..]),
            };
            let found = search.find(command, &folder.folder.path().join(root))?;
            Some(found.strip_prefix(folder.folder.path()).unwrap().display().to_string())
        };
        assert_eq!(find("ls", "p/a", true).as_deref(), Some("p/a/.venv/bin/ls"));
        assert_eq!(find("ls", "p/b", true).as_deref(), Some("p/node_modules/.bin/ls"));
        assert_eq!(find("ls", "p/a", false).as_deref(), Some("bin/ls"));
        assert_eq!(find("ls", "q", true).as_deref(), Some("bin/ls"));
        assert_eq!(find("own/bin/ls", "p", false).as_deref(), Some("p/own/bin/ls"));
        assert_eq!(find("~/bin/other", "p", false).as_deref(), Some("bin/other"));
        assert_eq!((find("tool", "p", true), find("./tool", "p", true)), (None, None));
    }

    #[test]
    fn a_link_of_rustup_is_no_program_without_its_component() {
        let folder = Folder::new(&["bin/rustup", "bin/own", ".rustup/toolchains/stable/bin/cargo"]);
        let home = folder.folder.path();
        fs::hard_link(home.join("bin/rustup"), home.join("bin/cargo")).unwrap();
        std::os::unix::fs::symlink("rustup", home.join("bin/rust-analyzer")).unwrap();
        let path = home.join("bin");
        let find = |command: &str, home: &Path| {
            let search = ProgramSearch { path: Some(path.as_os_str()), cwd: home, home, trusted: None };
            search.find(command, home).is_some()
        };
        assert!(find("own", home) && find("cargo", home) && !find("rust-analyzer", home));
        assert!(find("rust-analyzer", Path::new("/nowhere")), "its toolchains are elsewhere");
        fs::hard_link(home.join("bin/own"), home.join(".rustup/toolchains/stable/bin/rust-analyzer"))
            .unwrap();
        assert!(find("rust-analyzer", home));
    }
}
