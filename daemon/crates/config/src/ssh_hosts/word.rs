//! Words that are given to `ssh`.

/// Refuses what `ssh` would take for an option, or could not be one word of its command line or configuration.
///
/// # Errors
/// What is wrong.
pub(super) fn check_word(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.starts_with('-') {
        return Err(format!("{what} begins with a dash"));
    }
    if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err(format!("{what} has white space or a control character"));
    }
    Ok(())
}
