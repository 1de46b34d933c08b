//! The words of a message on the command line of `agentctl`, with what is piped in at its place among them.

use agentd_protocol::command::PromptParams;

use crate::{Attachments, InputError};

/// The word that stands for stdin.
const STDIN: &str = "-";

/// A message as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words<'a> {
    /// The paths of `@path`, in order.
    pub files: Vec<&'a str>,
    /// The words before `-`; all of them where there is none.
    before: String,
    /// Those after it.
    after: Option<String>,
    /// Whether `-` comes before all words and files.
    leads: bool,
}

impl<'a> Words<'a> {
    /// Sorts words, in which `-` stands for stdin, and then `literal` ones, which are only words.
    ///
    /// # Errors
    /// When `-` comes twice: stdin ends once.
    pub fn plain(words: &'a [String], literal: &'a [String]) -> Result<Self, InputError> {
        Self::sorted(words, literal, |_| None)
    }

    /// As [`Words::plain`], and `@path` names a file.
    ///
    /// # Errors
    /// As there.
    pub fn with_files(words: &'a [String], literal: &'a [String]) -> Result<Self, InputError> {
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

    /// Whether `-` is among them: stdin is read even from a terminal.
    #[must_use]
    pub fn name_stdin(&self) -> bool {
        self.after.is_some()
    }

    /// The message. What is piped in stands where `-` does, else before all else; blank lines set it off. The text of files comes
    /// before the words.
    #[must_use]
    pub fn compose(&self, piped: &str, files: Attachments) -> PromptParams {
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
        PromptParams { message, images: files.images, ..PromptParams::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], literal: &[&str], piped: &str, expected: &str) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (words, literal) = (owned(words), owned(literal));
        let read = Words::with_files(&words, &literal).unwrap();
        let text = read.files.iter().map(|path| format!("<{path}>\n")).collect();
        let message = read.compose(piped, Attachments { text, images: Vec::new() }).message;
        assert_eq!(message, expected, "{words:?} {literal:?}");
    }

    #[test]
    fn a_blank_line_sets_off_what_is_piped_in() {
        check(&["Review", "this."], &[], "+last line", "+last line\n\nReview this.");
        check(&["Review"], &["-", "@x"], "in", "in\n\nReview - @x");
        check(&["Explain", "@a", "this.", "@b"], &[], "in", "in\n\n<a>\n<b>\nExplain this.");
        check(&["@a"], &[], "in", "in\n\n<a>\n");
        check(&[], &[], "in", "in");
        check(&["Hi"], &[], "", "Hi");
        check(&["@a", "Hi"], &[], "", "<a>\nHi");
        check(&[" "], &[], "in", "in");
    }

    #[test]
    fn a_dash_is_the_place_of_stdin() {
        check(&["-"], &[], "in", "in");
        check(&["-"], &[], "", "");
        check(&["-", "Why?"], &[], "in", "in\n\nWhy?");
        check(&["Look:", "-", "Why?"], &["-v"], "in", "Look:\n\nin\n\nWhy? -v");
        check(&["Look:", "-"], &[], "in", "Look:\n\nin");
        check(&["Look:", "-", "Why?"], &[], "", "Look:\n\nWhy?");
        check(&["@a", "-"], &[], "in", "<a>\n\nin");
        check(&["@a", "Look:", "-", "@b"], &[], "in", "<a>\n<b>\nLook:\n\nin");
        check(&["-", "@a", "Why?"], &[], "in", "in\n\n<a>\nWhy?");
        let twice = ["-".to_owned(), "x".to_owned(), "-".to_owned()];
        assert!(matches!(Words::plain(&twice, &[]), Err(InputError::StdinTwice)));
    }

    #[test]
    fn without_files_an_at_sign_is_a_word() {
        let words = ["@a".to_owned(), "b".to_owned()];
        let read = Words::plain(&words, &[]).unwrap();
        assert_eq!(read.compose("", Attachments::default()).message, "@a b");
        assert!(!read.name_stdin());
    }
}
