//! Describes background processes and their output for the model.

use std::time::Duration;

use agentd_process::{BackgroundEnd, BackgroundProcess, BackgroundState, EndedBy, ExitStatus};
use agentd_protocol::{number, text_bounds, tool::ToolResult};
use serde_json::{Map, Value};

use crate::truncate::{TextLimits, truncate_head, truncate_tail};

/// The tool that these are active with.
pub(super) const COMES_WITH: &str = "bash";

/// The part of the output that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputPart {
    /// Output that was not shown yet; if it is too long, its end.
    New,
    /// Output from that position on; if it is too long, its beginning.
    Since(u64),
    /// The last lines.
    Lines(usize),
}

/// The state of a process, as the rest of a sentence: `is running for 2.0 seconds`.
pub(crate) fn status(process: &BackgroundProcess) -> String {
    let time = seconds(process.age());
    match process.state() {
        BackgroundState::Running => format!("is running for {time}"),
        BackgroundState::ShellEnded(exit) => {
            format!("is running for {time}: its shell {}, what that started is still there", ended(exit))
        }
        BackgroundState::Ended(end) => how_it_ended(end, process.facts().is_recorded),
    }
}

/// How a process ended, as the rest of a sentence: `exited with code 1 after 2.0 seconds`.
fn how_it_ended(BackgroundEnd { exit, by, wall_time }: BackgroundEnd, is_job: bool) -> String {
    let by = match by {
        Some(EndedBy::Timeout) => ", at its time limit",
        Some(EndedBy::Request) if is_job => ", as it was told to",
        Some(EndedBy::Request) => ", by process_kill",
        Some(EndedBy::User) => ", by the user",
        Some(EndedBy::Restart) => ", since another took its place",
        Some(EndedBy::Limit(limit)) => {
            return format!("{} after {}: {limit}", ended(exit), seconds(wall_time));
        }
        None => "",
    };
    format!("{} after {}{by}", ended(exit), seconds(wall_time))
}

fn ended(exit: ExitStatus) -> String {
    match exit.signal {
        Some(signal) => format!("was ended by {}", signal_name(signal)),
        None => format!("exited with code {}", exit.code),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} seconds", time.as_secs_f64())
}

/// Signals known by name.
pub(super) const SIGNALS: [(&str, u8); 10] = [
    ("SIGTERM", 15),
    ("SIGKILL", 9),
    ("SIGINT", 2),
    ("SIGHUP", 1),
    ("SIGQUIT", 3),
    ("SIGUSR1", 10),
    ("SIGUSR2", 12),
    ("SIGSTOP", 19),
    ("SIGCONT", 18),
    ("SIGWINCH", 28),
];

fn signal_name(signal: i32) -> String {
    match SIGNALS.iter().find(|(_, number)| i32::from(*number) == signal) {
        Some((name, _)) => (*name).to_owned(),
        None => format!("signal {signal}"),
    }
}

/// A part of a process's output for the model, with notes about it and the process's state. It counts as shown.
pub(crate) fn output(process: &BackgroundProcess, wanted: OutputPart) -> ToolResult {
    // Read the state before the output: the output of a process that is reported as ended is complete.
    let status = format!("{} {}", process.id(), status(process));
    output_with(process, wanted, Some(status))
}

/// As [`output`], with `status` as the process's state; `None` when the state was reported already.
pub(super) fn output_with(
    process: &BackgroundProcess,
    wanted: OutputPart,
    status: Option<String>,
) -> ToolResult {
    let asked = match wanted {
        OutputPart::New => process.shown(),
        OutputPart::Since(from) => from.min(process.total_bytes()),
        OutputPart::Lines(_) => 0,
    };
    let excerpt = match wanted {
        OutputPart::Lines(count) => process.last_lines(count),
        OutputPart::New | OutputPart::Since(_) => process.since(asked),
    };
    let (text, from, to) = match wanted {
        OutputPart::Since(_) => {
            let cut = truncate_head(&excerpt.text, TextLimits::default());
            let text = if cut.first_line_exceeds_limit { beginning(&excerpt.text) } else { &cut.content };
            // The line feed that was cut off counts as shown.
            let feed = u64::from(excerpt.text[text.len()..].starts_with('\n') && cut.truncated);
            (text.to_owned(), excerpt.from, excerpt.from + text.len() as u64 + feed)
        }
        OutputPart::New | OutputPart::Lines(_) => {
            let cut = truncate_tail(&excerpt.text, TextLimits::default());
            let end = excerpt.text.trim_end_matches('\n').len().min(excerpt.text.len());
            let begin =
                if cut.truncated { end.saturating_sub(cut.content.trim_end_matches('\n').len()) } else { 0 };
            (cut.content, excerpt.from + begin as u64, excerpt.to())
        }
    };
    process.set_shown(to);
    let total = process.total_bytes();
    let mut notes = Vec::from_iter(status);
    if wanted == OutputPart::New && from > asked {
        notes.push(format!("{} bytes before this are not shown: since={asked} shows them", from - asked));
    } else if from > asked && matches!(wanted, OutputPart::Since(_)) {
        notes.push(format!("the {} bytes before place {from} are no longer in memory", from - asked));
    }
    if to < total {
        notes.push(format!("{} bytes follow: since={to} shows them", total - to));
    }
    let file = process.file();
    if let Some(path) = &file.path {
        let part = if file.bytes < total {
            format!("First {} bytes of the output", file.bytes)
        } else {
            "Full output".into()
        };
        notes.push(format!("{part}: {}", path.display()));
    } else if let Some(failure) = file.failure {
        notes.push(format!("the full output could not be saved: {failure}"));
    }
    let mut body = text;
    if to == total {
        body.push_str(&excerpt.current);
    }
    let shown = if body.trim().is_empty() { "(no new output)" } else { body.trim_end_matches('\n') };
    let mut structured = facts(process);
    structured.insert("output".into(), body.clone().into());
    structured.insert("from".into(), from.into());
    structured.insert("to".into(), to.into());
    number::normalize_map(&mut structured);
    ToolResult {
        details: Some(Value::Object(facts(process))),
        structured_content: Some(Value::Object(structured)),
        ..ToolResult::text(match notes.as_slice() {
            [] => shown.to_owned(),
            notes => format!("{shown}\n\n[{}]", notes.join(". ")),
        })
    }
}

/// As much of the beginning of a text as can be shown.
fn beginning(text: &str) -> &str {
    text_bounds::head(text, TextLimits::default().bytes)
}

/// The facts about a process, for programs.
pub(crate) fn facts(process: &BackgroundProcess) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("process_id".into(), process.id().into());
    facts.insert("command".into(), process.label().into());
    facts.extend(process.pid().map(|pid| ("pid".to_owned(), pid.into())));
    let end = process.end();
    facts.insert("running".into(), end.is_none().into());
    if let Some(BackgroundEnd { exit, by, .. }) = end {
        facts.insert("exit_code".into(), exit.code.into());
        facts.extend(exit.signal.map(|signal| ("signal".to_owned(), signal.into())));
        let by = by.map(|by| match by {
            EndedBy::Timeout => "timeout",
            EndedBy::Request => "model",
            EndedBy::User => "user",
            EndedBy::Restart => "restart",
            EndedBy::Limit(_) => "limit",
        });
        facts.extend(by.map(|by| ("ended_by".to_owned(), by.into())));
    }
    let age = Duration::from_millis(process.age().as_millis().try_into().unwrap_or(u64::MAX));
    facts.insert("wall_time_seconds".into(), age.as_secs_f64().into());
    facts.insert("total_bytes".into(), process.total_bytes().into());
    facts.extend(
        process.file().path.map(|path| ("full_output_path".to_owned(), path.display().to_string().into())),
    );
    number::normalize_map(&mut facts);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_words() {
        let end = |exit, by| {
            how_it_ended(BackgroundEnd { exit, by, wall_time: Duration::from_millis(1234) }, false)
        };
        assert_eq!(end(ExitStatus::exited(3), None), "exited with code 3 after 1.2 seconds");
        assert_eq!(
            end(ExitStatus::signaled(15), Some(EndedBy::Request)),
            "was ended by SIGTERM after 1.2 seconds, by process_kill"
        );
        assert_eq!(
            end(ExitStatus::signaled(6), Some(EndedBy::Timeout)),
            "was ended by signal 6 after 1.2 seconds, at its time limit"
        );
    }

    #[test]
    fn the_beginning_ends_with_a_whole_character() {
        let text = "漢".repeat(30_000);
        let shown = beginning(&text);
        assert!(shown.len() <= 50 * 1024 && shown.len() > 50 * 1024 - 3);
        assert_eq!(beginning("abc"), "abc");
    }
}
