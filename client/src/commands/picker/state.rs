//! What the list shows, and what keys do with it. No terminal is known here.

use agentd_client_text::{FuzzyQuery, FuzzyText};

use super::keys::Key;
use crate::render::{columns, cut, one_line, padded};

/// How many lines of the list are shown at once.
pub(super) const ROWS: usize = 10;

/// The width from which on all of [`PickerItem::about`] is shown.
const WIDE: usize = 70;

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem {
    /// What it is called.
    pub(crate) title: String,
    /// What stands at the end of a wide line.
    pub(crate) about: String,
    /// What stands at the end of a narrow line.
    pub(crate) short: String,
    /// What is searched besides the title.
    pub(crate) also: String,
}

/// What comes after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    On,
    /// The item with this index is picked.
    Picked(usize),
    Left,
    Interrupted,
}

/// The list, and what was typed.
pub(super) struct PickerState {
    items: Vec<PickerItem>,
    /// The searched text of each item.
    texts: Vec<FuzzyText>,
    query: String,
    /// The indices of the items that fit, the best first.
    fitting: Vec<usize>,
    /// The place of the chosen one in `fitting`.
    chosen: usize,
    /// The place of the first one on the screen.
    top: usize,
}

/// What is drawn: lines without escapes.
pub(super) struct Picture {
    /// The line with the query.
    pub(super) query: String,
    /// The columns before the cursor in it.
    pub(super) cursor: usize,
    /// The lines below it, and whether each is the chosen one.
    pub(super) lines: Vec<(String, bool)>,
}

impl PickerState {
    pub(super) fn new(items: Vec<PickerItem>) -> Self {
        let texts =
            items.iter().map(|item| FuzzyText::new(&format!("{} {}", item.title, item.also))).collect();
        let mut state = Self { items, texts, query: String::new(), fitting: Vec::new(), chosen: 0, top: 0 };
        state.filter();
        state
    }

    pub(super) fn press(&mut self, key: Key) -> Step {
        let last = self.fitting.len().saturating_sub(1);
        match key {
            Key::Enter => return self.fitting.get(self.chosen).map_or(Step::On, |at| Step::Picked(*at)),
            Key::Escape => return Step::Left,
            Key::End if self.query.is_empty() => return Step::Left,
            Key::End => {}
            Key::Interrupt => return Step::Interrupted,
            Key::Up => self.chosen = self.chosen.saturating_sub(1),
            Key::Down => self.chosen = (self.chosen + 1).min(last),
            Key::PageUp => self.chosen = self.chosen.saturating_sub(ROWS),
            Key::PageDown => self.chosen = (self.chosen + ROWS).min(last),
            Key::First => self.chosen = 0,
            Key::Last => self.chosen = last,
            Key::Character(c) => {
                self.query.push(c);
                self.filter();
            }
            Key::Backspace => {
                self.query.pop();
                self.filter();
            }
            Key::DeleteAll => {
                self.query.clear();
                self.filter();
            }
            Key::DeleteWord => {
                let kept = self.query.trim_end();
                let end = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
                self.query.truncate(end);
                self.filter();
            }
        }
        self.top = self.top.clamp(self.chosen.saturating_sub(ROWS - 1), self.chosen);
        Step::On
    }

    /// The items that fit, the best first; equal ones, and all without a query, in their order.
    fn filter(&mut self) {
        let query = FuzzyQuery::new(&self.query);
        let scores = self.texts.iter().enumerate().filter_map(|(at, text)| Some((query.score(text)?, at)));
        let mut scores: Vec<(i32, usize)> = scores.collect();
        scores.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.fitting = scores.into_iter().map(|(_, at)| at).collect();
        self.chosen = 0;
        self.top = 0;
    }

    /// The picture for a screen of this width; no line is longer. At most `rows` lines below the query.
    pub(super) fn picture(&self, width: usize, rows: usize) -> Picture {
        let rows = rows.clamp(1, ROWS);
        // On a low screen, fewer lines than the state scrolls by.
        let top = self.top.max((self.chosen + 1).saturating_sub(rows));
        let shown = self.fitting.iter().enumerate().skip(top).take(rows);
        let mut lines: Vec<(String, bool)> = shown
            .map(|(place, at)| {
                let is_chosen = place == self.chosen;
                (line(&self.items[*at], is_chosen, width), is_chosen)
            })
            .collect();
        if lines.is_empty() {
            lines.push((cut("  Nothing fits.", width), false));
        }
        let count = format!("{} of {}", self.fitting.len(), self.items.len());
        let room = width.saturating_sub(columns(&count) + 4);
        let (mark, typed) = ("> ", end_of(&self.query, room));
        let cursor = columns(mark) + columns(&typed);
        let query = cut(&format!("{mark}{}  {count}", padded(&typed, room, false)), width);
        Picture { query, cursor: cursor.min(width.saturating_sub(1)), lines }
    }
}

/// The end of what was typed, as far as there is room.
fn end_of(text: &str, room: usize) -> String {
    let mut end = text;
    while columns(end) > room {
        let mut rest = end.chars();
        rest.next();
        end = rest.as_str();
    }
    end.to_owned()
}

fn line(item: &PickerItem, is_chosen: bool, width: usize) -> String {
    let mark = if is_chosen { "> " } else { "  " };
    let end = one_line(if width >= WIDE { &item.about } else { &item.short });
    let room = width.saturating_sub(columns(mark) + 2 + columns(&end));
    let title = cut(&one_line(&item.title), room);
    cut(&format!("{mark}{}  {end}", padded(&title, room, false)), width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(title: &str, short: &str) -> PickerItem {
        PickerItem {
            title: title.into(),
            about: format!("model · {short}"),
            short: short.into(),
            also: "project".into(),
        }
    }

    fn state(query: &str) -> PickerState {
        let mut items = vec![
            item("Fix the parser", "5m"),
            item("日本語 tests", "2h"),
            item("Release \u{1b}[2J notes", "3d"),
        ];
        items.extend((0..20).map(|number| item(&format!("Session {number}"), "9d")));
        let mut state = PickerState::new(items);
        typed(&mut state, query);
        state
    }

    fn typed(state: &mut PickerState, text: &str) {
        for c in text.chars() {
            assert_eq!(state.press(Key::Character(c)), Step::On);
        }
    }

    #[test]
    fn typing_filters_and_enter_picks() {
        let mut state = state("");
        typed(&mut state, "rel nts");
        assert_eq!(state.press(Key::Enter), Step::Picked(2));
        state.press(Key::DeleteWord);
        assert_eq!(state.query, "rel ");
        state.press(Key::DeleteAll);
        typed(&mut state, "none of them");
        assert_eq!(state.press(Key::Enter), Step::On, "nothing fits, nothing is picked");
        for _ in 0..12 {
            state.press(Key::Backspace);
        }
        assert_eq!(state.press(Key::Enter), Step::Picked(0));
        assert_eq!(state.press(Key::End), Step::Left);
        assert_eq!(state.press(Key::Escape), Step::Left);
        assert_eq!(state.press(Key::Interrupt), Step::Interrupted);
    }

    #[test]
    fn arrows_scroll_the_list() {
        let mut state = state("");
        state.press(Key::Up);
        assert_eq!((state.chosen, state.top), (0, 0));
        for _ in 0..11 {
            state.press(Key::Down);
        }
        assert_eq!((state.chosen, state.top), (11, 2));
        let picture = state.picture(60, ROWS);
        assert_eq!(picture.lines.iter().position(|(_, is_chosen)| *is_chosen), Some(9));
        assert_eq!(picture.lines.len(), ROWS);
        let low = state.picture(60, 3);
        assert_eq!((low.lines.len(), low.lines[2].1), (3, true));
        state.press(Key::Last);
        assert_eq!((state.chosen, state.top), (22, 13));
        state.press(Key::PageUp);
        state.press(Key::First);
        assert_eq!((state.chosen, state.top), (0, 0));
        state.press(Key::PageDown);
        assert_eq!(state.press(Key::Enter), Step::Picked(10));
    }

    #[test]
    fn a_narrow_screen_keeps_titles_and_ages() {
        let state = state("日t");
        let picture = state.picture(50, ROWS);
        assert_eq!(picture.query, format!("> 日t{}1 of 23", " ".repeat(38)));
        assert_eq!(picture.cursor, 5);
        assert!(
            picture.lines.iter().any(|(line, _)| line.ends_with("  2h") && line.contains("日本語 tests"))
        );
        assert!(state.picture(80, ROWS).lines.iter().any(|(line, _)| line.ends_with("  model · 2h")));
    }

    #[test]
    fn nothing_fits_is_said() {
        assert_eq!(state("xyz").picture(50, ROWS).lines, [("  Nothing fits.".to_owned(), false)]);
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_the_screen(query in "\\PC{0,60}", width in 10_usize..200, downs in 0_usize..30, rows in 0_usize..20) {
            let mut state = state(&query);
            for _ in 0..downs {
                state.press(Key::Down);
            }
            let picture = state.picture(width, rows);
            prop_assert!(picture.cursor < width && columns(&picture.query) <= width, "{:?}", picture.query);
            for (line, _) in &picture.lines {
                prop_assert!(columns(line) <= width && !line.contains('\u{1b}'), "{line:?}");
            }
        }
    }
}
