//! Lists to pick from, and the tree.

use agentd_client_text::{columns, cut, padded};
use ratatui_core::text::{Line, Span};

use super::below::Below;
use crate::{
    app::{Chat, Panel},
    panels::{Picker, TreePanel},
    theme,
};

/// The rows of the panel that is open.
pub(super) fn rows(chat: &Chat) -> Below {
    let most = (chat.height * 2 / 3).saturating_sub(3).max(2);
    match &chat.panel {
        None => Below::default(),
        Some(Panel::Models(picker)) => list(picker, chat.width, most),
        Some(Panel::Levels(picker)) => list(picker, chat.width, most),
        Some(Panel::Sessions(picker)) => list(picker, chat.width, most),
        Some(Panel::Tools(picker)) => list(picker, chat.width, most),
        Some(Panel::Permissions(picker)) => list(picker, chat.width, most),
        Some(Panel::History(picker)) => list(picker, chat.width, most),
        Some(Panel::Tree(tree)) => tree_rows(tree, chat.width, most),
    }
}

fn list<T: Clone>(picker: &Picker<T>, width: usize, most: usize) -> Below {
    let mut rows = vec![rule(&picker.title, width)];
    let filter = format!("› {}", picker.filter);
    let cursor = (columns(&filter), 1);
    rows.push(Line::raw(cut(&filter, width)));
    let first = picker.selected().saturating_sub(most - 1);
    let count = picker.shown().len();
    for (at, item) in picker.shown().enumerate().skip(first).take(most) {
        let mark = match (picker.has_marks(), item.is_marked) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "• ",
            (false, false) => "  ",
        };
        let detail = cut(&item.detail, width / 2);
        let room = width.saturating_sub(columns(mark) + columns(&detail) + 2);
        let row = format!("{mark}{} {detail}", padded(&cut(&item.label, room), room, false));
        let style = if at == picker.selected() {
            theme::SELECTED
        } else if item.is_dim {
            theme::DIM
        } else {
            ratatui_core::style::Style::new()
        };
        rows.push(Line::styled(row, style));
    }
    let keys =
        if picker.has_marks() { "blank marks, Enter takes, Esc closes" } else { "Enter takes, Esc closes" };
    let told = if count == 0 {
        "  nothing fits".to_owned()
    } else {
        format!("  {} of {count}; {keys}", picker.selected() + 1)
    };
    rows.push(Line::styled(cut(&told, width), theme::DIM));
    Below { rows, cursor: Some(cursor) }
}

fn tree_rows(tree: &TreePanel, width: usize, most: usize) -> Below {
    let mut rows = vec![rule("Where to go on", width)];
    let first = tree.selected.saturating_sub(most - 1);
    for (at, row) in tree.rows.iter().enumerate().skip(first).take(most) {
        let mark = if row.is_current { "•" } else { " " };
        let who = if row.is_user { "› " } else { "  " };
        let text = format!("{mark} {}{who}{}", "│ ".repeat(row.depth.min(width / 6)), row.text);
        let style = match (at == tree.selected, row.is_user) {
            (true, _) => theme::SELECTED,
            (false, true) => theme::BOLD,
            (false, false) => theme::DIM,
        };
        rows.push(Line::styled(cut(&text, width), style));
    }
    if tree.rows.is_empty() {
        rows.push(Line::styled("  nothing is said yet", theme::DIM));
    }
    rows.push(Line::styled(
        cut("  Enter goes on from there, f copies what is before a prompt, Esc closes", width),
        theme::DIM,
    ));
    Below { rows, cursor: None }
}

/// A line across the screen with a title in it.
pub(super) fn rule(title: &str, width: usize) -> Line<'static> {
    let title = cut(title, width.saturating_sub(6));
    let rest = "─".repeat(width.saturating_sub(columns(&title) + 4));
    Line::from(vec![
        Span::styled("── ", theme::DIM),
        Span::styled(title, theme::BOLD),
        Span::styled(format!(" {rest}"), theme::DIM),
    ])
}
