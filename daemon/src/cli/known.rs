//! The flags by name, and which one a mistyped name may have meant.

/// Every flag's names.
pub(super) const NAMES: &[&str] = &[
    "--stdio",
    "--mode",
    "--print",
    "-p",
    "--shared",
    "--socket",
    "--detached",
    "--compat",
    "--on-eof",
    "--ready",
    "--record",
    "--replay",
    "--replay-match",
    "--replay-timing",
    "--help",
    "-h",
    "--version",
    "-v",
    "--list-models",
    "--cumulative-updates",
    "--continue",
    "-c",
    "--resume",
    "-r",
    "--session",
    "--session-id",
    "--prefer",
    "--session-dir",
    "--fork",
    "--no-session",
    "--name",
    "-n",
    "--provider",
    "--model",
    "--demo",
    "--models",
    "--fallback-models",
    "--api-key",
    "--thinking",
    "--system-prompt",
    "--append-system-prompt",
    "--tools",
    "-t",
    "--exclude-tools",
    "-xt",
    "--no-tools",
    "-nt",
    "--no-builtin-tools",
    "-nbt",
    "--ssh",
    "--no-context-files",
    "-nc",
    "--approve",
    "-a",
    "--no-approve",
    "-na",
    "--extension",
    "-e",
    "--no-extensions",
    "-ne",
    "--skill",
    "--no-skills",
    "-ns",
    "--prompt-template",
    "--no-prompt-templates",
    "-np",
    "--theme",
    "--no-themes",
    "--use-theme",
    "--tui-mode",
    "--no-mcp",
    "--offline",
    "--verbose",
    "--export",
    "--bug-report",
    "--fsck",
];

/// More changes than that make another word.
const MOST_CHANGES: usize = 2;

/// What to say to a flag that there is not.
pub(super) fn unknown(flag: &str) -> String {
    let meant = nearest(flag).map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
    format!("Error: Unknown option: {flag}.{meant} `agentd --help` lists the flags.")
}

/// The long flag that is closest to a mistyped one, if one is close.
fn nearest(flag: &str) -> Option<&'static str> {
    if !flag.starts_with("--") {
        return None;
    }
    let long = NAMES.iter().filter(|name| name.starts_with("--"));
    // Of two that are as close, the one of the same length: neighbours are swapped more often than keys are missed.
    let distance = |name: &&&str| (changes(flag, name), name.len().abs_diff(flag.len()));
    let name = *long.min_by_key(distance)?;
    // A short word that is changed twice can be anything.
    (changes(flag, name) <= MOST_CHANGES.min(name.len() / 3)).then_some(name)
}

/// How many characters have to be added, removed, replaced or swapped with their neighbour.
fn changes(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Row i: the changes that make each beginning of `b` of the first i characters of `a`.
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
    use super::*;

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
