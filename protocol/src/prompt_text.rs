//! The text of a prompt: words that a person typed, beside the blocks of `@file` arguments and of piped input.
//!
//! Clients write the blocks, the daemon looks for the words: a list of sessions is of use only if it shows the question.

/// The first line of a block of piped input.
const STDIN_BEGIN: &str = "<stdin>\n";

/// The last line of a block of piped input.
const STDIN_END: &str = "\n</stdin>";

/// How the first line of a block of a file begins.
const FILE_BEGIN: &str = "<file name=\"";

/// The last line of a block of a file.
const FILE_END: &str = "</file>";

/// Piped input as a block that stands beside typed words: `<stdin>`, the text, `</stdin>`, without a line feed at the end.
#[must_use]
pub fn stdin_block(piped: &str) -> String {
    format!("{STDIN_BEGIN}{piped}{STDIN_END}")
}

/// The words of a prompt without its blocks. A prompt of blocks alone gives the piped text, else the names of the files as `@name`.
///
/// A block is taken to end at the last line that can end it, so that no part of a file or of a diff is mistaken for words.
#[must_use]
pub fn typed_words(prompt: &str) -> String {
    let (before, piped, after) = parts(prompt);
    let has_files = files(prompt).next().is_some();
    let words = [before, after].map(|text| if has_files { behind_files(text) } else { text }.trim());
    let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
    match (words.is_empty(), piped.map(str::trim).filter(|text| !text.is_empty())) {
        (false, _) => words.join(" "),
        (true, Some(piped)) => piped.to_owned(),
        (true, None) if has_files => files(prompt).collect::<Vec<_>>().join(" "),
        (true, None) => prompt.trim().to_owned(),
    }
}

/// The text before the block of piped input, the block's content, and the text after it.
fn parts(prompt: &str) -> (&str, Option<&str>, &str) {
    let begin = prompt
        .match_indices(STDIN_BEGIN)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || prompt.as_bytes()[at - 1] == b'\n');
    let found = begin.and_then(|begin| {
        // The line feed of the first line may be that of the last one: an empty block.
        let rest = begin + STDIN_BEGIN.len() - 1;
        let mut ends = prompt[rest..].rmatch_indices(STDIN_END).map(|(at, _)| rest + at);
        let end = ends.find(|at| ends_line(prompt, at + STDIN_END.len()))?;
        Some((begin, end))
    });
    match found {
        Some((begin, end)) => {
            let piped = prompt.get(begin + STDIN_BEGIN.len()..end).unwrap_or_default();
            (&prompt[..begin], Some(piped), &prompt[end + STDIN_END.len()..])
        }
        None => (prompt, None, ""),
    }
}

/// The text after the last block of a file.
fn behind_files(text: &str) -> &str {
    let mut ends = text.rmatch_indices(FILE_END).map(|(at, _)| at + FILE_END.len());
    ends.find(|end| ends_line(text, *end)).map_or(text, |end| &text[end..])
}

fn ends_line(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_none_or(|byte| *byte == b'\n')
}

/// The names of the files, each after `@` and without its folder.
fn files(prompt: &str) -> impl Iterator<Item = String> {
    prompt.lines().filter_map(|line| {
        let (path, _) = line.strip_prefix(FILE_BEGIN)?.split_once("\">")?;
        Some(format!("@{}", path.rsplit('/').next().unwrap_or(path)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "<file name=\"/p/a.rs\">\nfn a() {}\n\n</file>\n";

    #[test]
    fn the_question_is_told_from_what_stands_beside_it() {
        let diff = stdin_block("diff --git a/x b/x\n+last line");
        for (prompt, expected) in [
            ("Why?".to_owned(), "Why?"),
            (format!("{diff}\n\nReview this."), "Review this."),
            (format!("{FILE}Explain it."), "Explain it."),
            (format!("{diff}\n\n{FILE}{FILE}Explain\nboth."), "Explain\nboth."),
            (format!("{FILE}Look:\n\n{diff}\n\nIs it safe?"), "Look: Is it safe?"),
            (format!("Look:\n\n{diff}"), "Look:"),
            (diff, "diff --git a/x b/x\n+last line"),
            (format!("{}\n\nWhy?", stdin_block("")), "Why?"),
            (FILE.to_owned(), "@a.rs"),
            ("<file name=\"/p/i.png\"></file>\n<file name=\"b\"></file>\n".to_owned(), "@i.png @b"),
            ("<file name=\"/p/i.png\"></file>\nWhat is this?".to_owned(), "What is this?"),
            // Words of a person that only look like blocks.
            ("What does </file> mean?".to_owned(), "What does </file> mean?"),
            ("Parse <stdin> for me".to_owned(), "Parse <stdin> for me"),
            ("<stdin>\nwithout an end".to_owned(), "<stdin>\nwithout an end"),
            (String::new(), ""),
        ] {
            assert_eq!(typed_words(&prompt), expected, "{prompt:?}");
        }
    }

    #[test]
    fn a_text_that_quotes_the_blocks_does_not_end_them() {
        let quoted = "<file name=\"x\">\n</file>\n<stdin>\na\n</stdin>\nmore";
        let prompt = format!("{}\n\n{FILE}Why?", stdin_block(quoted));
        assert_eq!(typed_words(&prompt), "Why?");
        let file = format!("<file name=\"/p/a.rs\">\n{quoted}\n</file>\n");
        assert_eq!(typed_words(&format!("{file}Why?")), "Why?");
    }

    proptest! {
        #[test]
        fn any_piped_text_leaves_the_words(piped in "(?s).{0,200}", words in "[a-z ?]{0,30}[a-z?]") {
            let prompt = format!("{}\n\n{words}", stdin_block(&piped));
            prop_assert_eq!(typed_words(&prompt), words.trim());
        }

        #[test]
        fn nothing_panics(prompt in "(?s)(<stdin>\n|\n</stdin>|</file>\n?|<file name=\"|\">|.|\n){0,20}") {
            prop_assert!(typed_words(&prompt).len() <= prompt.len());
        }
    }
}
