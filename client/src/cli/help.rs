//! The help of `agentctl` itself: verbs in groups, in the width and colours of the terminal.

use clap::{Command, builder::StyledStr};

use crate::render::{Screen, columns};

/// The verbs in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    ("Talk", &["chat", "prompt", "resume", "attach", "steer", "abort", "rpc", "http"]),
    (
        "Sessions",
        &["sessions", "history", "name", "tree", "fork", "export", "usage", "rm", "fsck", "bug-report"],
    ),
    ("Files and changes", &["diff", "undo", "redo", "artifact", "clean"]),
    ("Models and keys", &["models", "login", "logout", "auth"]),
    ("Daemon", &["up", "down", "status", "logs", "service", "watch", "top", "ps", "jobs"]),
    ("Tools and permissions", &["tools", "mcp", "policy"]),
    ("Extensions and packages", &["extensions", "install", "remove", "list", "update"]),
    ("Setup", &["doctor", "setup", "config", "completions", "man", "version"]),
];

/// The heading of verbs that are in no group.
const OTHERS: &str = "More";

/// The greatest width of a line.
const MOST: usize = 110;

/// The blanks before a verb, and between it and what it does.
const INDENT: usize = 2;

/// The widest verb beside which its text begins.
const VERB: usize = 19;

const BOLD: &str = "1";
const CYAN: &str = "36";

/// The definition of the command line, with the help of this terminal.
pub(crate) fn with_help(definition: Command) -> Command {
    let screen = Screen::of_stdout();
    let width = screen.width.unwrap_or(MOST).min(MOST);
    let help = text(&definition, screen, width);
    // In a pipe the lines of the verbs' help stay whole.
    let wrapped = if screen.is_terminal { width } else { 0 };
    definition.override_help(StyledStr::from(help)).term_width(wrapped)
}

fn text(definition: &Command, screen: Screen, width: usize) -> String {
    let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = wrapped(&about, 0, width);
    text.push('\n');
    text.push_str("New here? `agentctl doctor` says what is missing, and this asks a first question:\n");
    text.push_str("  agentctl prompt \"What is in this folder?\"\n\n");
    text.push_str(&format!("{} agentctl VERB [OPTIONS]\n", screen.paint(BOLD, "Usage:")));
    let mut verbs: Vec<&Command> = definition.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    for (heading, names) in GROUPS {
        let group: Vec<&Command> = names
            .iter()
            .filter_map(|name| verbs.iter().find(|verb| verb.get_name() == *name).copied())
            .collect();
        verbs.retain(|verb| !names.contains(&verb.get_name()));
        text.push_str(&section(heading, &group, screen, width));
    }
    text.push_str(&section(OTHERS, &verbs, screen, width));
    text.push_str(&format!("\n{}\n", screen.paint(BOLD, "Options:")));
    for (flags, what) in
        [("-h, --help", "Print this help"), ("-V, --version", "Print the version of agentctl")]
    {
        text.push_str(&line(flags, what, screen, width));
    }
    text.push_str("\n`agentctl VERB --help` has the flags of a verb, with examples and exit codes.\n");
    text
}

fn section(heading: &str, verbs: &[&Command], screen: Screen, width: usize) -> String {
    if verbs.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", screen.paint(BOLD, &format!("{heading}:")));
    for verb in verbs {
        let names: Vec<&str> = [verb.get_name()].into_iter().chain(verb.get_visible_aliases()).collect();
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        text.push_str(&line(&names.join(", "), &about, screen, width));
    }
    text
}

/// A verb, and what it does beside it; below it where there is no room.
fn line(names: &str, about: &str, screen: Screen, width: usize) -> String {
    let left = INDENT + VERB + INDENT;
    let blanks = VERB.saturating_sub(columns(names)) + INDENT;
    let about = wrapped(about, left, width);
    let begin = format!("{}{}", " ".repeat(INDENT), screen.paint(CYAN, names));
    if columns(names) > VERB {
        return format!("{begin}\n{}{about}", " ".repeat(left));
    }
    format!("{begin}{}{about}", " ".repeat(blanks))
}

/// The text in lines that begin in column `left`, but for the first one, which stands there already.
fn wrapped(text: &str, left: usize, width: usize) -> String {
    let mut lines = String::new();
    let mut used = left;
    for word in text.split_whitespace() {
        let begins = used == left;
        if !begins && used + 1 + columns(word) > width {
            lines.push_str(&format!("\n{}", " ".repeat(left)));
            used = left;
        } else if !begins {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += columns(word);
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_verb_is_in_one_group() {
        let definition = Cli::command();
        let mut verbs: Vec<&str> =
            definition.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let definition = Cli::command();
        for width in 50..=200 {
            let text = text(&definition, Screen::default(), width);
            for line in text.lines() {
                assert!(columns(line) <= width.max(84), "{width}: {line:?}");
            }
        }
        let narrow = text(&definition, Screen::default(), 50);
        assert!(
            narrow.contains(
                "\n  sessions, ls         List conversations, the\n                       last used first"
            ),
            "{narrow}"
        );
    }

    #[test]
    fn colours_are_for_terminals() {
        let definition = Cli::command();
        let plain = text(&definition, Screen::default(), 100);
        assert!(!plain.contains('\u{1b}'));
        let coloured = text(&definition, Screen { colour: true, ..Screen::default() }, 100);
        assert!(coloured.contains("\u{1b}[1mTalk:\u{1b}[0m\n  \u{1b}[36mchat\u{1b}[0m"), "{coloured}");
    }
}
