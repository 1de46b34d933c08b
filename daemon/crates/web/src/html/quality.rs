//! Whether a text is worth reading, or what is left of a page that scripts would have filled. Pure.

/// A text shorter than this may be all that a page says without scripts.
const SHORT: usize = 1024;

/// The least characters of a text that counts as content.
const LEAST: usize = 100;

/// Lines from which on their length is looked at.
const MANY_LINES: usize = 10;

/// A line shorter than this is none of a text.
const SHORT_LINE: usize = 40;

/// What pages say to those without scripts.
const ASKS_FOR_SCRIPTS: [&str; 9] = [
    "enable javascript",
    "enable java script",
    "javascript is disabled",
    "javascript is required",
    "requires javascript",
    "turn on javascript",
    "without javascript",
    "javascript enabled",
    "checking your browser",
];

/// Whether the Markdown of a page is no content: too little, a request to enable scripts, or hardly anything but menus.
/// `without_scripts` is what the page has for those without scripts.
pub(crate) fn is_low(markdown: &str, without_scripts: &str) -> bool {
    let text = markdown.trim();
    if text.chars().take(LEAST + 1).count() <= LEAST {
        return true;
    }
    if text.len() < SHORT {
        let said = format!("{text} {without_scripts}").to_lowercase();
        if ASKS_FOR_SCRIPTS.iter().any(|words| said.contains(words)) {
            return true;
        }
    }
    let (mut lines, mut short, mut in_code) = (0_usize, 0_usize, false);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        // Code, tables and headings have short lines by nature.
        if in_code || is_fence || line.starts_with(['|', '#']) {
            continue;
        }
        lines += 1;
        short += usize::from(shown_length(line) < SHORT_LINE);
    }
    lines > MANY_LINES && short * 10 > lines * 7
}

/// The characters of a line that a reader sees: those of a link's address are none.
fn shown_length(line: &str) -> usize {
    let (mut length, mut in_address, mut before) = (0, false, ' ');
    for character in line.chars() {
        match character {
            '(' if before == ']' => in_address = true,
            ')' if in_address => in_address = false,
            _ if !in_address => length += 1,
            _ => {}
        }
        before = character;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_told_from_what_scripts_would_have_filled() {
        let text = "A sentence that says something about the subject of the page. ".repeat(5);
        assert!(!is_low(&text, ""));
        assert!(is_low("Loading…", ""));
        assert!(is_low(&format!("Please enable JavaScript to run this app. {}", "x ".repeat(60)), ""));
        assert!(is_low(&text, "You need to enable JavaScript to run this app."));
        assert!(!is_low(&text.repeat(10), "You need to enable JavaScript to run this app."));
        let menu = "- [Home](https://example.org/a/long/address/that/nobody/reads)\n".repeat(40);
        assert!(is_low(&menu, ""));
        let code = format!("Some words.\n```\n{}```\n", "let x = 1;\n".repeat(40));
        assert!(!is_low(&code, ""));
    }
}
