//! Every flag in one table: its names, the field of `open_session` with the same meaning, its effect on a session that is open
//! already, and the effect of an empty value.

/// A flag.
pub(super) struct FlagRow {
    /// All its names.
    pub(super) names: &'static [&'static str],
    /// The field of `open_session` that means the same.
    field: Option<&'static str>,
    /// Its effect where `open_session` finds the session open.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "every new flag has to name its effect; tests compare")
    )]
    on_open: OnOpen,
    /// The effect of an empty value; `None` for a flag without a value.
    on_empty: Option<OnEmpty>,
}

/// The effect of a flag where `open_session` finds a session that the daemon has open, in memory or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnOpen {
    /// It tells which session is meant, as always.
    Which,
    /// It is about the client or its connection, and works as always.
    OfClient,
    /// A difference is applied for all clients, as by the command for it.
    Applied,
    /// It only works when a session is opened: a difference is refused.
    Compared,
    /// No flag of a session that a client of the daemon opens, or one without effect: always refused, or always ignored.
    NotOfSession,
}

/// The effect of an empty value. Scripts write `--ssh "$HOST"`, and the variable may not be set: where an empty value would mean
/// something wider than the script intended, it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnEmpty {
    /// It is refused: without the flag, work would be done elsewhere, for another account, or with more tools.
    Refused,
    /// It is refused, but counts as not given where pi's behaviour is asked for (`--compat pi`, or the name `pi`).
    RefusedByUs,
    /// It counts as not given, as in pi: the user's own default then counts, which is no wider.
    NotGiven,
    /// It is a value like others, which widens nothing: an empty list is none.
    Value,
}

use OnEmpty::{NotGiven, Refused, RefusedByUs, Value};
use OnOpen::{Applied, Compared, NotOfSession, OfClient, Which};

/// Every flag.
#[rustfmt::skip]
pub(super) const FLAGS: &[FlagRow] = &[
    FlagRow { names: &["--continue", "-c"], field: Some("continue"), on_open: Which, on_empty: None },
    FlagRow { names: &["--prefer"], field: None, on_open: Which, on_empty: Some(NotGiven) },
    FlagRow { names: &["--session"], field: Some("path"), on_open: Which, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--session-id"], field: Some("sessionId"), on_open: Which, on_empty: Some(Refused) },
    FlagRow { names: &["--fork"], field: None, on_open: Which, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--resume", "-r"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--cumulative-updates"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--on-eof"], field: None, on_open: OfClient, on_empty: Some(Refused) },
    FlagRow { names: &["--ready"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--offline"], field: Some("env"), on_open: OfClient, on_empty: None },
    FlagRow { names: &["--name", "-n"], field: Some("name"), on_open: Applied, on_empty: Some(Refused) },
    FlagRow { names: &["--provider"], field: None, on_open: Applied, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--model"], field: Some("model"), on_open: Applied, on_empty: Some(NotGiven) },
    FlagRow { names: &["--demo"], field: Some("model"), on_open: Applied, on_empty: None },
    FlagRow { names: &["--thinking"], field: Some("thinkingLevel"), on_open: Applied, on_empty: Some(Value) },
    FlagRow { names: &["--tools", "-t"], field: Some("tools"), on_open: Applied, on_empty: Some(Value) },
    FlagRow { names: &["--exclude-tools", "-xt"], field: None, on_open: Applied, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--no-tools", "-nt"], field: None, on_open: Applied, on_empty: None },
    FlagRow { names: &["--no-builtin-tools", "-nbt"], field: None, on_open: Applied, on_empty: None },
    FlagRow { names: &["--todo"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--syntax"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--task"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--async"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--lsp"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--web"], field: None, on_open: OfClient, on_empty: None },
    FlagRow { names: &["--plan-mode"], field: None, on_open: Applied, on_empty: None },
    FlagRow { names: &["--no-session"], field: Some("ephemeral"), on_open: Compared, on_empty: None },
    FlagRow { names: &["--session-dir"], field: Some("sessionDir"), on_open: Compared, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--models"], field: None, on_open: Compared, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--fallback-models"], field: None, on_open: Compared, on_empty: Some(Value) },
    FlagRow { names: &["--api-key"], field: None, on_open: Compared, on_empty: Some(RefusedByUs) },
    FlagRow { names: &["--system-prompt"], field: Some("systemPrompt"), on_open: Compared, on_empty: Some(NotGiven) },
    FlagRow { names: &["--append-system-prompt"], field: Some("appendSystemPrompt"), on_open: Compared, on_empty: Some(NotGiven) },
    FlagRow { names: &["--ssh"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--no-context-files", "-nc"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--no-mcp"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--no-ui"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--mcp-on-demand"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--skill"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--no-skills", "-ns"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--prompt-template"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--no-prompt-templates", "-np"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--extension", "-e"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--no-extensions", "-ne"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--sandbox"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--network"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--writable-root"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--undo"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--approve", "-a"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--no-approve", "-na"], field: None, on_open: Compared, on_empty: None },
    FlagRow { names: &["--permissions"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--permission-rules"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--max-cost"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--max-tokens"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--max-turns"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--max-tool-calls"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--timeout"], field: None, on_open: Compared, on_empty: Some(Refused) },
    FlagRow { names: &["--stdio"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--mode"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--print", "-p"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--shared"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--socket"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--detached"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--compat"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--record"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--replay"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--replay-match"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--replay-timing"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--help", "-h"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--version", "-v"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--list-models"], field: None, on_open: NotOfSession, on_empty: Some(Value) },
    FlagRow { names: &["--export"], field: None, on_open: NotOfSession, on_empty: Some(Refused) },
    FlagRow { names: &["--bug-report"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--fsck"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--policy-check"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--mcp-edit"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--packages"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--usage"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--theme"], field: None, on_open: NotOfSession, on_empty: Some(Value) },
    FlagRow { names: &["--no-themes"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--no-title"], field: None, on_open: NotOfSession, on_empty: None },
    FlagRow { names: &["--use-theme"], field: None, on_open: NotOfSession, on_empty: Some(Value) },
    FlagRow { names: &["--tui-mode"], field: None, on_open: NotOfSession, on_empty: Some(Value) },
    FlagRow { names: &["--verbose"], field: None, on_open: NotOfSession, on_empty: None },
];

impl FlagRow {
    /// Whether a value follows it.
    pub(super) fn takes_value(&self) -> bool {
        self.on_empty.is_some()
    }
}

/// The names of all flags.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FLAGS.iter().flat_map(|row| row.names.iter().copied())
}

/// Whether a flag is one of agentd's.
pub(super) fn is_known(flag: &str) -> bool {
    names().any(|name| name == flag)
}

/// The field of `open_session` that means the same as a flag.
#[must_use]
pub fn field_of(flag: &str) -> Option<&'static str> {
    FLAGS.iter().find(|row| row.names.contains(&flag)).and_then(|row| row.field)
}

/// The effect of an empty value of a flag. A flag without one in the table refuses it.
pub(super) fn on_empty(flag: &str) -> OnEmpty {
    FLAGS.iter().find(|row| row.names.contains(&flag)).and_then(|row| row.on_empty).unwrap_or(Refused)
}

/// The error for an empty value.
pub(super) fn empty_value(flag: &str) -> String {
    format!("Error: {flag} is empty (a variable that is not set?): give it a value, or leave it out.")
}

/// A name with more changes than this is another word.
const MAX_CHANGES: usize = 2;

/// The error for an unknown flag.
pub(super) fn unknown(flag: &str) -> String {
    let meant = nearest(flag).map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
    format!("Unknown option: {flag}.{meant} `agentd --help` lists the flags.")
}

/// Pure. The long flag that is closest to a mistyped one, if one is close.
fn nearest(flag: &str) -> Option<&'static str> {
    if !flag.starts_with("--") {
        return None;
    }
    let long = names().filter(|name| name.starts_with("--"));
    // Of two equally close names the one of the same length: letters are swapped more often than left out.
    let distance = |name: &&str| (changes(flag, name), name.len().abs_diff(flag.len()));
    let name = long.min_by_key(distance)?;
    // Two changes of a short word can mean anything.
    (changes(flag, name) <= MAX_CHANGES.min(name.len() / 3)).then_some(name)
}

/// Pure. How many characters have to be added, removed, replaced or swapped with their neighbour.
fn changes(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Row i: the changes from the first i characters of `a` to each beginning of `b`.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::cli::parse;

    #[test]
    fn every_name_is_in_the_table_once() {
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
    }

    #[test]
    fn only_flags_of_a_session_have_a_field() {
        for row in FLAGS.iter().filter(|row| row.on_open == NotOfSession) {
            assert_eq!(row.field, None, "{:?}", row.names);
        }
    }

    #[test]
    fn fields_are_those_of_the_command() {
        let known = agentd_protocol::daemon::OpenSessionParams {
            session_dir: Some(String::new()),
            path: Some(String::new()),
            session_id: Some(String::new()),
            continue_last: Some(true),
            ephemeral: Some(true),
            name: Some(String::new()),
            model: Some(String::new()),
            thinking_level: Some(agentd_protocol::model::ThinkingLevel::Off),
            tools: Some(Vec::new()),
            system_prompt: Some(String::new()),
            append_system_prompt: Some(String::new()),
            env: Some(std::collections::BTreeMap::new().into_iter().collect()),
            ..agentd_protocol::daemon::OpenSessionParams::default()
        };
        let known = serde_json::to_value(known).unwrap();
        for field in FLAGS.iter().filter_map(|row| row.field) {
            assert!(known.get(field).is_some(), "{field}");
        }
    }

    fn said(program: &str, args: &[&str]) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let parsed = parse(program, &args, Path::new("/p"), [("HOME", "/h")].into_iter().collect());
        parsed.map(|invocation| format!("{invocation:?}"))
    }

    /// A new flag has to name the effect of an empty value.
    #[test]
    fn every_flag_with_a_value_is_decided() {
        let takes = |flag: &&str| {
            said("agentd", &["--stdio", flag]).is_err_and(|error| {
                error.contains("needs a value")
                    || error.contains("needs a session file")
                    || error.contains("requires text")
            })
        };
        let taking: BTreeSet<&str> = names().filter(takes).chain(["--list-models"]).collect();
        let decided = FLAGS.iter().filter(|row| row.on_empty.is_some());
        assert_eq!(decided.flat_map(|row| row.names.iter().copied()).collect::<BTreeSet<_>>(), taking);
    }

    #[test]
    fn empty_values_do_what_the_table_says() {
        let plain = said("agentd", &["--stdio"]).unwrap();
        let as_pi = said("agentd", &["--stdio", "--compat", "pi"]).unwrap();
        for row in FLAGS {
            let Some(effect) = row.on_empty else { continue };
            for flag in row.names {
                let value = said("agentd", &["--stdio", flag, ""]);
                let inline = said("agentd", &["--stdio", &format!("{flag}=")]);
                let compat = said("agentd", &["--stdio", flag, "", "--compat", "pi"]);
                match effect {
                    Refused | RefusedByUs => assert!(value.is_err(), "{flag}"),
                    NotGiven => assert_eq!(value.as_ref(), Ok(&plain), "{flag}"),
                    Value => assert!(value.is_ok(), "{flag}: {value:?}"),
                }
                match effect {
                    Refused => assert!(compat.is_err(), "{flag}"),
                    RefusedByUs => assert!(compat.is_ok(), "{flag}: {compat:?}"),
                    NotGiven => assert_eq!(compat.as_ref(), Ok(&as_pi), "{flag}"),
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

    #[test]
    fn a_slip_is_recognised() {
        let check = |flag: &str, meant: Option<&str>| assert_eq!(nearest(flag), meant, "{flag}");
        check("--modle", Some("--model"));
        check("--session_id", Some("--session-id"));
        check("--continu", Some("--continue"));
        check("--print-all", None);
        check("--plan", None);
        check("-q", None);
    }
}
