//! `agentctl man`: manual pages, generated from the command line's definition.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::{
    cli::{Cli, ManOptions},
    exit::{Exit, Fault, conclude},
    output,
};

pub(crate) fn run(options: &ManOptions) -> Exit {
    let done = match &options.out {
        Some(folder) => write_all(folder),
        None => find(&options.verb).and_then(|command| {
            let page = page(command).map_err(|error| {
                Fault::new(Exit::Failed, format!("agentctl: the page cannot be made: {error}"))
            })?;
            output::print(&page)
        }),
    };
    conclude(done)
}

/// All commands with their subcommands, `agentctl` first, by full names such as `agentctl-setup-local`.
fn commands() -> Vec<Command> {
    // `help` gets no page: `--help` and these pages replace it.
    let mut all = Cli::command().disable_help_subcommand(true);
    all.build();
    let mut commands = vec![all];
    let mut at = 0;
    while at < commands.len() {
        let below: Vec<Command> =
            commands[at].get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
        commands.extend(below);
        at += 1;
    }
    commands
}

fn full_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn find(verb: &[String]) -> Result<Command, Fault> {
    let name = ["agentctl"].into_iter().chain(verb.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
    commands().into_iter().find(|command| full_name(command) == name).ok_or_else(|| {
        let text = format!("Error: there is no verb \"{}\". `agentctl --help` lists them.", verb.join(" "));
        Fault::usage(text)
    })
}

fn write_all(folder: &Path) -> Result<Exit, Fault> {
    let failed = |path: &Path, error: io::Error| {
        Fault::new(Exit::Failed, format!("agentctl: cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for command in commands() {
        let path = folder.join(format!("{}.1", full_name(&command)));
        let page = page(command).map_err(|error| failed(&path, error))?;
        fs::write(&path, page).map_err(|error| failed(&path, error))?;
    }
    Ok(Exit::Answered)
}

/// The page of a command. Sections of its help (`Examples:`, `Exit codes:`) become sections of the page.
fn page(command: Command) -> io::Result<String> {
    let source = format!("agentctl {}", env!("CARGO_PKG_VERSION"));
    let verbs = command.has_subcommands();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let title = full_name(&command).to_uppercase();
    let man = Man::new(command);
    let mut page = Vec::new();
    // Written by hand, since the crate leaves out the date and misplaces what follows.
    writeln!(page, ".TH {title} 1 \"\" \"{source}\" \"agentctl\"")?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if verbs {
        man.render_subcommands_section(&mut page)?;
    }
    sections(&after).to_writer(&mut page)?;
    page.flush()?;
    String::from_utf8(page).map_err(io::Error::other)
}

/// The sections after the flags. A paragraph whose first line ends with a colon has a title; the others are notes.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut notes = Vec::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        match first.strip_suffix(':').filter(|_| rest.starts_with("  ")) {
            Some("Exit codes") => as_is(&mut roff, "EXIT STATUS", rest),
            Some(title) => as_is(&mut roff, &title.to_uppercase(), rest),
            None => notes.push(paragraph),
        }
    }
    for (at, note) in notes.into_iter().enumerate() {
        match at {
            0 => roff.control("SH", ["NOTES"]),
            _ => roff.control("PP", []),
        };
        roff.text([roman(note.replace('\n', " "))]);
    }
    roff
}

/// A section whose lines are not filled.
fn as_is(roff: &mut Roff, title: &str, lines: &str) {
    roff.control("SH", [title]);
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_examples_and_exit_codes() {
        let commands = commands();
        assert!(commands.len() > 20);
        for command in commands {
            let name = full_name(&command).to_owned();
            let page = page(command.clone()).unwrap();
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}\n{page}");
            if !command.has_subcommands() {
                for section in [".SH EXAMPLES\n.nf\n", ".SH \"EXIT STATUS\"\n.nf\n"] {
                    assert!(page.contains(section), "{section} is missing in {name}\n{page}");
                }
            }
        }
    }

    #[test]
    fn pages_are_found_by_their_words() {
        let name = |verb: &[&str]| {
            let verb: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
            find(&verb).map(|command| full_name(&command).to_owned())
        };
        assert_eq!(name(&[]).unwrap(), "agentctl");
        assert_eq!(name(&["setup", "local"]).unwrap(), "agentctl-setup-local");
        assert_eq!(name(&["nope"]).unwrap_err().exit, Exit::Usage);
    }

    #[test]
    fn remarks_are_notes() {
        let text = "Examples:\n  a\n    b\n\nFirst\nremark.\n\nSecond.\n\nExit codes:\n  0    x";
        let page = sections(text).render();
        let expected = ".SH EXAMPLES\n.nf\na\n  b\n.fi\n.SH \"EXIT STATUS\"\n.nf\n0    x\n.fi\n.SH NOTES\nFirst remark.\n.PP\nSecond.\n";
        assert!(page.ends_with(expected), "{page}");
    }
}
