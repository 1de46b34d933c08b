//! The law of commands that are read as words; see `fuzz.rs` of the crate.

use super::intercept::words::simple;

/// A command that is read as plain words is the one that a shell would run: quoted anew, it reads as the same words.
pub(crate) fn shell_words(input: &[u8]) {
    let command = String::from_utf8_lossy(input);
    let Some(read) = simple(&command) else { return };
    assert!(!read.words.is_empty() && !read.words[0].is_empty());
    let quote = |word: &String| format!("'{}'", word.replace('\'', "'\"'\"'"));
    let mut again: Vec<String> = read.words.iter().map(quote).collect();
    if let Some(output) = &read.output {
        again.extend([">".to_owned(), quote(output)]);
    }
    let again = again.join(" ");
    let Some(same) = simple(&again) else { panic!("{again} of {command}") };
    assert_eq!((&same.words, &same.output), (&read.words, &read.output), "{again} of {command}");
}
