//! The patterns in a list of resources that exclude and include files: `!glob`, `-path`, `+path`.

use std::path::{Path, PathBuf};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::walk::SKILL_FILE;

/// The patterns of one list.
#[derive(Debug, Clone, Default)]
pub(super) struct Patterns {
    base: PathBuf,
    out: GlobSet,
    exactly_out: Vec<String>,
    exactly_in: Vec<String>,
    /// The faults of the patterns.
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Patterns {
    /// `entries` begin with `!`, `+` or `-`; paths in them are taken from `base`, the folder of the settings file.
    pub(super) fn new(entries: &[&String], base: &Path, setting: &str) -> Self {
        let mut patterns = Self { base: base.to_path_buf(), ..Self::default() };
        let mut globs = GlobSetBuilder::new();
        for entry in entries {
            let (sign, text) = entry.split_at(1);
            let text = text.strip_prefix("./").unwrap_or(text).trim_end_matches('/').to_owned();
            match sign {
                "+" => patterns.exactly_in.push(text),
                "-" => patterns.exactly_out.push(text),
                _ => match GlobBuilder::new(&text).literal_separator(true).build() {
                    Ok(glob) => {
                        globs.add(glob);
                    }
                    Err(error) => patterns.warn(setting, entry, error.kind()),
                },
            }
        }
        match globs.build() {
            Ok(globs) => patterns.out = globs,
            Err(error) => patterns.warn(setting, "!", error.kind()),
        }
        patterns
    }

    fn warn(&mut self, setting: &str, entry: &str, why: &globset::ErrorKind) {
        let message = format!("the entry \"{entry}\" of \"{setting}\" is not used: {why}");
        let diagnostic = Diagnostic::warning(DiagnosticKind::Settings, message);
        self.diagnostics.push(diagnostic.at(self.base.join("settings.json")));
    }

    /// Returns whether a file stays.
    pub(super) fn keep(&self, file: &Path) -> bool {
        let names = self.names(file);
        let exactly = |list: &[String]| list.iter().any(|entry| names.contains(entry));
        if exactly(&self.exactly_out) {
            return false;
        }
        exactly(&self.exactly_in) || !names.iter().any(|name| self.out.is_match(name))
    }

    /// The names by which a pattern can match a file: its path, its path from the settings file, its name; and for a skill
    /// those of its folder.
    fn names(&self, file: &Path) -> Vec<String> {
        let is_skill = file.file_name().is_some_and(|name| name == SKILL_FILE);
        let folder = file.parent().filter(|_| is_skill);
        let mut names = Vec::new();
        for path in [Some(file), folder].into_iter().flatten() {
            let below = path.strip_prefix(&self.base).ok();
            let name = path.file_name().map(Path::new);
            names.extend([Some(path), below, name].into_iter().flatten().map(|it| it.display().to_string()));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[&str], kept: &[&str], dropped: &[&str]) {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let patterns = Patterns::new(&entries.iter().collect::<Vec<_>>(), Path::new("/a"), "skills");
        assert!(patterns.diagnostics.is_empty(), "{:?}", patterns.diagnostics);
        for (paths, expected) in [(kept, true), (dropped, false)] {
            for path in paths {
                assert_eq!(patterns.keep(Path::new(path)), expected, "{path} {entries:?}");
            }
        }
    }

    #[test]
    fn globs_and_exact_paths() {
        check(&[], &["/a/skills/x/SKILL.md"], &[]);
        check(&["!skills/x*"], &["/a/skills/y/SKILL.md"], &["/a/skills/x/SKILL.md", "/a/skills/xy.md"]);
        check(&["!**/k2"], &["/b/k1/SKILL.md", "/b/k2/notes.md"], &["/b/k2/SKILL.md", "/a/k2/SKILL.md"]);
        check(&["!*.md", "+keep.md"], &["/b/keep.md"], &["/b/x.md", "/a/x/SKILL.md"]);
        check(&["-./skills/x/", "+skills/x"], &["/a/skills/y/SKILL.md"], &["/a/skills/x/SKILL.md"]);
        check(&["-/b/x.md"], &["/c/x.md"], &["/b/x.md"]);
    }

    #[test]
    fn a_bad_glob_is_told() {
        let entry = "!a[".to_owned();
        let patterns = Patterns::new(&[&entry], Path::new("/a"), "skills");
        assert!(patterns.keep(Path::new("/a/a[")));
        let said = patterns.diagnostics[0].to_string();
        assert!(
            said.starts_with("/a/settings.json: the entry \"!a[\" of \"skills\" is not used: "),
            "{said}"
        );
    }
}
