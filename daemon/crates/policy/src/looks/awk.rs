//! `awk` with programs that print, and neither write files nor start others.

use crate::shell::{Word, WordValue};

/// Whether `awk` with these arguments only looks.
pub(super) fn only_looks(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let program = loop {
        let Some(text) = words.next().and_then(Word::text) else { return false };
        match text {
            "--" => {
                let Some(program) = words.next().and_then(Word::text) else { return false };
                break program;
            }
            "-F" | "-v" => {
                if words.next().and_then(Word::text).is_none() {
                    return false;
                }
            }
            _ if text.len() > 2 && (text.starts_with("-F") || text.starts_with("-v")) => {}
            _ if text.starts_with('-') => return false,
            _ => break text,
        }
    };
    // Some versions take `/inet/tcp/…` for a connection, and may look for options behind the program.
    let is_file = |word: &Word| match &word.value {
        WordValue::Static(text) => !text.starts_with('-') && !text.starts_with("/inet"),
        WordValue::Glob { prefix } => !prefix.is_empty() && !prefix.starts_with('-'),
        WordValue::Pipe => true,
        WordValue::One | WordValue::Dynamic => false,
    };
    is_harmless(program) && words.all(is_file)
}

/// Whether nothing in a program can be a file to write or to read, a pipe or a call of another program. The text is not parsed: where
/// words of this kind stand anywhere, it may be such a program.
fn is_harmless(program: &str) -> bool {
    const WORDS: [&str; 7] = ["system", "getline", "ARGV", "ARGC", "SYMTAB", "close", "fflush"];
    // A continued line may be in the middle of a word.
    if program.contains('@')
        || program.contains("\\\n")
        || WORDS.into_iter().any(|word| program.contains(word))
    {
        return false;
    }
    // Before the first block, these compare; in one, they may write what is printed.
    let (_, blocks) = program.split_at(program.find('{').unwrap_or(program.len()));
    let blocks = blocks.replace("||", "").replace(">=", "");
    !blocks.contains(['|', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(arguments: &[&str]) -> bool {
        only_looks(&arguments.iter().map(|word| Word::of(word)).collect::<Vec<_>>())
    }

    #[test]
    fn programs() {
        for arguments in [
            &["{print $1}", "f"][..],
            &["-F:", "{print $1, $NF}", "/etc/passwd"],
            &["-F", ",", "-v", "n=3", "NR==n", "f"],
            &["NR>=10 && NR<=20"],
            &["NR>5 {print}"],
            &["/a|b/ {n++} END {print n}"],
            &["{s+=$1} END {printf \"%d\\n\", s}"],
            &["--", "{print}"],
        ] {
            assert!(is(arguments), "{arguments:?}");
        }
        for arguments in [
            &["BEGIN{system(\"id\")}"][..],
            &["{print > \"out\"}"],
            &["{print >> \"out\"}"],
            &["{print | \"sh\"}"],
            &["{print || 1 | \"sh\"}"],
            &["{ \"id\" | getline x }"],
            &["\"id\" | getline"],
            &["@load \"x\"; {print}"],
            &["{f = \"sys\" \"tem\"; @f(\"id\")}"],
            &["{sys\\\ntem(\"id\")}"],
            &["BEGIN{ARGV[1]=\"/etc/shadow\"}"],
            &["-f", "x"],
            &["-i", "inplace", "{print}"],
            &["-l", "x", "{print}"],
            &["-e", "{print}"],
            &["--exec", "x"],
            &["{print}", "/inet/tcp/0/h/80"],
            &["{print}", "-f", "x"],
            &[],
        ] {
            assert!(!is(arguments), "{arguments:?}");
        }
        assert!(!only_looks(&[Word::dynamic("$X")]));
        assert!(!only_looks(&[Word::of("{print}"), Word::dynamic("$X")]));
    }
}
