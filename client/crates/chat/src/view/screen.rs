//! How the screen is divided.

use agentd_protocol::terminal_text::steers;
use ratatui_core::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::Color,
    text::Line,
};

use super::{input, panel, question, status};
use crate::{app::Chat, theme};

/// The smallest screen that is drawn on.
const LEAST: (u16, u16) = (20, 6);

/// Draws the state; gives the place of the cursor. Lays out what comes on the screen.
pub(crate) fn draw(chat: &mut Chat, area: Rect, buffer: &mut Buffer, has_colours: bool) -> Option<Position> {
    (chat.width, chat.height) = (usize::from(area.width), usize::from(area.height));
    if area.width < LEAST.0 || area.height < LEAST.1 {
        put(buffer, area, 0, &Line::raw("Too small"));
        return None;
    }
    let below = if chat.question.is_some() {
        question::rows(chat)
    } else if chat.panel.is_some() {
        panel::rows(chat)
    } else {
        input::rows(chat)
    };
    // The conversation keeps at least two rows, and the status its one.
    let most = area.height.saturating_sub(3);
    let height = u16::try_from(below.rows.len()).unwrap_or(u16::MAX).min(most);
    let hidden = below.rows.len() - usize::from(height);
    let top = area.height - 1 - height;
    let conversation = Rect { x: area.x + 1, width: area.width - 2, height: top, ..area };
    transcript(chat, conversation, buffer, has_colours);
    let lower = Rect { y: area.y + top, height, ..area };
    for (at, row) in below.rows.iter().skip(hidden).enumerate() {
        put(buffer, lower, at, row);
    }
    put(buffer, area, usize::from(area.height) - 1, &status::row(chat, usize::from(area.width)));
    // Texts are cleaned where they come from; nothing that was forgotten there reaches the terminal.
    for cell in buffer.content.iter_mut().filter(|cell| cell.symbol().contains(steers)) {
        cell.set_symbol(" ");
    }
    if !has_colours {
        for cell in &mut buffer.content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
    let (column, row) = below.cursor?;
    let row = u16::try_from(row.checked_sub(hidden)?).ok()?;
    let column = u16::try_from(column).ok()?.min(area.width - 1);
    Some(Position { x: area.x + column, y: lower.y + row })
}

fn transcript(chat: &mut Chat, area: Rect, buffer: &mut Buffer, has_colours: bool) {
    chat.transcript.set_cell(chat.cell.filter(|_| has_colours));
    chat.transcript.resize(usize::from(area.width), usize::from(area.height));
    let rows = chat.transcript.visible();
    for (at, row) in rows.iter().enumerate() {
        if let Some(line) = chat.transcript.visible_row(*row) {
            put(buffer, area, at, line);
        }
    }
    if !chat.transcript.follows() {
        let mark = " ↓ more (Ctrl-End) ";
        let width = u16::try_from(mark.chars().count()).unwrap_or(0);
        let place =
            Rect { x: area.x + area.width.saturating_sub(width), width: width.min(area.width), ..area };
        put(buffer, place, usize::from(area.height) - 1, &Line::styled(mark, theme::SELECTED));
    }
}

/// Draws a row, cut at the end of the area.
fn put(buffer: &mut Buffer, area: Rect, row: usize, line: &Line<'_>) {
    let Ok(row) = u16::try_from(row) else { return };
    if row < area.height {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}
