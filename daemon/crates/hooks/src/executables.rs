//! Executables in `hooks/pre` and `hooks/post`: the name of the file is that of the tool, with or without an ending, or `*` for all.

use std::{
    fs::{self, Metadata},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::Duration,
};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use agentd_safe_open::{AcceptedOwner, owner_of};

use crate::{
    dialect::{Dialect, own_name},
    event::HookEvent,
    hook::{Hook, HookOrigin, HookProgram},
    matcher::Matcher,
};

/// The folders below `hooks`, and the events of what is in them.
const FOLDERS: [(&str, HookEvent); 2] = [("pre", HookEvent::PreToolUse), ("post", HookEvent::PostToolUse)];

/// The most files of a folder.
const MAX_FILES: usize = 200;

/// Files that people put beside programs.
const TEXTS: [&str; 3] = ["md", "txt", "json"];

/// Adds the executables of a folder `hooks`; `project` is the folder that those of a project may not lead out of. Blocks.
pub(crate) fn add_executables(
    folder: &Path,
    project: Option<&Path>,
    timeout: Duration,
    hooks: &mut Vec<Hook>,
    found: &mut Vec<Diagnostic>,
) {
    for (below, event) in FOLDERS {
        let folder = folder.join(below);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name()).take(MAX_FILES + 1).collect();
        if names.len() > MAX_FILES {
            let message = format!("none of its files is run: a folder can have {MAX_FILES} hooks");
            found.push(Diagnostic::warning(DiagnosticKind::Hook, message).at(&folder));
            continue;
        }
        // The order in which answers are merged.
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let Ok(about) = fs::metadata(&path) else { continue };
            if !about.is_file() {
                continue;
            }
            if let Some(problem) = problem(&path, &about, project) {
                let is_text = path.extension().is_some_and(|ending| TEXTS.iter().any(|text| ending == *text));
                if !is_text {
                    let message = format!("the hook is not run: {problem}");
                    found.push(Diagnostic::warning(DiagnosticKind::Hook, message).at(&path));
                }
                continue;
            }
            let tool = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            let matcher = match tool {
                "*" => Matcher::Every,
                tool => Matcher::Names([own_name(tool).to_owned()].into()),
            };
            hooks.push(Hook {
                event,
                matcher,
                timeout,
                dialect: Dialect::Own,
                origin: HookOrigin { path: path.clone(), is_of_project: project.is_some() },
                program: HookProgram::File(path),
            });
        }
    }
}

/// Why a file is not run.
fn problem(path: &Path, about: &Metadata, project: Option<&Path>) -> Option<String> {
    if about.permissions().mode() & 0o111 == 0 {
        return Some(format!("it is not executable (chmod +x {})", path.display()));
    }
    let owner =
        project.and_then(|project| owner_of(project).ok()).map_or(AcceptedOwner::Own, AcceptedOwner::OwnOr);
    if !owner.accepts(about.uid()) {
        return Some("it belongs to another user".to_owned());
    }
    let leads_out = project.is_some_and(|project| {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        !real(path).starts_with(real(project))
    });
    leads_out.then(|| "it is a symbolic link that leads out of the project".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_are_named_after_tools() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join("p/hooks").join(name);
        for name in
            ["pre/bash.sh", "pre/*.py", "pre/Edit", "post/mcp__s__t.sh", "other/bash.sh", "pre/.hidden"]
        {
            write(&at(name), 0o755);
        }
        write(&at("pre/notes.md"), 0o644);
        write(&at("pre/write.sh"), 0o644);
        write(&root.path().join("outside.sh"), 0o755);
        symlink("../../../outside.sh", at("pre/grep.sh")).unwrap();
        let (mut hooks, mut found) = (Vec::new(), Vec::new());
        let project = root.path().join("p");
        add_executables(&at(""), Some(&project), Duration::from_secs(1), &mut hooks, &mut found);
        let shown: Vec<(HookEvent, String, [bool; 3])> = hooks
            .iter()
            .map(|hook| {
                let name = hook.origin.path.file_name().unwrap().to_str().unwrap().to_owned();
                (hook.event, name, ["bash", "edit", "mcp__s__t"].map(|tool| hook.matcher.is_about(&[tool])))
            })
            .collect();
        assert_eq!(
            shown,
            [
                (HookEvent::PreToolUse, "*.py".to_owned(), [true, true, true]),
                (HookEvent::PreToolUse, "Edit".to_owned(), [false, true, false]),
                (HookEvent::PreToolUse, "bash.sh".to_owned(), [true, false, false]),
                (HookEvent::PostToolUse, "mcp__s__t.sh".to_owned(), [false, false, true]),
            ]
        );
        let said: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].ends_with("it is a symbolic link that leads out of the project"), "{said:?}");
        assert!(said[1].starts_with("the hook is not run: it is not executable (chmod +x "), "{said:?}");
        // The user's own may lead anywhere.
        let (mut hooks, mut found) = (Vec::new(), Vec::new());
        add_executables(&at(""), None, Duration::from_secs(1), &mut hooks, &mut found);
        assert_eq!((hooks.len(), found.len()), (5, 1));
    }
}
