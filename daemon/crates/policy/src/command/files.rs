//! What rules and presets say of the files that a command names, by its words and by its redirections.

use std::path::{Path, PathBuf};

use agentd_protocol::{
    plain_path::without_dots,
    settings::{PermissionAction, PermissionPreset},
};

use super::Judge;
use crate::{
    compiled::{Verdict, exec_preset},
    looks::{self, ListedFiles},
    paths::real,
    rule::FileAccess,
    shell::{Folders, Word, WordValue},
    wrapper::{self, FOUND_BY_FIND, FOUND_BY_XARGS},
};

impl Judge<'_> {
    /// The files that the words of a command name, as far as rules keep some from being read or written.
    pub(super) fn files(&self, name: &str, words: &[Word], folders: &Folders) -> Verdict {
        let nothing = Verdict::new(PermissionAction::Allow, String::new());
        let name = name.rsplit('/').next().unwrap_or(name);
        let reads = self.policy.hides_files() && looks::opens_arguments(name);
        let writes =
            self.policy.keeps_files() && !looks::only_looks(words) && wrapper::unwrap(words).is_none();
        if !reads && !writes {
            return nothing;
        }
        let mut verdict = nothing;
        let is_deep = looks::goes_deep(words);
        for word in words.get(looks::first_file(words)..).unwrap_or_default() {
            let text = match &word.value {
                WordValue::Static(text) => text.as_str(),
                WordValue::Glob { prefix } => {
                    if reads {
                        verdict = verdict.and(self.below(prefix, folders));
                    }
                    continue;
                }
                WordValue::Pipe => continue,
                WordValue::One | WordValue::Dynamic => {
                    let is_found = match word.source.as_str() {
                        // These were judged with the folders that `find` looks into.
                        FOUND_BY_FIND => true,
                        FOUND_BY_XARGS => {
                            if reads && self.gets_names_of == Some(ListedFiles::Here) {
                                verdict = verdict.and(self.below("./", folders));
                            }
                            self.gets_names_of.is_some()
                        }
                        _ => false,
                    };
                    if reads && !is_found {
                        verdict =
                            verdict.and(self.hidden(&format!(
                                "which file {} names is only known when it runs",
                                word.source
                            )));
                    }
                    continue;
                }
            };
            if reads && names_a_list(text) {
                verdict = verdict.and(self.hidden(&format!("{text} names files that are listed elsewhere")));
            }
            let paths = paths_of(text);
            for path in paths {
                if reads {
                    verdict = verdict.and(self.read_rules(path, folders, is_deep));
                }
                if writes {
                    verdict = verdict.and(self.write_rules(path, folders));
                }
            }
        }
        // Without a path, these look into the folder that they run in.
        if reads && is_deep && looks::begins_here(words) {
            verdict = verdict.and(self.below("./", folders));
        }
        verdict
    }

    fn hidden(&self, why: &str) -> Verdict {
        Verdict::new(PermissionAction::Ask, format!("{why}, and a rule keeps files from being read"))
    }

    /// What a rule says of reading this path; nothing where none matches.
    fn read_rules(&self, path: &str, folders: &Folders, is_deep: bool) -> Verdict {
        self.each_path(path, folders, |path| {
            if path.starts_with("/proc") || path.starts_with("/dev/fd") {
                return self.hidden(&format!("{} may lead anywhere", path.display()));
            }
            let verdict = self.policy.file("bash", path, FileAccess::Read);
            let by_rule = if verdict.rule.is_some() {
                verdict
            } else {
                Verdict::new(PermissionAction::Allow, String::new())
            };
            let is_dir = is_deep && std::fs::metadata(path).map_or(true, |found| found.is_dir());
            if is_dir { by_rule.and(self.policy.deep_read(path)) } else { by_rule }
        })
    }

    /// A command that may write names a file that a rule keeps from being written.
    fn write_rules(&self, path: &str, folders: &Folders) -> Verdict {
        self.each_path(path, folders, |path| {
            let mut verdict = self.policy.file("bash", path, FileAccess::Write);
            let counts = verdict.rule.is_some() && verdict.action != PermissionAction::Allow;
            if !counts {
                return Verdict::new(PermissionAction::Allow, String::new());
            }
            // It may only read the file.
            verdict.action = PermissionAction::Ask;
            verdict
        })
    }

    /// A pattern of files: everything below a folder.
    fn below(&self, prefix: &str, folders: &Folders) -> Verdict {
        let folder = match prefix.rfind('/') {
            Some(0) => "/",
            Some(end) => &prefix[..end],
            None => ".",
        };
        self.each_path(folder, folders, |path| self.policy.deep_read(path))
    }

    /// The strictest verdict about a path, whichever folder it is relative to.
    fn each_path(&self, path: &str, folders: &Folders, verdict: impl Fn(&Path) -> Verdict) -> Verdict {
        if path.is_empty() || path.contains('\0') {
            return Verdict::new(PermissionAction::Allow, String::new());
        }
        let folders = match (folders, Path::new(path).is_absolute()) {
            (_, true) => vec![PathBuf::from("/")],
            (Folders::Known(folders), _) => folders.clone(),
            (Folders::Unknown, _) => {
                return self.hidden(&format!("which folder {path} is in is only known when it runs"));
            }
        };
        let verdicts = folders.iter().map(|folder| verdict(&folder.join(path)));
        verdicts.reduce(Verdict::and).unwrap_or_else(|| Verdict::new(PermissionAction::Allow, String::new()))
    }

    /// The file of a redirection.
    pub(super) fn target(&self, target: &Word, access: FileAccess, folders: &Folders) -> Verdict {
        let what = match access {
            FileAccess::Read => "read",
            FileAccess::Write => "written",
        };
        let unknown = || {
            if access == FileAccess::Read && !self.policy.hides_files() {
                return self.policy.file("bash", Path::new("/"), FileAccess::Read);
            }
            let why = format!("which file is {what} is only known when it runs");
            if self.policy.options().preset == PermissionPreset::Full
                && !self.policy.keeps_files()
                && !self.policy.hides_files()
            {
                return self.policy.preset(exec_preset, "it");
            }
            self.unclear(&why)
        };
        let text = match &target.value {
            WordValue::Static(text) => text,
            WordValue::Pipe => return Verdict::new(PermissionAction::Allow, "it is a pipe"),
            _ => return unknown(),
        };
        if ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"].contains(&text.as_str()) {
            return Verdict::new(PermissionAction::Allow, format!("{text} keeps nothing"));
        }
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            return self.unclear(&format!("{text} is a connection"));
        }
        let folders = match (folders, Path::new(text).is_absolute()) {
            (_, true) => vec![PathBuf::from("/")],
            (Folders::Known(folders), _) => folders.clone(),
            (Folders::Unknown, _) => return unknown(),
        };
        let verdicts = folders.iter().map(|folder| {
            let path = folder.join(text);
            // The shell goes up after it has followed links; what is shown and matched is where it leads.
            let led_to = real(&path).unwrap_or_else(|| without_dots(&path));
            self.policy.file("bash", &path, access).and(self.policy.file("bash", &led_to, access))
        });
        verdicts.reduce(Verdict::and).unwrap_or_else(unknown)
    }
}

/// The paths that a word may name: all of it, and what is behind `=`, `:` and `@`, or right behind the letter of an option.
fn paths_of(text: &str) -> Vec<&str> {
    let mut paths = vec![text];
    paths.extend(text.split_once('=').map(|(_, value)| value));
    if text.starts_with('-') && !text.starts_with("--") {
        paths.extend(text.get(2..));
    }
    // As in `git show HEAD:file`, `docker -v file:file` and `curl -d @file`.
    for at in 0..paths.len() {
        let path = paths[at];
        if path.contains(':') {
            paths.extend(path.split(':'));
        }
    }
    for at in 0..paths.len() {
        paths.extend(paths[at].strip_prefix('@'));
    }
    paths
}

/// Whether a word is an option that names a file in which there are names of other files.
fn names_a_list(text: &str) -> bool {
    ["--files0-from", "--files-from", "--pathspec-from-file"].iter().any(|option| {
        let given = text.split('=').next().unwrap_or_default();
        given.len() > "--files".len() && option.starts_with(given)
    })
}

#[test]
fn paths_in_words() {
    assert!(paths_of("-F=file=@.env").contains(&"file=@.env"));
    for text in
        [".env", "--x=.env", "-f.env", "HEAD:.env", ":.env", "/a:.env:ro", "@.env", "-d@.env", "--d=@.env"]
    {
        assert!(paths_of(text).contains(&".env"), "{text}");
    }
    assert!(names_a_list("--files0-from=x") && names_a_list("--files-f") && !names_a_list("--files"));
}
