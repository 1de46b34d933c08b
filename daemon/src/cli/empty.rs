//! What an empty value of a flag means. Scripts write `--ssh "$HOST"`, and the variable may not be set: where that would mean
//! something wider than what was to be written there, it is refused.

/// What an empty value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnEmpty {
    /// It is refused: without the flag, work would be done elsewhere, for somebody else, or with more.
    Refused,
    /// It is refused, but where the reference's ways are asked for (`--compat pi`, or its name): there it counts as not given.
    RefusedByUs,
    /// It counts as not given, as in the reference: then the user's own default counts, which is no wider.
    NotGiven,
    /// It is a value as others are, of which nothing becomes wider: an empty list is none.
    Value,
}

use OnEmpty::{NotGiven, Refused, RefusedByUs, Value};

/// Every flag that takes a value.
pub(super) const ON_EMPTY: &[(&[&str], OnEmpty)] = &[
    // Another machine, daemon or folder than the one that was meant.
    (&["--ssh"], Refused),
    (&["--socket"], Refused),
    (&["--session-dir"], RefusedByUs),
    (&["--record"], Refused),
    (&["--replay"], Refused),
    (&["--export"], Refused),
    // Another session.
    (&["--session"], RefusedByUs),
    (&["--session-id"], Refused),
    (&["--fork"], RefusedByUs),
    (&["--name", "-n"], Refused),
    (&["--prefer"], NotGiven),
    // Another recipient, or another's account.
    (&["--provider"], RefusedByUs),
    (&["--api-key"], RefusedByUs),
    (&["--models"], RefusedByUs),
    (&["--fallback-models"], Value),
    (&["--model"], NotGiven),
    // More tools, or all that lies in the folder.
    (&["--tools", "-t"], Value),
    (&["--exclude-tools", "-xt"], RefusedByUs),
    (&["--skill"], Refused),
    (&["--prompt-template"], Refused),
    (&["--system-prompt"], NotGiven),
    (&["--append-system-prompt"], NotGiven),
    // One of a few words.
    (&["--mode"], Refused),
    (&["--compat"], Refused),
    (&["--on-eof"], Refused),
    (&["--replay-match"], Refused),
    (&["--thinking"], Value),
    (&["--list-models"], Value),
    // Without any effect.
    (&["--extension", "-e"], Value),
    (&["--theme"], Value),
    (&["--use-theme"], Value),
    (&["--tui-mode"], Value),
];

/// What an empty value of a flag does. One that is not in the table takes none.
pub(super) fn on_empty(flag: &str) -> OnEmpty {
    ON_EMPTY.iter().find(|(names, _)| names.contains(&flag)).map_or(Refused, |(_, does)| *does)
}

/// What to say to an empty value.
pub(super) fn refusal(flag: &str) -> String {
    format!("Error: {flag} is empty (a variable that is not set?): give it a value, or leave it out.")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::cli::{known::NAMES, parse};

    fn said(program: &str, args: &[&str]) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let parsed = parse(program, &args, Path::new("/p"), [("HOME", "/h")].into_iter().collect());
        parsed.map(|invocation| format!("{invocation:?}"))
    }

    /// A flag that is new has to say what an empty value of it means.
    #[test]
    fn every_flag_with_a_value_is_decided() {
        let takes = |flag: &&&str| {
            said("agentd", &["--stdio", flag]).is_err_and(|error| {
                error.contains("needs a value")
                    || error.contains("needs a session file")
                    || error.contains("requires text")
            })
        };
        let taking: BTreeSet<&str> = NAMES.iter().filter(takes).copied().chain(["--list-models"]).collect();
        let all: Vec<&str> = ON_EMPTY.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), taking);
    }

    #[test]
    fn empty_values_do_what_the_table_says() {
        let plain = said("agentd", &["--stdio"]).unwrap();
        let as_reference = said("agentd", &["--stdio", "--compat", "pi"]).unwrap();
        for (names, does) in ON_EMPTY {
            for flag in *names {
                let value = said("agentd", &["--stdio", flag, ""]);
                let inline = said("agentd", &["--stdio", &format!("{flag}=")]);
                let compat = said("agentd", &["--stdio", flag, "", "--compat", "pi"]);
                match does {
                    Refused | RefusedByUs => assert!(value.is_err(), "{flag}"),
                    NotGiven => assert_eq!(value.as_ref(), Ok(&plain), "{flag}"),
                    Value => assert!(value.is_ok(), "{flag}: {value:?}"),
                }
                match does {
                    Refused => assert!(compat.is_err(), "{flag}"),
                    RefusedByUs => assert!(compat.is_ok(), "{flag}: {compat:?}"),
                    NotGiven => assert_eq!(compat.as_ref(), Ok(&as_reference), "{flag}"),
                    Value => assert!(compat.is_ok(), "{flag}: {compat:?}"),
                }
                if flag.starts_with("--") {
                    assert_eq!(inline.is_ok(), value.is_ok(), "{flag}=");
                }
            }
        }
        let error = said("agentd", &["--stdio", "--ssh", ""]).unwrap_err();
        assert_eq!(
            error,
            "Error: --ssh is empty (a variable that is not set?): give it a value, or leave it out."
        );
    }
}
