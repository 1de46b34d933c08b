//! Parsing a text that a shell runs.

use std::{cell::RefCell, ops::ControlFlow};

use tree_sitter::{ParseOptions, Parser, Tree};

use super::{
    length,
    script::{Folders, Script},
    tokens,
    walk::Walk,
};

/// The longest text that is looked at, in bytes. A longer one is obscure.
pub const MAX_BYTES: usize = 64 << 10;

/// The longest text without its plain here-documents ([`length`]), in bytes. The parser repairs what is not finished (`a|b|c|`), and at
/// the end of a text in a time that grows with the square of its length: half a second for this much.
const MAX_PARSED_BYTES: usize = 8 << 10;

/// How often the parser may report progress before it is given up: it does so every hundred or so steps.
const MAX_PROGRESS: u32 = 20_000;

/// How deep texts that are expanded may lie in one another: here-documents within substitutions of here-documents.
const MAX_LEVELS: u32 = 8;

thread_local! {
    /// One for each thread: making it costs more than a short text.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// The simple commands of `text`, run in `folders` by bash, not interactively; `home` is the home directory.
///
/// Never fails and never runs anything: what is not understood is told in [`Script::obscure`]. The time that it takes is bounded by the
/// length of the text.
#[must_use]
pub fn parse(text: &str, folders: Folders, home: &str) -> Script {
    let mut script = Script::default();
    let mut left = vec![(text.to_owned(), folders)];
    // Texts within texts: each round is a level deeper.
    for _ in 0..MAX_LEVELS {
        for (text, folders) in std::mem::take(&mut left) {
            left.extend(one(&text, folders, home, &mut script));
        }
    }
    if !left.is_empty() {
        script.be_obscure("it is nested too deeply");
    }
    script
}

/// Adds the commands of a text to `script`; returns the texts in it that are expanded in turn.
fn one(text: &str, folders: Folders, home: &str, script: &mut Script) -> Vec<(String, Folders)> {
    if text.len() > MAX_BYTES || length::parsed_bytes(text) > MAX_PARSED_BYTES {
        script.be_obscure("it is too long");
        return Vec::new();
    }
    if text.chars().any(|character| character.is_control() && !matches!(character, '\t' | '\n')) {
        script.be_obscure("it has control characters");
        return Vec::new();
    }
    let Some(tree) = tree(text) else {
        script.be_obscure("its syntax is too involved");
        return Vec::new();
    };
    if let Some(what) = tokens::unaccounted(tree.root_node(), text) {
        script.be_obscure(&format!("{what} is not understood"));
    }
    Walk::new(text, home, script).run(tree.root_node(), folders)
}

fn tree(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|kept| {
        if kept.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *kept = Some(parser);
        }
        let parser = kept.as_mut()?;
        let mut steps = 0;
        let mut progress = |_: &tree_sitter::ParseState| {
            steps += 1;
            if steps > MAX_PROGRESS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let mut read = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut read, None, Some(options));
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_too_long_by_what_has_to_be_taken_apart() {
        let obscure = |text: String| parse(&text, Folders::one("/home/me/project"), "/home/me").obscure;
        let lines = "some words of a text\n".repeat(2_000);
        assert_eq!(obscure(format!("cat > a.txt <<'EOF'\n{lines}EOF\nls")), None);
        assert_eq!(obscure(format!("echo '{lines}'")).as_deref(), Some("it is too long"));
        assert_eq!(obscure("ls|".repeat(20_000)).as_deref(), Some("it is too long"));
        assert_eq!(obscure("ls|".repeat(2_500)).as_deref(), Some("its syntax is not understood"));
    }
}
