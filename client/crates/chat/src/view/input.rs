//! The input: what waits, the offers, what is typed.

use agentd_client_text::{columns, cut, one_line};
use ratatui_core::text::{Line, Span};

use super::below::Below;
use crate::{app::Chat, theme};

/// How many offers are shown at once.
const MOST_OFFERS: usize = 8;

/// How many waiting messages are shown.
const MOST_WAITING: usize = 4;

/// The rows of the input.
pub(super) fn rows(chat: &Chat) -> Below {
    let width = chat.width;
    let mut below = Below::default();
    waiting(chat, &mut below.rows);
    offers(chat, &mut below.rows);
    below.rows.push(Line::styled("─".repeat(width), theme::DIM));
    let typed = chat.editor.rows(chat.input_width());
    // A long text shows the rows around the cursor.
    let most = (chat.height / 2).max(3);
    let first = typed.row.saturating_sub(most - 1);
    for (at, row) in typed.rows.iter().enumerate().skip(first).take(most) {
        let mark = if at == 0 { "› " } else { "  " };
        below.rows.push(Line::from(vec![Span::styled(mark, theme::ACCENT), Span::raw(row.clone())]));
    }
    if chat.editor.is_empty() {
        let hint = if chat.is_working() { "Steer it" } else { "Ask, or /help" };
        if let Some(last) = below.rows.last_mut() {
            last.push_span(Span::styled(hint, theme::DIM));
        }
    }
    let shown = typed.rows.len().saturating_sub(first).min(most);
    below.cursor = Some((2 + typed.column, below.rows.len() - shown + typed.row - first));
    if let Some(flash) = &chat.flash {
        below.rows.push(Line::styled(cut(&format!("  {}", one_line(flash)), width), theme::WARNING));
    }
    below
}

fn waiting(chat: &Chat, rows: &mut Vec<Line<'static>>) {
    let steering = chat.steering.iter().map(|text| ("steers", text));
    let all: Vec<_> = steering.chain(chat.follow_ups.iter().map(|text| ("after that", text))).collect();
    for (how, text) in all.iter().take(MOST_WAITING) {
        let row = format!(" ⏳ {how}: {}", one_line(text));
        rows.push(Line::styled(cut(&row, chat.width), theme::DIM));
    }
    if all.len() > MOST_WAITING {
        rows.push(Line::styled(format!("    and {} more", all.len() - MOST_WAITING), theme::DIM));
    }
    if !all.is_empty() {
        rows.push(Line::styled(cut("    Alt-Up takes them back", chat.width), theme::DIM));
    }
}

fn offers(chat: &Chat, rows: &mut Vec<Line<'static>>) {
    let completions = &chat.completions;
    let first = completions.selected.saturating_sub(MOST_OFFERS - 1);
    let longest = completions.offers.iter().map(|offer| columns(&offer.text)).max().unwrap_or(0);
    let shown = completions.offers.iter().enumerate().skip(first).take(MOST_OFFERS);
    for (at, offer) in shown {
        let name = agentd_client_text::padded(&one_line(&offer.text), longest.min(30), false);
        let row = cut(&format!("  {name}  {}", one_line(&offer.about)), chat.width);
        let style = if at == completions.selected { theme::SELECTED } else { theme::DIM };
        rows.push(Line::styled(row.trim_end().to_owned(), style));
    }
}
