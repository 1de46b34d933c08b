//! What is typed that can be completed, and the offers for it.

/// What the text before the cursor asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The name of a command, without its slash.
    Command(String),
    /// A part of a file's path, and where the `@` stands.
    File { query: String, at: usize },
}

/// Something that can be put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) text: String,
    pub(crate) about: String,
}

/// The offers on the screen.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    pub(crate) wanted: Option<Wanted>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) selected: usize,
    /// What was asked for when the user closed the list: it stays closed for that.
    pub(crate) closed_for: Option<Wanted>,
}

impl Completions {
    /// Whether there is something to choose from.
    pub(crate) fn is_open(&self) -> bool {
        !self.offers.is_empty()
    }

    pub(crate) fn close(&mut self) {
        self.offers.clear();
        self.closed_for = self.wanted.take();
        self.selected = 0;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn next(&mut self) {
        self.selected = if self.selected + 1 < self.offers.len() { self.selected + 1 } else { 0 };
    }

    pub(crate) fn previous(&mut self) {
        self.selected = self.selected.checked_sub(1).unwrap_or(self.offers.len().saturating_sub(1));
    }

    pub(crate) fn chosen(&self) -> Option<&Offer> {
        self.offers.get(self.selected)
    }
}

/// What the text before the cursor asks for: `/name` at the very beginning, or `@path` behind white space.
pub(crate) fn wanted(text: &str, cursor: usize) -> Option<Wanted> {
    let head = &text[..cursor];
    if let Some(name) = head.strip_prefix('/')
        && !name.contains(char::is_whitespace)
    {
        return Some(Wanted::Command(name.to_owned()));
    }
    let word = head
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
    let query = head[word..].strip_prefix('@')?;
    Some(Wanted::File { query: query.to_owned(), at: word })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_first_and_files_anywhere() {
        assert_eq!(wanted("/mo", 3), Some(Wanted::Command("mo".into())));
        assert_eq!(wanted("/mo del", 7), None);
        assert_eq!(wanted(" /mo", 4), None);
        assert_eq!(wanted("see @src/m and", 10), Some(Wanted::File { query: "src/m".into(), at: 4 }));
        assert_eq!(wanted("@", 1), Some(Wanted::File { query: String::new(), at: 0 }));
        assert_eq!(wanted("me@host", 7), None);
        assert_eq!(
            wanted("漢\u{3000}@x", "漢\u{3000}@x".len()),
            Some(Wanted::File { query: "x".into(), at: 6 })
        );
    }
}
