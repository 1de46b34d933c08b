//! `@path` in context files: the file is put in its place.

use std::path::{Path, PathBuf};

use agentd_config::ProjectBounds;
use agentd_protocol::capabilities::CapabilityLevel;

use crate::{
    place::DiscoveryPlace,
    scan::{anywhere, read, read_by},
};

/// The bytes that imports add to one context file: 1 MiB.
pub const MAX_IMPORTED_BYTES: usize = 1 << 20;

/// The depth to which imported files import others.
const MAX_DEPTH: usize = 5;

/// The files that are imported into one context file.
const MAX_FILES: usize = 100;

/// The endings of files outside of a project that its context files may import.
const TEXT_ENDINGS: [&str; 4] = ["md", "mdc", "markdown", "txt"];

/// Which files may be imported.
#[derive(Debug, Clone, Copy)]
pub struct ImportRules<'a> {
    place: &'a DiscoveryPlace,
    level: CapabilityLevel,
    trusted: bool,
}

impl<'a> ImportRules<'a> {
    /// The rules for a context file. One of the user's imports any file. One of a project imports the project's files, and where the
    /// project is trusted also Markdown and plain text elsewhere. Nobody imports from the agent directory, and no project files that are
    /// named `.env` or lie in `.git`.
    #[must_use]
    pub fn new(place: &'a DiscoveryPlace, level: CapabilityLevel, trusted: bool) -> Self {
        Self { place, level, trusted }
    }

    /// The text of a file; `None` where it is not there, or may not be imported.
    fn read(&self, path: &Path) -> Option<(PathBuf, String)> {
        let real = path.canonicalize().ok()?;
        let DiscoveryPlace { bounds, agent_dir, .. } = self.place;
        if real.starts_with(agent_dir) || !real.is_file() {
            return None;
        }
        let text = match self.level {
            CapabilityLevel::User => read_by(&anywhere(), &real),
            CapabilityLevel::Project if real.starts_with(&bounds.root) => {
                if is_private(&real, bounds) {
                    return None;
                }
                read(&real, CapabilityLevel::Project, bounds, agent_dir)
            }
            CapabilityLevel::Project => {
                let ending = real.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
                if !self.trusted || !TEXT_ENDINGS.contains(&ending) {
                    return None;
                }
                read_by(&anywhere(), &real)
            }
        };
        text.ok().flatten().map(|text| (real, text))
    }
}

/// Files of a project that hold what is not meant for others.
fn is_private(path: &Path, bounds: &ProjectBounds) -> bool {
    let below = path.strip_prefix(&bounds.root).unwrap_or(path);
    let is_environment = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| name == ".env" || name.starts_with(".env."))
    };
    below.file_name().is_some_and(is_environment) || below.iter().any(|part| part == ".git")
}

/// The text of a context file with every `@path` replaced by the content of that file, where there is one: at the beginning of a line or after
/// white space, and not in code. Relative paths count from the importing file, `~/` is the home directory. Reads files; blocks.
#[must_use]
pub fn expand_imports(text: &str, file: &Path, rules: ImportRules<'_>) -> String {
    if !text.contains('@') {
        return text.to_owned();
    }
    let real = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let mut expansion =
        Expansion { rules, bytes_left: MAX_IMPORTED_BYTES, files_left: MAX_FILES, above: vec![real] };
    expansion.expand(text)
}

struct Expansion<'a> {
    rules: ImportRules<'a>,
    bytes_left: usize,
    files_left: usize,
    /// The files that import each other down to here, the first one first.
    above: Vec<PathBuf>,
}

impl Expansion<'_> {
    fn expand(&mut self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut fence: Option<String> = None;
        for line in text.split_inclusive('\n') {
            let trimmed = line.trim_start();
            let marks = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'));
            let marks: String = marks
                .into_iter()
                .flat_map(|mark| trimmed.chars().take_while(move |it| *it == mark))
                .collect();
            match &fence {
                Some(open) => {
                    if marks.starts_with(open.as_str()) && trimmed[marks.len()..].trim().is_empty() {
                        fence = None;
                    }
                    result.push_str(line);
                }
                None if marks.len() >= 3 => {
                    fence = Some(marks);
                    result.push_str(line);
                }
                None => self.line(line, &mut result),
            }
        }
        result
    }

    fn line(&mut self, line: &str, result: &mut String) {
        let mut rest = line;
        let mut before = '\n';
        while let Some(at) = rest.find(['@', '`']) {
            let (plain, after) = rest.split_at(at);
            result.push_str(plain);
            before = plain.chars().next_back().unwrap_or(before);
            if after.starts_with('`') {
                let length = after.bytes().take_while(|byte| *byte == b'`').count();
                let (marks, inside) = after.split_at(length);
                // Without an end the marks are text. No later ones have that length, then: nothing is searched twice.
                let end = closing(inside, length).unwrap_or(0);
                result.push_str(marks);
                result.push_str(&inside[..end]);
                rest = &inside[end..];
                before = '`';
                continue;
            }
            let (path, behind) = after[1..].split_at(path_length(&after[1..]));
            let imported = if before.is_whitespace() { self.import(path) } else { None };
            match imported {
                Some(text) => result.push_str(&text),
                None => {
                    result.push('@');
                    result.push_str(path);
                }
            }
            before = path.chars().next_back().unwrap_or('@');
            rest = behind;
        }
        result.push_str(rest);
    }

    /// The text of a file with its own imports.
    fn import(&mut self, written: &str) -> Option<String> {
        if written.is_empty() || self.above.len() > MAX_DEPTH || self.files_left == 0 {
            return None;
        }
        let importing = self.above.last()?;
        let path = match written.strip_prefix("~/") {
            Some(below) => self.rules.place.home.as_ref()?.join(below),
            None => importing.parent()?.join(written),
        };
        let (real, text) = self.rules.read(&path)?;
        if self.above.contains(&real) || text.len() > self.bytes_left {
            return None;
        }
        self.files_left -= 1;
        self.bytes_left -= text.len();
        self.above.push(real);
        let text = self.expand(text.trim_end());
        self.above.pop();
        Some(text)
    }
}

/// The offset after a run of exactly so many backticks.
fn closing(text: &str, length: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'`' {
            at += 1;
            continue;
        }
        let run = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
        at += run;
        if run == length {
            return Some(at);
        }
    }
    None
}

/// The length of a path: up to white space, without punctuation at its end.
fn path_length(text: &str) -> usize {
    let end = text.find(|letter: char| letter.is_whitespace() || letter == '`').unwrap_or(text.len());
    let is_end = |letter: char| {
        matches!(letter, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '"' | '\'' | '>')
    };
    text[..end].trim_end_matches(is_end).len()
}

#[cfg(test)]
mod tests;
