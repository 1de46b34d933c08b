//! Parsing a text that a shell runs.

use std::{cell::RefCell, ops::ControlFlow, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use tree_sitter::{ParseOptions, Parser, Tree};

use super::{
    script::{Folders, Script},
    tokens,
    walk::Walk,
};

/// The longest text that is looked at, in bytes. A longer one is obscure.
pub const MAX_BYTES: usize = 64 << 10;

/// How long the parser may work on a text, of the processor's time. Sixty kilobytes of commands take a fifth of it; what is not
/// finished (`a|b|c|`) makes the parser try repairs whose number grows with the square of the length.
const MAX_PARSER_TIME: Duration = Duration::from_millis(500);

/// How deep texts that are expanded may lie in one another: here-documents within substitutions of here-documents.
const MAX_LEVELS: u32 = 8;

thread_local! {
    /// One for each thread: making it costs more than a short text.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// The simple commands of `text`, run in `folders` by bash, not interactively; `home` is the home directory.
///
/// Never fails and never runs anything: what is not understood is told in [`Script::obscure`]. Takes time in proportion to the text,
/// which is bounded, and so is the time of the parser.
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
    if text.len() > MAX_BYTES {
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
        let end = processor_time() + MAX_PARSER_TIME;
        let mut progress = |_: &tree_sitter::ParseState| {
            if processor_time() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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

/// The time that this thread has worked: on a busy machine a text gets no less of it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_the_parser_too_long_is_obscure() {
        let text = format!("echo {}", "ls|".repeat(20_000));
        let script = parse(&text, Folders::one("/home/me/project"), "/home/me");
        assert_eq!(script.obscure.as_deref(), Some("its syntax is too involved"));
    }
}
