//! The names of hosts in the user's own ssh configuration. Only names: what they mean is for `ssh` to say.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;

use super::word::check_word;
use crate::text_file::read_text;

/// How deep files may include others: as deep as `ssh` lets them.
const MAX_DEPTH: usize = 16;

/// How many files are read.
const MAX_FILES: usize = 64;

/// The names of `~/.ssh/config` and of the files that it includes, in their order. Patterns are no names. Reads files; blocks.
pub(super) fn aliases(home: &Path) -> Vec<String> {
    let mut found = Aliases { folder: home.join(".ssh"), home, names: Vec::new(), files: 0 };
    found.file(&home.join(".ssh/config"), 0);
    found.names
}

struct Aliases<'a> {
    folder: PathBuf,
    home: &'a Path,
    names: Vec<String>,
    files: usize,
}

impl Aliases<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        if depth > MAX_DEPTH || self.files == MAX_FILES {
            return;
        }
        self.files += 1;
        // A file that cannot be read names no hosts, and ssh itself says what is wrong with it.
        let Ok(Some(text)) = read_text(path) else { return };
        for line in text.lines() {
            let words = words(line);
            let Some((keyword, values)) = words.split_first() else { continue };
            if keyword.eq_ignore_ascii_case("host") {
                let names = values
                    .iter()
                    .filter(|name| !name.contains(['*', '?', '!', '/', ':']) && check_word("", name).is_ok());
                for name in names {
                    if !self.names.contains(name) {
                        self.names.push(name.clone());
                    }
                }
            } else if keyword.eq_ignore_ascii_case("include") {
                for pattern in values {
                    for file in self.included(pattern) {
                        self.file(&file, depth + 1);
                    }
                }
            }
        }
    }

    /// The files that a word of `Include` means: a path whose last part may be a pattern, relative to `~/.ssh`.
    fn included(&self, pattern: &str) -> Vec<PathBuf> {
        let path = match pattern.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.folder.join(pattern),
        };
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Vec::new();
        };
        if !name.contains(['*', '?', '[']) {
            return vec![path];
        }
        let Ok(glob) = GlobBuilder::new(name).literal_separator(true).build() else { return Vec::new() };
        let (glob, Ok(entries)) = (glob.compile_matcher(), folder.read_dir()) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        // A shell's pattern means no hidden file unless it says so.
        let is_meant = |name: &std::ffi::OsString| {
            glob.is_match(name) && (pattern.starts_with('.') || !name.as_encoded_bytes().starts_with(b"."))
        };
        let mut files: Vec<PathBuf> = names.filter(is_meant).map(|name| folder.join(name)).collect();
        files.sort();
        files.truncate(MAX_FILES);
        files
    }
}

/// The words of a line: separated by white space, the first also by an equals sign; quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let line = line.trim_start();
    if line.starts_with('#') {
        return Vec::new();
    }
    let (mut words, mut word, mut is_quoted, mut is_open) = (Vec::new(), String::new(), false, false);
    for letter in line.chars() {
        match letter {
            '"' => (is_quoted, is_open) = (!is_quoted, true),
            // A comment behind words.
            '#' if !is_quoted && !is_open => break,
            '=' if !is_quoted && words.is_empty() => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                    is_open = false;
                }
            }
            letter if letter.is_whitespace() && !is_quoted => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                    is_open = false;
                }
            }
            letter => {
                word.push(letter);
                is_open = true;
            }
        }
    }
    if is_open {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_found_and_patterns_are_not() {
        let home = tempfile::tempdir().unwrap();
        let ssh = home.path().join(".ssh");
        fs::create_dir_all(ssh.join("config.d")).unwrap();
        let text = "# Host no\nInclude config.d/* more # and a comment\nHost box \"two\" *.example !not -x\n  HostName 127.0.0.1\n\
                    host=eq\nHost box\nMatch host other\nHost #late\n";
        fs::write(ssh.join("config"), text).unwrap();
        fs::write(ssh.join("config.d/b"), "Host b\nInclude ~/.ssh/config").unwrap();
        fs::write(ssh.join("config.d/a"), "Host a a2").unwrap();
        fs::write(ssh.join("config.d/.hidden"), "Host hidden").unwrap();
        fs::write(ssh.join("more"), "Host m").unwrap();
        // A circle ends; names stay in their first order.
        let found = aliases(home.path());
        for name in ["a", "a2", "b", "m", "box", "two", "eq"] {
            assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
        }
        assert_eq!(found.len(), 7, "{found:?}");
        assert!(aliases(Path::new("/nowhere")).is_empty());
    }

    proptest! {
        #[test]
        fn any_line_has_words(line in "[ -~\t=\"#é]{0,60}") {
            for word in words(&line) {
                prop_assert!(line.len() >= word.len());
            }
        }
    }
}
