//! Pure. Texts for a line of somebody's screen.

/// The most characters of a title.
const TITLE_CHARS: usize = 80;

/// The first line of a text, of at most 80 characters.
#[must_use]
pub fn shortened(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        None => line.to_owned(),
        Some(_) => line.chars().take(TITLE_CHARS - 1).chain(['…']).collect(),
    }
}
