//! The rows of an entry.

use std::time::Instant;

use agentd_client_text::{TodoLine, cut, one_line};
use agentd_protocol::todo::TodoStatus;
use ratatui_core::{
    style::Style,
    text::{Line, Span},
};

use super::{
    entry::{Entry, NoticeLevel, ToolCall, ToolState},
    markdown,
};
use crate::{
    text::{clean, wrap},
    theme,
};

/// How many rows of a failed call's output, and of a diff, are shown while it is folded.
const FOLDED_ROWS: usize = 8;

/// How many rows of an unfolded output are shown.
const UNFOLDED_ROWS: usize = 2_000;

/// The rows of an entry that does not grow.
pub(super) fn rows(entry: &Entry, width: usize, is_unfolded: bool) -> Vec<Line<'static>> {
    match entry {
        Entry::User { text, is_from_another } => user(text, *is_from_another, width),
        Entry::Answer { text, .. } => markdown::rows(text.trim_end(), width),
        Entry::Thinking { text, is_complete } => thinking(text, *is_complete, width, is_unfolded),
        Entry::Tool(call) => tool(call, width, is_unfolded),
        Entry::Bash { command, output, state } => bash(command, output, state, width, is_unfolded),
        Entry::Summary { title, text } => {
            let mark = if is_unfolded { "▾" } else { "▸" };
            let mut rows = vec![Line::styled(cut(&format!("{mark} {title}"), width), theme::DIM)];
            if is_unfolded {
                rows.extend(markdown::rows(text, width));
            }
            rows
        }
        Entry::Notice { level, text } => {
            let style = match level {
                NoticeLevel::Info => theme::DIM,
                NoticeLevel::Warning => theme::WARNING,
                NoticeLevel::Error => theme::FAILED,
            };
            wrap(text.trim_end(), width).into_iter().map(|row| Line::styled(row, style)).collect()
        }
        // Laid out with what the terminal knows of images.
        Entry::Image(_) => Vec::new(),
        Entry::Diff(diff) => diff_rows(diff, width, usize::MAX, ""),
    }
}

fn user(text: &str, is_from_another: bool, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if is_from_another {
        rows.push(Line::styled("from another client", theme::DIM));
    }
    let wrapped = wrap(text.trim_end(), width.saturating_sub(2));
    rows.extend(wrapped.into_iter().enumerate().map(|(at, row)| {
        let mark = if at == 0 { "› " } else { "  " };
        Line::from(vec![Span::styled(mark, theme::ACCENT), Span::styled(row, theme::BOLD)])
    }));
    rows
}

fn thinking(text: &str, is_complete: bool, width: usize, is_unfolded: bool) -> Vec<Line<'static>> {
    if text.trim().is_empty() {
        return vec![Line::styled(
            if is_complete { "Thought (not shown by the provider)" } else { "Thinking…" },
            theme::THINKING,
        )];
    }
    if is_unfolded {
        let rows = wrap(text.trim(), width.saturating_sub(2)).into_iter();
        return rows.map(|row| Line::styled(format!("  {row}"), theme::THINKING)).collect();
    }
    let (word, telling) = if is_complete {
        ("Thought", text.trim().lines().next())
    } else {
        ("Thinking", text.trim().lines().next_back())
    };
    let telling = one_line(telling.unwrap_or_default());
    vec![Line::styled(cut(&format!("▸ {word}: {telling}"), width), theme::THINKING)]
}

fn tool(call: &ToolCall, width: usize, is_unfolded: bool) -> Vec<Line<'static>> {
    let mut rows = vec![state_row(&call.subject, &call.state, width)];
    if is_unfolded {
        let arguments = wrap(&call.arguments, width.saturating_sub(4)).into_iter();
        rows.extend(arguments.map(|row| Line::styled(format!("    {row}"), theme::DIM)));
    }
    rows.extend(todo_rows(&call.todos, width));
    if let Some(diff) = &call.diff {
        let most = if is_unfolded { UNFOLDED_ROWS } else { FOLDED_ROWS };
        rows.extend(diff_rows(diff, width, most, "    "));
    }
    let is_failed = matches!(call.state, ToolState::Failed(_));
    if is_unfolded && call.diff.is_none() && call.todos.is_empty() {
        rows.extend(output_rows(&call.output, width, UNFOLDED_ROWS));
    } else if is_failed {
        rows.extend(output_rows(&call.output, width, FOLDED_ROWS));
    } else if let ToolState::Running(_) = call.state
        && let Some(last) = call.output.lines().rfind(|line| !line.trim().is_empty())
    {
        rows.push(Line::styled(cut(&format!("    {}", one_line(&clean(last))), width), theme::DIM));
    }
    rows
}

fn bash(
    command: &str,
    output: &str,
    state: &ToolState,
    width: usize,
    is_unfolded: bool,
) -> Vec<Line<'static>> {
    let mut rows = vec![state_row(&format!("! {}", one_line(command)), state, width)];
    rows.extend(output_rows(output, width, if is_unfolded { UNFOLDED_ROWS } else { 2 * FOLDED_ROWS }));
    rows
}

/// One row: what it is, and how far it has come.
fn state_row(subject: &str, state: &ToolState, width: usize) -> Line<'static> {
    let (mark, style, told) = match state {
        ToolState::Running(since) => ("•", theme::ACCENT, running(*since)),
        ToolState::Unknown => ("•", theme::DIM, String::new()),
        ToolState::Done(outcome) => ("✓", theme::OK, outcome.clone()),
        ToolState::Failed(outcome) => ("✗", theme::FAILED, outcome.clone()),
    };
    let told = cut(&one_line(&told), width / 2);
    let gap = if told.is_empty() { "" } else { "  " };
    let room = width.saturating_sub(2 + gap.len() + agentd_client_text::columns(&told));
    Line::from(vec![
        Span::styled(format!("{mark} "), style),
        Span::raw(cut(subject, room)),
        Span::styled(
            format!("{gap}{told}"),
            if matches!(state, ToolState::Failed(_)) { style } else { theme::DIM },
        ),
    ])
}

fn running(since: Instant) -> String {
    match since.elapsed().as_secs() {
        0 => String::new(),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The last rows of an output.
fn output_rows(output: &str, width: usize, most: usize) -> Vec<Line<'static>> {
    let output = output.trim_end();
    if output.is_empty() {
        return Vec::new();
    }
    // Only so much text can be shown; what is before it is not wrapped.
    let lines: Vec<&str> = output.lines().rev().take(most).collect();
    let mut rows: Vec<String> =
        lines.iter().rev().flat_map(|line| wrap(line, width.saturating_sub(4))).collect();
    let hidden = output.lines().count() - lines.len();
    if rows.len() > most {
        rows.drain(..rows.len() - most);
    }
    let more = (hidden > 0).then(|| Line::styled(format!("    … {hidden} lines more"), theme::DIM));
    more.into_iter()
        .chain(rows.into_iter().map(|row| Line::styled(format!("    {row}"), theme::DIM)))
        .collect()
}

/// A check list, which is seen whole: what is over stands back.
fn todo_rows(todos: &[TodoLine], width: usize) -> impl Iterator<Item = Line<'static>> {
    todos.iter().map(move |todo| {
        let style: Style = match todo.status {
            Some(TodoStatus::Completed | TodoStatus::Abandoned) => theme::DIM,
            _ => Style::default(),
        };
        Line::styled(cut(&format!("    {}", todo.text), width), style)
    })
}

fn diff_rows(diff: &str, width: usize, most: usize, indent: &str) -> Vec<Line<'static>> {
    let count = diff.lines().count();
    let shown = diff.lines().take(most).map(|line| {
        let style: Style = theme::diff(line);
        Line::styled(cut(&format!("{indent}{}", clean(line)), width), style)
    });
    let rest = count.saturating_sub(most);
    let more = (rest > 0).then(|| Line::styled(format!("{indent}… {rest} lines more"), theme::DIM));
    shown.chain(more).collect()
}
