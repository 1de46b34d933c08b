//! Describes jobs for the model: their state under `proc://`, and their ends in messages.

use agentd_process::{BackgroundProcess, BackgroundState};
use agentd_protocol::text_bounds;

use super::show::status;
use crate::{
    limits::MAX_LINES,
    truncate::{TextLimits, truncate_tail},
};

/// The most bytes of output that a look at a job has: 16 KiB.
const LOOK_BYTES: usize = 16 << 10;

/// Bytes of its command that a text about a job has: 2 KiB.
const SHOWN_COMMAND: usize = 2 << 10;

/// Lines of output that a look at a job has.
const LOOK_LINES: usize = 200;

/// A job, at the beginning of a sentence.
pub(crate) fn called(process: &BackgroundProcess) -> String {
    let facts = process.facts();
    match (&facts.name, facts.is_service) {
        (Some(name), _) => format!("Service {name} (job {})", process.id()),
        (None, true) => format!("Service (job {})", process.id()),
        (None, false) => format!("Job {}", process.id()),
    }
}

/// The end of a job's output, at most so many lines, with a notice in brackets where it is not all of it.
pub(crate) fn tail(process: &BackgroundProcess, lines: usize) -> String {
    tail_within(process, TextLimits { lines, ..TextLimits::default() })
}

fn tail_within(process: &BackgroundProcess, limits: TextLimits) -> String {
    let excerpt = process.last_lines(limits.lines);
    let cut = truncate_tail(&excerpt.text, limits);
    let mut text = format!("{}{}", cut.content, excerpt.current).trim_end_matches('\n').to_owned();
    if cut.truncated || excerpt.from > 0 {
        let notice = format!("[Showing the end of {} bytes. {}]", process.total_bytes(), whole(process));
        text = if text.is_empty() { notice } else { format!("{text}\n\n{notice}") };
    }
    text
}

/// Where the whole output is, in a sentence.
fn whole(process: &BackgroundProcess) -> String {
    let file = process.file();
    let place = match (&file.artifact_id, &file.path) {
        (Some(id), _) => format!("artifact://{id}"),
        (None, Some(path)) => path.display().to_string(),
        (None, None) => return "The output before it was not kept.".to_owned(),
    };
    if file.bytes < process.total_bytes() {
        format!("The first {} bytes: {place}", file.bytes)
    } else {
        format!("Full output: {place}")
    }
}

/// The command of a job, not longer than it takes to know it again.
fn command(process: &BackgroundProcess) -> String {
    let shown = text_bounds::head(process.label(), SHOWN_COMMAND);
    let more = if shown.len() < process.label().len() { "…" } else { "" };
    format!("{shown}{more}")
}

/// The end of a job, for the model: a message of the session has it.
#[must_use]
pub fn job_end_text(process: &BackgroundProcess) -> String {
    let output = tail(process, MAX_LINES);
    let output = if output.is_empty() { "(no output)" } else { &output };
    format!("{} {}.\n$ {}\n\n{output}", called(process), status(process), command(process))
}

/// A job in a line, for a list.
#[must_use]
pub fn job_line(process: &BackgroundProcess) -> String {
    let name = process.facts().name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let command = process.label().lines().next().unwrap_or_default();
    let more = if process.label().lines().nth(1).is_some() { " …" } else { "" };
    format!(
        "{}{name} {}, {} bytes of output: {command}{more}",
        process.id(),
        status(process),
        process.total_bytes()
    )
}

/// The state of a job and the end of its output, for the model.
#[must_use]
pub fn job_state_text(process: &BackgroundProcess) -> String {
    // Read the state before the output: the output of a process that is reported as ended is complete.
    let state = format!("{} {}", called(process), status(process));
    let takes_input = matches!(process.state(), BackgroundState::Running | BackgroundState::ShellEnded(_));
    let output = tail_within(process, TextLimits { lines: LOOK_LINES, bytes: LOOK_BYTES });
    let output = if output.is_empty() { "(no output)" } else { &output };
    let mut text = format!("{state}, {} bytes of output.\n$ {}\n", process.total_bytes(), command(process));
    if let Some(id) = process.file().artifact_id {
        text.push_str(&format!("Output from the beginning: artifact://{id}\n"));
    }
    if takes_input {
        let id = process.id();
        text.push_str(&format!("Write to proc://{id} for its input, to proc://{id}/kill to end it.\n"));
    }
    format!("{text}\n{output}\n")
}
