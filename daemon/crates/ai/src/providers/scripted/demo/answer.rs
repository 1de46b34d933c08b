//! Puts what the demo saw into words.

use agentd_protocol::message::ToolResultMessage;

use super::listing::Listing;
use crate::providers::scripted::facts::{Facts, result_text};

/// How much of the question, or of a line, is repeated, in characters.
const MAX_QUOTE: usize = 120;

/// How many names are given.
const MAX_NAMES: usize = 8;

/// The answer when there is no tool to look with.
pub(super) fn without_tools(question: &str) -> String {
    format!(
        "{} No tool is on offer that would let me look at this folder, so there is nothing that I can tell about it. {}",
        introduction(question),
        ADVICE
    )
}

/// The answer after looking: what the listing and the file said.
pub(super) fn seen(
    facts: &Facts<'_>,
    listed: &ToolResultMessage,
    listing: Option<&Listing>,
    read: Option<&ToolResultMessage>,
) -> String {
    let folder = match listing {
        Some(listing) => describe_folder(listing),
        None => format!(
            "I could not list this folder: the tool {} failed with \"{}\".",
            listed.tool_name,
            first_line(listed)
        ),
    };
    let file = match read {
        Some(read) => describe_file(facts, read),
        None if listing.is_none() => String::new(),
        None if facts.offers("read") => " None of the files looked like text worth reading.".into(),
        None => " The tool read is not on offer, so I read no file.".into(),
    };
    format!("{} {folder}{file} {ADVICE}", introduction(&facts.prompt()))
}

const ADVICE: &str = "Everything above came from real tool calls, made and recorded as with any model; for answers to your \
     questions, choose a real model.";

fn introduction(question: &str) -> String {
    let role = "I am the built-in demo model of agentd: no language model, only a few fixed rules.";
    match quoted(question) {
        question if question.is_empty() => role.to_owned(),
        question => {
            format!("{role} You asked: \"{question}\". I cannot answer that, but I can say what I see.")
        }
    }
}

fn describe_folder(listing: &Listing) -> String {
    let (files, folders) = (listing.files.len(), listing.folders.len());
    if files + folders == 0 {
        return "This folder is empty.".into();
    }
    let all: Vec<&str> = listing.files.iter().chain(&listing.folders).map(String::as_str).collect();
    let more = all.len().saturating_sub(MAX_NAMES);
    let names = all[..all.len() - more].join(", ");
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("This folder holds {} and {}: {names}{rest}.", counted(files, "file"), counted(folders, "folder"))
}

fn describe_file(facts: &Facts<'_>, read: &ToolResultMessage) -> String {
    let path = facts.call_of(read).and_then(|call| call.arguments.get("path")?.as_str());
    let path = path.unwrap_or("a file");
    if read.is_error {
        return format!(" I tried to read {path}, but the tool failed with \"{}\".", first_line(read));
    }
    let text = result_text(read);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let heading = lines.clone().find_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim())
    });
    match (heading.filter(|_| path.to_ascii_lowercase().ends_with(".md")), lines.next()) {
        (Some(heading), _) => format!(" I read {path}; its first heading is \"{}\".", quoted(heading)),
        (None, Some(line)) => format!(" I read {path}; its first line is \"{}\".", quoted(line)),
        (None, None) => format!(" I read {path}; it is empty."),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn first_line(result: &ToolResultMessage) -> String {
    let text = result_text(result);
    quoted(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message"))
}

/// A text as one line, cut.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
