//! Edits by keys: deleting, killing, yanking.

use super::buffer::{Editor, LastEdit, MOST_KILLED};

/// An edit that a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    DeleteLeft,
    DeleteRight,
    KillWordLeft,
    /// Up to white space.
    KillLongWordLeft,
    KillWordRight,
    KillToLineStart,
    KillToLineEnd,
    Yank,
    /// Replaces what was just yanked by what was killed before it.
    YankPop,
    Transpose,
}

impl Editor {
    /// Makes an edit.
    pub(crate) fn edit(&mut self, edit: Edit) {
        let at = self.cursor;
        match edit {
            Edit::DeleteLeft => self.delete(self.before(at), at),
            Edit::DeleteRight => self.delete(at, self.after(at)),
            Edit::KillWordLeft => self.kill(self.word_before(), at, true),
            Edit::KillLongWordLeft => self.kill(self.long_word_before(), at, true),
            Edit::KillWordRight => self.kill(at, self.word_after(), false),
            Edit::KillToLineStart => self.kill(self.line_start(), at, true),
            Edit::KillToLineEnd => {
                let end = self.line_end();
                // At the end of a line, its line feed goes.
                self.kill(at, if end == at { self.after(at) } else { end }, false);
            }
            Edit::Yank => self.yank(self.killed.len().wrapping_sub(1)),
            Edit::YankPop => {
                let Some((start, end, ring)) = self.yanked else { return };
                let next = ring.checked_sub(1).unwrap_or(self.killed.len().saturating_sub(1));
                self.save(LastEdit::Other);
                self.text.replace_range(start..end, "");
                self.cursor = start;
                self.yank(next);
            }
            Edit::Transpose => self.transpose(),
        }
    }

    fn delete(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        self.save(LastEdit::Other);
        self.text.replace_range(from..to, "");
        self.cursor = from;
        self.snap();
    }

    fn kill(&mut self, from: usize, to: usize, is_left: bool) {
        if from >= to {
            return;
        }
        let goes_on = self.last == LastEdit::Killed;
        let killed = self.text[from..to].to_owned();
        self.save(LastEdit::Killed);
        self.text.replace_range(from..to, "");
        self.cursor = from;
        self.snap();
        match self.killed.last_mut().filter(|_| goes_on) {
            Some(last) if is_left => last.insert_str(0, &killed),
            Some(last) => last.push_str(&killed),
            None => {
                if self.killed.len() == MOST_KILLED {
                    self.killed.remove(0);
                }
                self.killed.push(killed);
            }
        }
    }

    fn yank(&mut self, ring: usize) {
        let Some(text) = self.killed.get(ring).cloned() else { return };
        let start = self.cursor;
        self.insert(&text);
        self.yanked = Some((start, self.cursor, ring));
    }

    fn transpose(&mut self) {
        // At the end of a line, the last two letters change places.
        let middle = if self.cursor == self.line_end() { self.before(self.cursor) } else { self.cursor };
        let (left, right) = (self.before(middle), self.after(middle));
        if left == middle || right == middle || self.text[left..right].contains('\n') {
            return;
        }
        self.save(LastEdit::Other);
        let swapped = format!("{}{}", &self.text[middle..right], &self.text[left..middle]);
        self.text.replace_range(left..right, &swapped);
        self.cursor = right;
        self.snap();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation as _;

    use super::*;
    use crate::editor::Move;

    const EDITS: [Edit; 10] = [
        Edit::DeleteLeft,
        Edit::DeleteRight,
        Edit::KillWordLeft,
        Edit::KillLongWordLeft,
        Edit::KillWordRight,
        Edit::KillToLineStart,
        Edit::KillToLineEnd,
        Edit::Yank,
        Edit::YankPop,
        Edit::Transpose,
    ];
    const MOVES: [Move; 10] = [
        Move::Left,
        Move::Right,
        Move::WordLeft,
        Move::WordRight,
        Move::LineStart,
        Move::LineEnd,
        Move::Up,
        Move::Down,
        Move::Start,
        Move::End,
    ];

    #[derive(Debug, Clone)]
    enum Step {
        Edit(usize),
        Go(usize, usize),
        Insert(String),
        Paste(String),
        Undo,
        Redo,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let piece = "[a \n漢e\u{301}👨\u{200d}👩🇩🇪]{0,6}";
        let step = prop_oneof![
            (0..EDITS.len()).prop_map(Step::Edit),
            (0..MOVES.len(), 2usize..9).prop_map(|(go, width)| Step::Go(go, width)),
            piece.prop_map(Step::Insert),
            (1usize..20).prop_map(|lines| Step::Paste("x\n".repeat(lines))),
            Just(Step::Undo),
            Just(Step::Redo),
        ];
        proptest::collection::vec(step, 0..40)
    }

    fn take(editor: &mut Editor, step: &Step) {
        match step {
            Step::Edit(edit) => editor.edit(EDITS[*edit]),
            Step::Go(go, width) => drop(editor.go(MOVES[*go], *width)),
            Step::Insert(text) => editor.insert(text),
            Step::Paste(text) => editor.paste(text),
            Step::Undo => drop(editor.undo()),
            Step::Redo => drop(editor.redo()),
        }
    }

    fn check(editor: &Editor) {
        let text = editor.text();
        let at = editor.cursor();
        let boundary = at == text.len() || text.grapheme_indices(true).any(|(start, _)| start == at);
        assert!(boundary, "{text:?} at {at}");
        let token = editor.pastes.token_around(text, at);
        assert!(token.is_none_or(|token| token.start == at), "{text:?} at {at}");
    }

    proptest! {
        #[test]
        fn the_cursor_stands_between_graphemes_and_outside_of_tokens(steps in steps()) {
            let mut editor = Editor::default();
            for step in &steps {
                take(&mut editor, step);
                check(&editor);
                let shown = editor.rows(5);
                prop_assert!(shown.row < shown.rows.len());
            }
        }

        #[test]
        fn undo_restores_every_state_and_redo_the_last(steps in steps()) {
            let mut editor = Editor::default();
            for step in steps.iter().filter(|step| !matches!(step, Step::Undo | Step::Redo)) {
                take(&mut editor, step);
            }
            let last = editor.text().to_owned();
            let mut count = 0;
            while editor.undo() {
                check(&editor);
                count += 1;
            }
            prop_assert_eq!(editor.text(), "");
            for _ in 0..count {
                prop_assert!(editor.redo());
            }
            prop_assert_eq!(editor.text(), last);
        }
    }

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn kills_are_gathered_and_yanked() {
        let mut editor = typed("one two three");
        editor.edit(Edit::KillWordLeft);
        editor.edit(Edit::KillWordLeft);
        assert_eq!(editor.text(), "one ");
        editor.edit(Edit::Yank);
        assert_eq!(editor.text(), "one two three");
        editor.go(Move::Start, 80);
        editor.edit(Edit::KillToLineEnd);
        editor.edit(Edit::Yank);
        editor.edit(Edit::YankPop);
        assert_eq!(editor.text(), "two three");
    }

    #[test]
    fn letters_are_undone_together() {
        let mut editor = Editor::default();
        for letter in ["a", "b", " ", "c"] {
            editor.insert(letter);
        }
        assert!(editor.undo());
        assert_eq!(editor.text(), "ab ");
        assert!(editor.undo() && editor.undo() && !editor.undo());
        assert!(editor.redo());
        assert_eq!(editor.text(), "ab");
    }

    #[test]
    fn a_token_is_deleted_whole() {
        let mut editor = typed("see ");
        editor.paste(&"x\n".repeat(120));
        assert_eq!(editor.text(), "see [pasted 120 lines]");
        assert_eq!(editor.whole_text(), format!("see {}", "x\n".repeat(120)));
        editor.edit(Edit::DeleteLeft);
        assert_eq!(editor.text(), "see ");
    }

    #[test]
    fn rows_are_wrapped_and_the_cursor_keeps_its_column() {
        let mut editor = typed("abcdef\nx\n漢字漢字");
        let shown = editor.rows(5);
        assert_eq!(shown.rows, ["abcde", "f", "x", "漢字", "漢字"]);
        assert_eq!((shown.row, shown.column), (4, 4));
        assert!(editor.go(Move::Up, 5) && editor.go(Move::Up, 5));
        assert_eq!((editor.rows(5).row, editor.rows(5).column), (2, 1));
        assert!(editor.go(Move::Down, 5));
        assert_eq!(editor.rows(5).column, 2);
        editor.go(Move::Start, 5);
        assert!(!editor.go(Move::Up, 5));
        editor.edit(Edit::Transpose);
        assert_eq!(editor.text(), "abcdef\nx\n漢字漢字");
    }
}
