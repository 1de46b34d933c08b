//! The last row: what answers, where, how full the context is, and what goes on.

use agentd_client_text::{columns, cut, cut_begin, money, one_line, short_count};
use agentd_protocol::agent_mode::AgentMode;
use ratatui_core::{
    style::Style,
    text::{Line, Span},
};

use crate::{
    app::{Chat, Connection},
    theme,
};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The row, cut to the width. What matters least goes first.
pub(super) fn row(chat: &Chat, width: usize) -> Line<'static> {
    let (now, style) = now(chat);
    let now = cut(&now, width.saturating_sub(2));
    let room = width.saturating_sub(columns(&now) + 3);
    let mut parts = parts(chat);
    while told(&parts) > room && parts.len() > 1 {
        let least = parts.iter().enumerate().min_by_key(|(_, part)| part.weight).map_or(0, |(at, _)| at);
        parts.remove(least);
    }
    let left: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let left = cut(&left.join(" · "), room);
    let gap = " ".repeat(width.saturating_sub(columns(&left) + columns(&now) + 2));
    Line::from(vec![Span::styled(format!(" {left}{gap}"), theme::DIM), Span::styled(now, style)])
}

struct Part {
    text: String,
    /// How much it matters.
    weight: u8,
}

fn told(parts: &[Part]) -> usize {
    parts.iter().map(|part| columns(&part.text) + 3).sum::<usize>().saturating_sub(3)
}

fn parts(chat: &Chat) -> Vec<Part> {
    let session = &chat.session;
    let mut parts = Vec::new();
    let mut add = |weight: u8, text: String| parts.push(Part { text, weight });
    if session.model.is_placeholder() {
        add(9, "no model".to_owned());
    } else {
        add(9, one_line(&session.model.id));
        if session.model.reasoning {
            add(5, session.thinking_level.as_str().to_owned());
        }
    }
    if let Some(name) = &session.session_name {
        add(2, cut(&one_line(name), 24));
    }
    let branch = chat.branch.as_ref().map(|branch| format!(" ({})", one_line(branch))).unwrap_or_default();
    add(6, format!("{}{branch}", cut_begin(&folder(chat), 30)));
    if let Some(stats) = &chat.stats {
        if let Some(percent) = stats.context_usage.as_ref().and_then(|context| context.percent) {
            add(7, format!("{percent:.0}%"));
        }
        if stats.tokens.total > 0 {
            let all_input = stats.tokens.input + stats.tokens.cache_read + stats.tokens.cache_write;
            add(3, format!("↑{} ↓{}", short_count(all_input), short_count(stats.tokens.output)));
        }
        if stats.cost > 0.0 {
            add(4, money(stats.cost));
        }
    }
    if let Some(permissions) = &session.permissions {
        add(4, permissions.preset.as_str().to_owned());
    }
    if session.mode == AgentMode::Plan {
        add(8, "plan mode".to_owned());
    }
    for (_, text) in &chat.statuses {
        add(1, cut(text, 24));
    }
    parts
}

/// The folder, with `~` for the home.
fn folder(chat: &Chat) -> String {
    let below = chat.home.as_ref().and_then(|home| chat.folder.strip_prefix(home).ok());
    match below {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", one_line(&rest.display().to_string())),
        None => one_line(&chat.folder.display().to_string()),
    }
}

/// What goes on now.
fn now(chat: &Chat) -> (String, Style) {
    match &chat.connection {
        Connection::Connecting => return ("connecting…".to_owned(), theme::DIM),
        Connection::Lost(_) => return ("daemon lost, trying again; R starts it".to_owned(), theme::FAILED),
        Connection::Closed => return ("session closed; R opens it".to_owned(), theme::WARNING),
        Connection::Up => {}
    }
    let Some(activity) = &chat.activity else { return (String::new(), theme::DIM) };
    let elapsed = activity.since.elapsed();
    let frame = SPINNER[usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % SPINNER.len()];
    (format!("{frame} {} {} s · Esc stops", activity.what, elapsed.as_secs()), theme::ACCENT)
}
