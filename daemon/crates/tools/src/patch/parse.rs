//! Reads unified diffs, as `git diff` and `diff -u` print them. Pure.
//!
//! The numbers of lines in the head of a hunk decide where the hunk ends only while they can be right: models count badly, and a hunk also
//! ends where the next one, or the next file, begins.

use super::name::{NamePair, git_name, name_of_header};

/// What a diff does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) target: DiffTarget,
    pub(crate) hunks: Vec<Hunk>,
    /// Whether the diff gives the file another mode, too.
    pub(crate) sets_mode: bool,
}

/// The file of a part of a diff, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DiffTarget {
    Change(String),
    Create(String),
    Remove(String),
    Rename { from: String, to: String },
}

impl DiffTarget {
    /// The file as it is before the change; a new one as it is afterwards.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Change(name)
            | Self::Create(name)
            | Self::Remove(name)
            | Self::Rename { from: name, .. } => name,
        }
    }
}

/// Lines next to each other, some of which change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The head, as the diff has it.
    pub(crate) head: String,
    /// The first old line, from 1; for a hunk without old lines, the line before it. `None` where the head has no numbers.
    pub(crate) line: Option<usize>,
    pub(crate) lines: Vec<HunkLine>,
    /// Whether the old text ends without a line feed, and with it the file.
    pub(crate) old_is_open: bool,
    /// Whether the new text does.
    pub(crate) new_is_open: bool,
}

/// A line of a hunk, without its mark and line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HunkLine {
    pub(crate) mark: LineMark,
    pub(crate) text: String,
}

/// Which of the two texts a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineMark {
    Same,
    Gone,
    Come,
}

impl Hunk {
    /// The lines of the old text.
    pub(crate) fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.mark != LineMark::Come).map(|line| line.text.as_str())
    }

    /// Whether it changes something.
    pub(crate) fn has_changes(&self) -> bool {
        self.lines.iter().any(|line| line.mark != LineMark::Same)
    }
}

/// Reads a diff. Text around it is skipped: a message, fences of Markdown, the end of a mail.
///
/// # Errors
/// A sentence that says what cannot be read, and in which line.
pub(crate) fn parse(diff: &str) -> Result<Vec<FileDiff>, String> {
    let mut lines: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
    if has_crlf_heads(&lines) {
        lines = lines.into_iter().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    }
    let mut reader = Reader { lines, at: 0 };
    let mut files = Vec::new();
    let mut draft: Option<Draft> = None;
    while let Some(&line) = reader.lines.get(reader.at) {
        let number = reader.at + 1;
        if let Some(names) = line.strip_prefix("diff --git ") {
            files.extend(draft.take().map(Draft::finished).transpose()?);
            draft = Some(Draft { git: git_name(names)?, ..Draft::default() });
        } else if reader.is_names(reader.at) {
            if draft.as_ref().is_none_or(|draft| draft.names.is_some()) {
                files.extend(draft.take().map(Draft::finished).transpose()?);
            }
            draft.get_or_insert_default().names = Some(reader.names()?);
            reader.at += 1;
        } else if line.starts_with("@@") {
            let Some(draft) = draft.as_mut() else {
                return Err(format!(
                    "Line {number} of the diff begins a hunk of no file: put --- FILE and +++ FILE before it"
                ));
            };
            let hunk = reader.hunk()?;
            draft.hunks.push(hunk);
            continue;
        } else if let Some(draft) = draft.as_mut() {
            draft.read_fact(line)?;
            let is_stray = draft.names.is_some() && line.starts_with(['+', '-']) && !is_mail_end(line);
            if is_stray {
                return Err(format!(
                    "Line {number} of the diff belongs to no hunk: a hunk begins with @@ -LINE,COUNT +LINE,COUNT @@"
                ));
            }
        }
        reader.at += 1;
    }
    files.extend(draft.map(Draft::finished).transpose()?);
    if files.is_empty() {
        return Err(
            "The diff names no file: each file begins with the lines --- FILE and +++ FILE".to_owned()
        );
    }
    Ok(files)
}

/// Whether the lines of the diff itself end with CRLF, and not only those of the files in it.
fn has_crlf_heads(lines: &[&str]) -> bool {
    let is_head = |line: &&&str| ["diff --git ", "--- ", "@@"].iter().any(|start| line.starts_with(start));
    lines.iter().find(is_head).is_some_and(|line| line.ends_with('\r'))
}

/// The line before the version of git in a mail.
fn is_mail_end(line: &str) -> bool {
    line.trim_end() == "--"
}

/// A file of which not all was read.
#[derive(Default)]
struct Draft {
    /// The name in the line `diff --git`, where that is clear.
    git: Option<String>,
    names: Option<NamePair>,
    rename_from: Option<String>,
    rename_to: Option<String>,
    is_new: bool,
    is_removed: bool,
    sets_mode: bool,
    /// Why the file cannot be changed, after its name.
    refusal: Option<&'static str>,
    hunks: Vec<Hunk>,
}

impl Draft {
    /// Reads a line between the heads of a file and its hunks. Other lines mean nothing.
    fn read_fact(&mut self, line: &str) -> Result<(), String> {
        let after = |start: &str| line.strip_prefix(start);
        if let Some(mode) = after("new file mode ") {
            self.is_new = true;
            self.read_mode(mode);
        } else if after("deleted file mode ").is_some() {
            self.is_removed = true;
        } else if let Some(mode) = after("new mode ") {
            self.sets_mode = true;
            self.read_mode(mode);
        } else if let Some(name) = after("rename from ") {
            self.rename_from = Some(name_of_header(name)?);
        } else if let Some(name) = after("rename to ") {
            self.rename_to = Some(name_of_header(name)?);
        } else if after("copy from ").is_some() {
            self.refusal = Some("is copied in the diff, which patch does not do: use bash to copy it");
        } else if line == "GIT binary patch" || line.starts_with("Binary files ") {
            self.refusal = Some("is no text in the diff: use bash to change it");
        }
        Ok(())
    }

    fn read_mode(&mut self, mode: &str) {
        match mode.trim_end() {
            "120000" => self.refusal = Some("is a symbolic link in the diff: use bash to make it"),
            "160000" => self.refusal = Some("is a submodule in the diff: use git to change it"),
            "100755" => self.sets_mode = true,
            _ => {}
        }
    }

    fn finished(self) -> Result<FileDiff, String> {
        let target = self.target()?;
        if let Some(refusal) = self.refusal {
            return Err(format!("{} {refusal}", target.name()));
        }
        let name = target.name();
        if matches!(target, DiffTarget::Change(_)) && !self.hunks.iter().any(Hunk::has_changes) {
            let why = if self.sets_mode { "; use bash to change its mode" } else { "" };
            return Err(format!("The diff changes no line of {name}{why}"));
        }
        let is_wrong =
            |mark: LineMark| self.hunks.iter().flat_map(|hunk| &hunk.lines).any(|it| it.mark != mark);
        match &target {
            DiffTarget::Create(_) if is_wrong(LineMark::Come) => {
                Err(format!("{name} is new in the diff, so that all of its lines must begin with +"))
            }
            DiffTarget::Remove(_) if is_wrong(LineMark::Gone) => {
                Err(format!("{name} is removed in the diff, so that all of its lines must begin with -"))
            }
            _ => Ok(FileDiff { target, hunks: self.hunks, sets_mode: self.sets_mode }),
        }
    }

    fn target(&self) -> Result<DiffTarget, String> {
        match (&self.rename_from, &self.rename_to) {
            (Some(from), Some(to)) if from == to => return Ok(DiffTarget::Change(from.clone())),
            (Some(from), Some(to)) => {
                return Ok(DiffTarget::Rename { from: from.clone(), to: to.clone() });
            }
            (None, None) => {}
            (Some(name), None) | (None, Some(name)) => {
                return Err(format!(
                    "The diff renames {name}, and has only one of rename from and rename to"
                ));
            }
        }
        let (is_new, is_removed) = match &self.names {
            Some(names) => (names.old.is_none() || self.is_new, names.new.is_none() || self.is_removed),
            None => (self.is_new, self.is_removed),
        };
        let name = self.git.clone().or_else(|| self.names.as_ref()?.name());
        match (name, is_new, is_removed) {
            (Some(name), false, false) => Ok(DiffTarget::Change(name)),
            (Some(name), true, false) => Ok(DiffTarget::Create(name)),
            (Some(name), false, true) => Ok(DiffTarget::Remove(name)),
            (Some(_), true, true) | (None, ..) => {
                Err("A part of the diff names no file: neither --- nor +++ has one".to_owned())
            }
        }
    }
}

/// The lines of a diff, and the next one to be read.
struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> &str {
        self.lines.get(at).copied().unwrap_or_default()
    }

    /// Whether the names of a file stand here.
    fn is_names(&self, at: usize) -> bool {
        self.line(at).starts_with("--- ") && self.line(at + 1).starts_with("+++ ")
    }

    fn names(&self) -> Result<NamePair, String> {
        let (old, new) = (self.line(self.at), self.line(self.at + 1));
        NamePair::of(old.get(4..).unwrap_or_default(), new.get(4..).unwrap_or_default())
    }

    /// Whether the next hunk or the next file begins here, in the middle of a hunk as well: a line of a hunk has no `@@` at its begin.
    fn ends_hunk(&self, at: usize) -> bool {
        let line = self.line(at);
        line.starts_with("@@")
            || line.starts_with("diff --git ")
            || self.is_names(at) && self.line(at + 2).starts_with("@@")
    }

    /// The first line from here on that is not empty.
    fn after_empty_lines(&self, mut at: usize) -> usize {
        while at < self.lines.len() && self.line(at).trim_end_matches('\r').is_empty() {
            at += 1;
        }
        at
    }

    /// Whether a line behind a hunk that has all its lines is one more of it.
    fn continues(&self, at: usize) -> bool {
        let at = self.after_empty_lines(at);
        let line = self.line(at);
        line.starts_with([' ', '+', '-']) && !is_mail_end(line) && !self.is_names(at) && !self.ends_hunk(at)
    }

    /// The hunk whose head is the next line.
    fn hunk(&mut self) -> Result<Hunk, String> {
        let head = self.line(self.at).trim_end().to_owned();
        let numbers = HunkNumbers::of(&head);
        let mut left = numbers.map(|numbers| (numbers.old, numbers.new));
        let line = numbers.map(|numbers| numbers.line);
        let mut hunk = Hunk { head, line, lines: Vec::new(), old_is_open: false, new_is_open: false };
        // Empty lines at the end, which may be no lines of the hunk.
        let mut empty = 0;
        self.at += 1;
        while self.at < self.lines.len() && !self.ends_hunk(self.at) {
            let line = self.line(self.at);
            let is_full = left.is_some_and(|(old, new)| old == 0 && new == 0);
            let is_marker = line.starts_with('\\');
            if is_full && !is_marker && !self.continues(self.at) {
                break;
            }
            let (mark, text) = match line.split_at_checked(1) {
                Some((" ", text)) => (LineMark::Same, text),
                Some(("-", text)) => (LineMark::Gone, text),
                Some(("+", text)) => (LineMark::Come, text),
                Some(("\\", _)) => {
                    hunk.open_end(self.at)?;
                    self.at += 1;
                    continue;
                }
                None | Some(("\r", "")) if line.trim_end_matches('\r').is_empty() => (LineMark::Same, line),
                _ if line.starts_with("```") || left.is_none() => break,
                _ => {
                    return Err(format!(
                        "Line {} of the diff begins with none of space, + and -, and its hunk ({}) is not at its end",
                        self.at + 1,
                        hunk.head
                    ));
                }
            };
            empty = if line.len() > text.len() { 0 } else { empty + 1 };
            if let Some((old, new)) = &mut left {
                *old = old.saturating_sub(usize::from(mark != LineMark::Come));
                *new = new.saturating_sub(usize::from(mark != LineMark::Gone));
            }
            hunk.lines.push(HunkLine { mark, text: text.to_owned() });
            self.at += 1;
        }
        if left != Some((0, 0)) {
            hunk.lines.truncate(hunk.lines.len() - empty);
        }
        if hunk.lines.is_empty() {
            return Err(format!("The hunk {} of the diff has no lines", hunk.head));
        }
        Ok(hunk)
    }
}

impl Hunk {
    /// Takes note of `\ No newline at end of file`.
    fn open_end(&mut self, at: usize) -> Result<(), String> {
        let Some(last) = self.lines.last() else {
            return Err(format!("Line {} of the diff is about the end of a line that is not there", at + 1));
        };
        self.old_is_open |= last.mark != LineMark::Come;
        self.new_is_open |= last.mark != LineMark::Gone;
        Ok(())
    }
}

/// The numbers in the head of a hunk.
#[derive(Debug, Clone, Copy)]
struct HunkNumbers {
    /// The first old line.
    line: usize,
    /// How many old and new lines there are.
    old: usize,
    new: usize,
}

impl HunkNumbers {
    /// Of a head such as `@@ -1,2 +1,3 @@ text`; `None` where there are none.
    fn of(head: &str) -> Option<Self> {
        let mut ranges = head.trim_start_matches('@').split_whitespace();
        let range = |text: &str, mark: char| -> Option<(usize, usize)> {
            let text = text.strip_prefix(mark)?;
            let (line, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((line.parse().ok()?, count.parse().ok()?))
        };
        let (line, old) = range(ranges.next()?, '-')?;
        let (_, new) = range(ranges.next()?, '+')?;
        Some(Self { line, old, new })
    }
}

#[cfg(test)]
mod tests;
