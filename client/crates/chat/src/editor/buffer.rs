//! The buffer itself, and what can be undone.

use super::pastes::Pastes;

/// How many states undo keeps.
const MOST_UNDO: usize = 200;

/// How many killed texts the ring keeps.
pub(super) const MOST_KILLED: usize = 20;

/// The text that is being typed. The cursor always stands between two graphemes, and never inside a token of a paste.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editor {
    pub(super) text: String,
    /// In bytes.
    pub(super) cursor: usize,
    pub(super) pastes: Pastes,
    /// The column that moves up and down aim at.
    pub(super) aimed_column: Option<usize>,
    pub(super) undo: Vec<(String, usize)>,
    pub(super) redo: Vec<(String, usize)>,
    /// The kind of the last edit: letters typed one after the other are undone together.
    pub(super) last: LastEdit,
    pub(super) killed: Vec<String>,
    /// The bytes that the last yank put in, for yank-pop, and which of the ring they are.
    pub(super) yanked: Option<(usize, usize, usize)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LastEdit {
    #[default]
    Other,
    Typed,
    Killed,
}

impl Editor {
    /// The text with tokens in the places of pastes.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text with the pastes.
    pub(crate) fn whole_text(&self) -> String {
        self.pastes.unfolded(&self.text)
    }

    /// The cursor, in bytes of [`Editor::text`].
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether nothing is typed.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes the text out, and leaves an empty editor that has the kill ring still.
    pub(crate) fn take(&mut self) -> String {
        let whole = self.whole_text();
        self.set("");
        self.pastes = Pastes::default();
        self.undo.clear();
        self.redo.clear();
        whole
    }

    /// Replaces the text; the cursor stands at its end. It can be undone.
    pub(crate) fn set(&mut self, text: &str) {
        self.save(LastEdit::Other);
        self.text = cleaned(text);
        self.cursor = self.text.len();
    }

    /// Puts text in at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = cleaned(text);
        let one_letter = text.chars().take(2).count() == 1 && !text.contains(char::is_whitespace);
        self.save(if one_letter { LastEdit::Typed } else { LastEdit::Other });
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.snap();
    }

    /// Puts a paste in at the cursor; a long one as a token.
    pub(crate) fn paste(&mut self, text: &str) {
        let shown = self.pastes.fold(&cleaned(text));
        self.insert(&shown);
    }

    /// Replaces some bytes before the cursor, as a completion does.
    pub(crate) fn replace_back(&mut self, from: usize, text: &str) {
        self.save(LastEdit::Other);
        self.text.replace_range(from..self.cursor, text);
        self.cursor = from + text.len();
        self.snap();
    }

    /// Keeps the state for undo before an edit.
    pub(super) fn save(&mut self, kind: LastEdit) {
        if kind != LastEdit::Typed || self.last != LastEdit::Typed {
            if self.undo.len() == MOST_UNDO {
                self.undo.remove(0);
            }
            self.undo.push((self.text.clone(), self.cursor));
        }
        self.last = kind;
        self.redo.clear();
        self.aimed_column = None;
        self.yanked = None;
    }

    /// Goes one edit back; false where there is none.
    pub(crate) fn undo(&mut self) -> bool {
        let Some((text, cursor)) = self.undo.pop() else { return false };
        self.redo.push((std::mem::replace(&mut self.text, text), self.cursor));
        self.cursor = cursor;
        self.after_jump();
        true
    }

    /// Goes one undone edit forward; false where there is none.
    pub(crate) fn redo(&mut self) -> bool {
        let Some((text, cursor)) = self.redo.pop() else { return false };
        self.undo.push((std::mem::replace(&mut self.text, text), self.cursor));
        self.cursor = cursor;
        self.after_jump();
        true
    }

    fn after_jump(&mut self) {
        self.last = LastEdit::Other;
        self.aimed_column = None;
        self.yanked = None;
    }

    /// Moves the cursor to the nearest place where it may stand.
    pub(super) fn snap(&mut self) {
        use unicode_segmentation::GraphemeCursor;
        if let Some(token) = self.pastes.token_around(&self.text, self.cursor)
            && token.start < self.cursor
        {
            self.cursor = token.end;
        }
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        if !cursor.is_boundary(&self.text, 0).unwrap_or(true) {
            self.cursor = cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len());
        }
    }
}

/// Line ends as LF, tabs as blanks, nothing that steers a terminal.
fn cleaned(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    text.chars().filter(|c| !agentd_protocol::terminal_text::steers(*c)).collect()
}
