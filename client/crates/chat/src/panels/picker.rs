//! A list to pick from, filtered by some letters.

use agentd_client_text::FuzzyQuery;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Something to pick.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PickItem<T> {
    pub(crate) value: T,
    pub(crate) label: String,
    /// What stands at the right.
    pub(crate) detail: String,
    /// Whether it cannot be used as things are.
    pub(crate) is_dim: bool,
    /// Whether it is chosen now: shown by a mark.
    pub(crate) is_marked: bool,
}

/// What a key did in a list.
#[derive(Debug, PartialEq)]
pub(crate) enum Picked<T> {
    Nothing,
    Closed,
    One(T),
    /// All that are marked, in a list where several can be.
    Marked(Vec<T>),
}

/// The list.
#[derive(Debug)]
pub(crate) struct Picker<T> {
    pub(crate) title: String,
    pub(crate) filter: String,
    items: Vec<PickItem<T>>,
    /// The items that fit the filter, the best first.
    fitting: Vec<usize>,
    selected: usize,
    /// Whether blanks mark items, and Enter takes all marked ones.
    marks: bool,
}

impl<T: Clone> Picker<T> {
    /// A list from which one item is picked. The marked item is selected.
    pub(crate) fn new(title: impl Into<String>, items: Vec<PickItem<T>>) -> Self {
        let selected = items.iter().position(|item| item.is_marked).unwrap_or(0);
        let fitting = (0..items.len()).collect();
        Self { title: title.into(), filter: String::new(), items, fitting, selected, marks: false }
    }

    /// A list in which items are marked.
    pub(crate) fn of_marks(title: impl Into<String>, items: Vec<PickItem<T>>) -> Self {
        Self { marks: true, selected: 0, ..Self::new(title, items) }
    }

    pub(crate) fn has_marks(&self) -> bool {
        self.marks
    }

    /// The items that fit, and which one is selected.
    pub(crate) fn shown(&self) -> impl ExactSizeIterator<Item = &PickItem<T>> {
        self.fitting.iter().map(|at| &self.items[*at])
    }

    pub(crate) fn selected(&self) -> usize {
        self.selected
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Picked<T> {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.fitting.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return Picked::Closed,
            KeyCode::Char('c' | 'g') if with_control => return Picked::Closed,
            KeyCode::Enter if self.marks => {
                let marked = self.items.iter().filter(|item| item.is_marked);
                return Picked::Marked(marked.map(|item| item.value.clone()).collect());
            }
            KeyCode::Enter => {
                return match self.fitting.get(self.selected) {
                    Some(at) => Picked::One(self.items[*at].value.clone()),
                    None => Picked::Nothing,
                };
            }
            KeyCode::Up => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Down | KeyCode::Tab => {
                self.selected = if self.selected >= last { 0 } else { self.selected + 1 }
            }
            KeyCode::Char('p') if with_control => {
                self.selected = self.selected.checked_sub(1).unwrap_or(last)
            }
            KeyCode::Char('n' | 'r') if with_control => {
                self.selected = if self.selected >= last { 0 } else { self.selected + 1 };
            }
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Char('u') if with_control => {
                self.filter.clear();
                self.find();
            }
            KeyCode::Backspace => {
                self.filter.pop();
                self.find();
            }
            KeyCode::Char(' ') if self.marks => {
                if let Some(at) = self.fitting.get(self.selected) {
                    self.items[*at].is_marked ^= true;
                }
            }
            KeyCode::Char(c) if !with_control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.filter.push(c);
                self.find();
            }
            _ => {}
        }
        Picked::Nothing
    }

    /// Sets the letters to look for.
    pub(crate) fn set_filter(&mut self, filter: &str) {
        filter.clone_into(&mut self.filter);
        self.find();
    }

    fn find(&mut self) {
        let query = FuzzyQuery::new(&self.filter);
        let mut fitting: Vec<(i64, usize)> = self
            .items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| Some((query.score_of_name(&item.label)?, at)))
            .collect();
        if !self.filter.is_empty() {
            fitting.sort_by_key(|(score, at)| (self.items[*at].is_dim, -score, *at));
        }
        self.fitting = fitting.into_iter().map(|(_, at)| at).collect();
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(label: &str, is_dim: bool) -> PickItem<String> {
        PickItem { value: label.into(), label: label.into(), detail: String::new(), is_dim, is_marked: false }
    }

    fn press(picker: &mut Picker<String>, code: KeyCode) -> Picked<String> {
        picker.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn letters_filter_and_enter_takes() {
        let items = ["openai/gpt-5.5", "anthropic/opus", "anthropic/sonnet"].map(|label| item(label, false));
        let mut picker = Picker::new("Model", items.to_vec());
        for letter in "son".chars() {
            assert_eq!(press(&mut picker, KeyCode::Char(letter)), Picked::Nothing);
        }
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::One("anthropic/sonnet".to_owned()));
        press(&mut picker, KeyCode::Char('~'));
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Nothing);
        press(&mut picker, KeyCode::Backspace);
        assert_eq!(picker.shown().len(), 1);
        assert_eq!(press(&mut picker, KeyCode::Esc), Picked::Closed);
    }

    #[test]
    fn what_cannot_be_used_comes_last() {
        let mut picker =
            Picker::new("Model", vec![item("a/opus", true), item("bedrock/opus-long-name", false)]);
        picker.set_filter("opus");
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::One("bedrock/opus-long-name".to_owned()));
    }

    #[test]
    fn marks_are_taken_together() {
        let mut picker = Picker::of_marks("Tools", vec![item("a", false), item("b", false)]);
        press(&mut picker, KeyCode::Down);
        press(&mut picker, KeyCode::Char(' '));
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Marked(vec!["b".to_owned()]));
    }
}
