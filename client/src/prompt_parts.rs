//! The parts of a prompt on the command line: words, files, stdin. Mistakes are faults of usage.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use agentd_input::{Attachments, InputError, TerminalInput};
use agentd_protocol::{command::PromptParams, prompt_text::stdin_block};

use crate::exit::{Fault, print_stderr};

/// The word that stands for stdin.
const STDIN: &str = "-";

/// The words of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MessageWords<'a> {
    /// The paths of `@path` words, in order.
    pub(crate) files: Vec<&'a str>,
    /// The words before `-`; all words without a `-`.
    before: String,
    /// The words after `-`.
    after: Option<String>,
    /// Whether `-` comes before all words and files.
    leads: bool,
}

impl<'a> MessageWords<'a> {
    /// Sorts words, among which `-` stands for stdin, and `literal` words.
    ///
    /// # Errors
    /// When `-` comes twice.
    pub(crate) fn plain(words: &'a [String], literal: &'a [String]) -> Result<Self, InputError> {
        Self::sorted(words, literal, |_| None)
    }

    /// As [`MessageWords::plain`]; `@path` names a file.
    ///
    /// # Errors
    /// As [`MessageWords::plain`].
    pub(crate) fn with_files(words: &'a [String], literal: &'a [String]) -> Result<Self, InputError> {
        Self::sorted(words, literal, |word| word.strip_prefix('@').filter(|path| !path.is_empty()))
    }

    fn sorted(
        words: &'a [String],
        literal: &'a [String],
        file: impl Fn(&'a str) -> Option<&'a str>,
    ) -> Result<Self, InputError> {
        let mut files = Vec::new();
        let (mut before, mut after): (Vec<&str>, Option<Vec<&str>>) = (Vec::new(), None);
        let mut leads = false;
        for word in words {
            match (file(word), word == STDIN) {
                (Some(path), _) => files.push(path),
                (None, true) if after.is_some() => return Err(InputError::StdinTwice),
                (None, true) => {
                    leads = before.is_empty() && files.is_empty();
                    after = Some(Vec::new());
                }
                (None, false) => after.as_mut().unwrap_or(&mut before).push(word),
            }
        }
        after.as_mut().unwrap_or(&mut before).extend(literal.iter().map(String::as_str));
        Ok(Self { files, before: before.join(" "), after: after.map(|words| words.join(" ")), leads })
    }

    /// Whether `-` is among the words: stdin is read even from a terminal.
    pub(crate) fn name_stdin(&self) -> bool {
        self.after.is_some()
    }

    /// The message. Stdin takes the place of `-`, else it comes first; beside words it is a block between `<stdin>` and `</stdin>`. The
    /// text of files comes before the words.
    pub(crate) fn compose(&self, piped: &str, files: Attachments) -> PromptParams {
        let has_words = [Some(&self.before), self.after.as_ref()]
            .into_iter()
            .flatten()
            .any(|words| !words.trim().is_empty());
        let words = [Some(self.before.as_str()), self.after.as_deref()].into_iter().flatten();
        let words = words.filter(|words| !words.trim().is_empty()).collect::<Vec<_>>().join(" ");
        let adds = !piped.is_empty() || !files.text.is_empty();
        let typed = (has_words && adds).then_some(words);
        let block = (has_words && !piped.is_empty()).then(|| stdin_block(piped));
        let piped = block.as_deref().unwrap_or(piped);
        let before = self.before.as_str();
        let blocks = match self.after.as_deref() {
            Some(after) if !self.leads => [&(files.text + before), piped, after].map(str::to_owned),
            after => [piped.to_owned(), files.text + before + after.unwrap_or_default(), String::new()],
        };
        let mut message = String::new();
        for block in blocks.iter().filter(|block| !block.trim().is_empty()) {
            if !message.is_empty() {
                message.truncate(message.trim_end_matches('\n').len());
                message.push_str("\n\n");
            }
            message.push_str(block);
        }
        PromptParams { message, typed, images: files.images, ..PromptParams::default() }
    }
}

/// As [`agentd_input::read_files`].
pub(crate) fn read_files(paths: &[&str], base: &Path, home: Option<&Path>) -> Result<Attachments, Fault> {
    agentd_input::read_files(paths, base, home).map_err(|error| fault(&error))
}

/// As [`agentd_input::read_piped`]. With `named`, the user asked for stdin and may type there.
pub(crate) fn read_piped(named: bool) -> Result<String, Fault> {
    let terminal = if named { TerminalInput::Read } else { TerminalInput::Ignored };
    let waiting = || {
        print_stderr(if named && io::stdin().is_terminal() {
            "agentctl: reading from the terminal; Ctrl-D at the beginning of a line ends the text"
        } else if named {
            "agentctl: reading stdin to its end"
        } else {
            "agentctl: reading the start of the prompt from stdin; if nothing is to come, add </dev/null"
        });
    };
    agentd_input::read_piped(terminal, waiting).map_err(|error| fault(&error))
}

/// The fault for a mistake, with advice.
pub(crate) fn fault(error: &InputError) -> Fault {
    let advice = match error {
        InputError::NotFound(_) => "\nText that begins with @ goes after `--`: agentctl prompt -- \"@...\"",
        InputError::StdinTwice => "\nA dash that is part of the text goes after `--`.",
        _ => "",
    };
    Fault::usage(format!("Error: {error}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], literal: &[&str], piped: &str, expected: &str) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (words, literal) = (owned(words), owned(literal));
        let read = MessageWords::with_files(&words, &literal).unwrap();
        let text = read.files.iter().map(|path| format!("<{path}>\n")).collect();
        let message = read.compose(piped, Attachments { text, images: Vec::new() }).message;
        assert_eq!(message, expected, "{words:?} {literal:?}");
    }

    #[test]
    fn what_is_piped_in_is_a_block_beside_words() {
        let block = "<stdin>\n+last line\n</stdin>";
        check(&["Review", "this."], &[], "+last line", &format!("{block}\n\nReview this."));
        check(&["Review"], &["-", "@x"], "+last line", &format!("{block}\n\nReview - @x"));
        let files = "<a>\n<b>\nExplain this.";
        check(&["Explain", "@a", "this.", "@b"], &[], "+last line", &format!("{block}\n\n{files}"));
        // Without words, what is piped in is the message itself.
        check(&["@a"], &[], "in", "in\n\n<a>\n");
        check(&[], &[], "in", "in");
        check(&[" "], &[], "in", "in");
        check(&["Hi"], &[], "", "Hi");
        check(&["@a", "Hi"], &[], "", "<a>\nHi");
    }

    #[test]
    fn a_dash_is_the_place_of_stdin() {
        let block = "<stdin>\nin\n</stdin>";
        check(&["-"], &[], "in", "in");
        check(&["-"], &[], "", "");
        check(&["-", "Why?"], &[], "in", &format!("{block}\n\nWhy?"));
        check(&["Look:", "-", "Why?"], &["-v"], "in", &format!("Look:\n\n{block}\n\nWhy? -v"));
        check(&["Look:", "-"], &[], "in", &format!("Look:\n\n{block}"));
        check(&["Look:", "-", "Why?"], &[], "", "Look:\n\nWhy?");
        check(&["@a", "-"], &[], "in", "<a>\n\nin");
        check(&["@a", "Look:", "-", "@b"], &[], "in", &format!("<a>\n<b>\nLook:\n\n{block}"));
        check(&["-", "@a", "Why?"], &[], "in", &format!("{block}\n\n<a>\nWhy?"));
        let twice = ["-".to_owned(), "x".to_owned(), "-".to_owned()];
        assert!(matches!(MessageWords::plain(&twice, &[]), Err(InputError::StdinTwice)));
    }

    #[test]
    fn the_words_are_the_title() {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let diff = "diff --git a/x b/x\n+last line";
        for (words, expected) in [
            (&["Review", "this."][..], "Review this."),
            (&["@a", "Look:", "-", "Safe?"], "Look: Safe?"),
            (&["-", "@a", "Why?"], "Why?"),
            (&["-"], diff),
        ] {
            let words = owned(words);
            let read = MessageWords::with_files(&words, &[]).unwrap();
            let text =
                read.files.iter().map(|path| format!("<file name=\"/p/{path}\">\nx\n\n</file>\n")).collect();
            let message = read.compose(diff, Attachments { text, images: Vec::new() }).message;
            assert_eq!(agentd_protocol::prompt_text::typed_words(&message), expected, "{words:?}");
        }
    }

    #[test]
    fn without_files_an_at_sign_is_a_word() {
        let words = ["@a".to_owned(), "b".to_owned()];
        let read = MessageWords::plain(&words, &[]).unwrap();
        assert_eq!(read.compose("", Attachments::default()).message, "@a b");
        assert!(!read.name_stdin());
    }
}
