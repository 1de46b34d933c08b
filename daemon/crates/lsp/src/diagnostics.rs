//! Diagnostics: what servers say of files, and which of it is new. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use agentd_protocol::text_bounds;
use serde_json::Value;

use crate::position::Range;

/// Diagnostics of one file that are kept.
const MAX_OF_FILE: usize = 500;

/// Files whose diagnostics are kept.
const MAX_FILES: usize = 4000;

/// Diagnostics of all files that are kept.
const MAX_OF_ALL: usize = 20_000;

/// The longest message that is kept, in bytes.
const MAX_MESSAGE_BYTES: usize = 1500;

/// How bad it is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

impl Severity {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "info",
            Self::Hint => "hint",
        }
    }
}

/// One thing that a server says of a place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Diagnostic {
    pub(crate) range: Range,
    pub(crate) severity: Severity,
    pub(crate) code: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) message: String,
}

impl Diagnostic {
    /// Of a `Diagnostic`; `None` where nothing is said. One without a severity counts as an error, as the protocol leaves it to clients.
    fn of(value: &Value) -> Option<Self> {
        let message = match value.get("message")? {
            Value::String(text) => text.trim(),
            // A later version has marked-up texts.
            other => other.get("value")?.as_str()?.trim(),
        };
        if message.is_empty() {
            return None;
        }
        let text = |name: &str| match value.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        Some(Self {
            range: value.get("range").and_then(Range::of).unwrap_or_default(),
            severity: match value.get("severity").and_then(Value::as_u64) {
                Some(2) => Severity::Warning,
                Some(3) => Severity::Information,
                Some(4) => Severity::Hint,
                _ => Severity::Error,
            },
            code: text("code"),
            source: text("source"),
            message: text_bounds::head(message, MAX_MESSAGE_BYTES).to_owned(),
        })
    }

    /// Of a list of them; what is none is passed over.
    pub(crate) fn list(value: Option<&Value>) -> Vec<Self> {
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.take(4 * MAX_OF_FILE).filter_map(Self::of).take(MAX_OF_FILE).collect()
    }

    /// What stays the same where the text around it changes.
    fn key(&self) -> (Severity, Option<&str>, Option<&str>, &str) {
        (self.severity, self.code.as_deref(), self.source.as_deref(), &self.message)
    }
}

/// How the lines of a text moved by a change: those before it stay, those behind it move together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LineShift {
    /// The first line that changed.
    first: u64,
    /// The line behind the last one that changed, before the change.
    end: u64,
    /// The same after it.
    new_end: u64,
}

impl LineShift {
    /// From one text to another.
    pub(crate) fn between(old: &str, new: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
        let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let most = old.len().min(new.len()) - first;
        let same = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new);
        let same = same.count();
        Self { first: first as u64, end: (old.len() - same) as u64, new_end: (new.len() - same) as u64 }
    }

    /// The lines that changed, before the change. Where lines only came, those around them.
    pub(crate) fn changed(&self) -> std::ops::RangeInclusive<u64> {
        self.first..=self.end.max(self.first + 1) - 1
    }

    /// Whether a line of the text afterwards is one that changed.
    pub(crate) fn is_new(&self, line: u64) -> bool {
        (self.first..self.new_end).contains(&line)
    }

    /// Where a line is afterwards; `None` for one that changed.
    fn moved(&self, line: u64) -> Option<u64> {
        match line {
            line if line < self.first => Some(line),
            line if line >= self.end => Some(line - self.end + self.new_end),
            _ => None,
        }
    }
}

/// The diagnostics that were not there before: one is the same as before where severity, code, source and message are, first at the line
/// to which it moved, then anywhere.
pub(crate) fn new_ones(before: &[Diagnostic], after: &[Diagnostic], shift: LineShift) -> Vec<Diagnostic> {
    let mut left: Vec<Option<&Diagnostic>> = before.iter().map(Some).collect();
    let mut take = |is_it: &dyn Fn(&Diagnostic) -> bool| {
        let found = left.iter().position(|known| known.is_some_and(is_it));
        found.map(|at| left[at] = None).is_some()
    };
    let is_at_its_line = |new: &&Diagnostic| {
        !take(&|old: &Diagnostic| {
            old.key() == new.key() && shift.moved(old.range.start.line) == Some(new.range.start.line)
        })
    };
    let unplaced: Vec<&Diagnostic> = after.iter().filter(is_at_its_line).collect();
    unplaced.into_iter().filter(|new| !take(&|old: &Diagnostic| old.key() == new.key())).cloned().collect()
}

/// What a server said of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfFile {
    /// What it sent by itself.
    pushed: Vec<Diagnostic>,
    /// What it answered when it was asked.
    pulled: Vec<Diagnostic>,
    /// How often it spoke of the file.
    pub(crate) reports: u64,
    /// The version of the text that the last one sent by itself is about, where that says so.
    pub(crate) version: Option<i64>,
}

impl OfFile {
    /// All of them once, the worst first, then by their places.
    pub(crate) fn all(&self) -> Vec<Diagnostic> {
        let mut all: Vec<Diagnostic> = self.pushed.clone();
        all.extend(self.pulled.iter().filter(|pulled| !self.pushed.contains(pulled)).cloned());
        all.sort_by_key(|it| (it.severity, it.range));
        all
    }

    fn len(&self) -> usize {
        self.pushed.len() + self.pulled.len()
    }
}

/// What a server said of all files. Bounded; what comes beyond the bounds is counted and left out.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticStore {
    files: HashMap<PathBuf, OfFile>,
    count: usize,
    /// Diagnostics that were left out.
    pub(crate) left_out: u64,
}

impl DiagnosticStore {
    /// Takes what a server sent by itself.
    pub(crate) fn push(&mut self, path: PathBuf, version: Option<i64>, items: Vec<Diagnostic>) {
        self.change(path, |file| {
            file.pushed = items;
            file.version = version;
            file.reports += 1;
        });
    }

    /// Takes what a server answered; `None`: the same as before.
    pub(crate) fn pull(&mut self, path: PathBuf, items: Option<Vec<Diagnostic>>) {
        self.change(path, |file| {
            file.pulled = items.unwrap_or_else(|| std::mem::take(&mut file.pulled));
            file.reports += 1;
        });
    }

    fn change(&mut self, path: PathBuf, change: impl FnOnce(&mut OfFile)) {
        if !self.files.contains_key(&path) && self.files.len() >= MAX_FILES {
            // Files without diagnostics say nothing.
            self.files.retain(|_, file| file.len() > 0);
            if self.files.len() >= MAX_FILES {
                self.left_out += 1;
                return;
            }
        }
        let file = self.files.entry(path).or_default();
        self.count -= file.len();
        change(file);
        let room = MAX_OF_ALL.saturating_sub(self.count);
        if file.len() > room {
            self.left_out += (file.len() - room) as u64;
            file.pulled.truncate(room.saturating_sub(file.pushed.len()));
            file.pushed.truncate(room);
        }
        self.count += file.len();
    }

    /// Forgets a file that is gone.
    pub(crate) fn forget(&mut self, path: &Path) {
        if let Some(file) = self.files.remove(path) {
            self.count -= file.len();
        }
    }

    pub(crate) fn of(&self, path: &Path) -> OfFile {
        self.files.get(path).cloned().unwrap_or_default()
    }

    /// How often the server spoke of a file.
    pub(crate) fn reports(&self, path: &Path) -> u64 {
        self.files.get(path).map_or(0, |file| file.reports)
    }

    /// All that there is, by file.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
        let known = self.files.iter().filter(|(_, file)| file.len() > 0);
        known.map(|(path, file)| (path.clone(), file.all())).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn at(line: u64, message: &str) -> Diagnostic {
        let start = json!({"line": line, "character": 0});
        let list = json!([{"range": {"start": start, "end": start}, "message": message, "code": 7}]);
        Diagnostic::list(Some(&list)).remove(0)
    }

    #[test]
    fn what_moved_is_not_new() {
        let shift = LineShift::between("a\nb\nc\nd", "a\nx\ny\nb2\nc\nd");
        assert_eq!(shift.changed(), 1..=1);
        let before = [at(0, "one"), at(1, "two"), at(2, "three")];
        let after = [at(0, "one"), at(3, "two"), at(4, "three"), at(5, "three"), at(1, "four")];
        let new = new_ones(&before, &after, shift);
        assert_eq!(new, [at(5, "three"), at(1, "four")]);
        assert!(new_ones(&before, &[], shift).is_empty());
    }

    #[test]
    fn lines_that_came_change_those_around_them() {
        let shift = LineShift::between("a\nb", "a\nx\nb");
        assert_eq!((shift.changed(), shift.moved(1)), (1..=1, Some(2)));
        assert_eq!(LineShift::between("a", "a"), LineShift { first: 1, end: 1, new_end: 1 });
    }

    #[test]
    fn diagnostics_are_read_leniently() {
        let list = json!([
            {"message": " m ", "severity": 2, "source": "s"},
            {"message": {"kind": "markdown", "value": "n"}},
            {"message": ""},
            {"range": {}},
            3,
        ]);
        let read = Diagnostic::list(Some(&list));
        let told: Vec<_> = read.iter().map(|it| (it.severity.name(), it.message.as_str())).collect();
        assert_eq!(told, [("warning", "m"), ("error", "n")]);
        assert!(Diagnostic::list(Some(&json!({}))).is_empty());
    }

    #[test]
    fn the_store_is_bounded() {
        let mut store = DiagnosticStore::default();
        let many: Vec<Diagnostic> = (0..MAX_OF_FILE as u64).map(|line| at(line, "m")).collect();
        for file in 0..100 {
            store.push(format!("/f{file}").into(), None, many.clone());
        }
        assert_eq!(store.all().values().map(Vec::len).sum::<usize>(), MAX_OF_ALL);
        assert_eq!(store.left_out as usize, 100 * MAX_OF_FILE - MAX_OF_ALL);
        for file in 0..100 {
            store.push(format!("/f{file}").into(), None, Vec::new());
        }
        assert_eq!(store.count, 0);
    }

    #[test]
    fn what_was_pushed_and_pulled_counts_once() {
        let mut store = DiagnosticStore::default();
        store.push("/a".into(), Some(3), vec![at(2, "m")]);
        store.pull("/a".into(), Some(vec![at(2, "m"), at(1, "n")]));
        store.pull("/a".into(), None);
        let file = store.of(Path::new("/a"));
        assert_eq!((file.all(), file.reports, file.version), (vec![at(1, "n"), at(2, "m")], 3, Some(3)));
        store.forget(Path::new("/a"));
        assert_eq!((store.count, store.reports(Path::new("/a"))), (0, 0));
    }

    proptest! {
        #[test]
        fn nothing_is_new_where_nothing_changed(lines in prop::collection::vec((0_u64..5, "[ab]"), 0..8)) {
            let all: Vec<Diagnostic> = lines.iter().map(|(line, text)| at(*line, text)).collect();
            prop_assert!(new_ones(&all, &all, LineShift::between("x", "x")).is_empty());
        }

        #[test]
        fn as_many_are_new_as_there_are_more(
            before in prop::collection::vec(0_u64..5, 0..6),
            after in prop::collection::vec(0_u64..5, 0..6),
        ) {
            let all = |lines: &[u64]| lines.iter().map(|line| at(*line, "m")).collect::<Vec<_>>();
            let new = new_ones(&all(&before), &all(&after), LineShift::default());
            prop_assert_eq!(new.len(), after.len().saturating_sub(before.len()));
        }
    }
}
