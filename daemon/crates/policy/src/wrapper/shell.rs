//! Shells that are given a text to run.

use super::started::{Inner, NOT_KNOWN, Wrapped, unknown};
use crate::shell::Word;

const READS_OTHERWISE: &str = "a shell that is not bash reads it in another way";

/// A shell with a text to run. Options stand before and behind the `-c`, and the text is the first word that is none.
pub(super) fn shell(words: &[Word]) -> Wrapped {
    let name = words.first().and_then(Word::text).and_then(|name| name.rsplit('/').next());
    let (mut at, mut has_text, mut asks) = (1, false, None);
    while let Some(word) = words.get(at) {
        let Some(text) = word.text() else { return unknown() };
        let letters = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty());
        let Some(letters) = letters else {
            // A lone `-` ends the options, as `--` does.
            at += usize::from(text == "-");
            break;
        };
        at += 1;
        if letters == "-" {
            break;
        }
        if letters.starts_with('-') {
            asks = NOT_KNOWN;
            at += usize::from(matches!(letters, "-rcfile" | "-init-file"));
            continue;
        }
        has_text |= letters.contains('c') && text.starts_with('-');
        // What these do is known; others change how the text is read, or what is read before it.
        if text.starts_with('+') || !letters.chars().all(|letter| "eulcxvo".contains(letter)) {
            asks = NOT_KNOWN;
        }
        for _ in letters.chars().filter(|letter| matches!(letter, 'o' | 'O')) {
            if !matches!(words.get(at).and_then(Word::text), Some("pipefail" | "errexit" | "nounset")) {
                asks = NOT_KNOWN;
            }
            at += 1;
        }
    }
    // What stands behind the text is its `$0`, `$1` and so on, which are dynamic there anyway.
    match words.get(at).and_then(Word::text) {
        Some(text) if has_text => {
            let asks =
                asks.or_else(|| (name != Some("bash") && is_bashs_own(text)).then_some(READS_OTHERWISE));
            Wrapped { inner: vec![Inner::Text(text.to_owned())], asks }
        }
        _ => unknown(),
    }
}

/// Whether bash reads a text in another way than a plain POSIX shell, which `sh` is on many systems: there `ls &> x rm` is `ls &` and
/// `> x rm`, and `[[ a || rm ]]` two commands.
fn is_bashs_own(text: &str) -> bool {
    const SIGNS: [&str; 9] = ["$'", "$\"", "&>", "|&", "[[", "<(", ">(", "((", "<<<"];
    // Quotes within expansions are not the same everywhere.
    let has_quoted_expansion = text.contains("${") && text.contains(['\'', '\\']);
    has_quoted_expansion || SIGNS.into_iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[&str]) -> (Option<Inner>, bool) {
        let words: Vec<Word> = words.iter().map(|word| Word::of(word)).collect();
        let Wrapped { inner, asks } = shell(&words);
        (inner.into_iter().next(), asks.is_some())
    }

    #[test]
    fn the_text_is_the_first_word_that_is_no_option() {
        let text = Some(Inner::Text("rm x".to_owned()));
        for words in [
            &["bash", "-c", "rm x"][..],
            &["bash", "-c", "-x", "rm x"],
            &["sh", "-c", "--", "rm x"],
            &["sh", "-c", "-", "rm x"],
            &["bash", "-eo", "pipefail", "-c", "rm x", "name", "a"],
            &["bash", "-co", "pipefail", "rm x"],
        ] {
            assert_eq!(found(words), (text.clone(), false), "{words:?}");
        }
        for words in [
            &["bash", "--norc", "-c", "rm x"][..],
            &["bash", "--rcfile", "f", "-c", "rm x"],
            &["bash", "-ic", "rm x"],
            &["bash", "-c", "+x", "rm x"],
            &["bash", "-O", "extglob", "-c", "rm x"],
        ] {
            assert_eq!(found(words), (text.clone(), true), "{words:?}");
        }
        for words in [&["sh"][..], &["sh", "x"], &["sh", "-c"], &["sh", "-", "-c", "x"], &["sh", "-s", "x"]] {
            assert_eq!(found(words), (None, true), "{words:?}");
        }
    }

    #[test]
    fn what_bash_alone_reads_so() {
        for text in ["ls &> x rm", "[[ a || rm ]]", "echo $'\\'; rm x; #'", "echo \"${x#'}'; rm #'}\""] {
            assert!(found(&["sh", "-c", text]).1 && !found(&["bash", "-c", text]).1, "{text}");
        }
        assert!(!found(&["sh", "-c", "ls > x 2>&1 && echo \"${x:-y}\" | cat"]).1);
    }
}
