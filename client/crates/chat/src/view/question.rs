//! A question of the session.

use agentd_client_text::{QuestionLine, one_line, question_lines, question_options, time_left};
use agentd_protocol::{permissions::PermissionQuestion, terminal_text::visible, ui::UiMethod};
use ratatui_core::text::{Line, Span};

use super::{below::Below, panel::rule};
use crate::{app::Chat, editor::Editor, panels::QuestionPanel, text::wrap, theme};

/// The rows of the question on the screen.
pub(super) fn rows(chat: &Chat) -> Below {
    let Some(panel) = &chat.question else { return Below::default() };
    let width = chat.width;
    let mut below = Below::default();
    match &panel.request.method {
        UiMethod::Permission(question) => permission(panel, question, chat, &mut below),
        UiMethod::Select { title, options, .. } => {
            head(title, width, &mut below.rows);
            for (at, option) in options.iter().enumerate() {
                let style =
                    if at == panel.selected { theme::SELECTED } else { ratatui_core::style::Style::new() };
                let rows =
                    wrap(&format!("{}  {}", at + 1, shown(option)), width.saturating_sub(4)).into_iter();
                below.rows.extend(rows.map(|row| Line::styled(format!("  {row}"), style)));
            }
            foot("Enter or a number takes, Esc takes none", &mut below.rows);
        }
        UiMethod::Confirm { title, message, .. } => {
            head(title, width, &mut below.rows);
            let rows = wrap(&visible(message), width.saturating_sub(4)).into_iter();
            below.rows.extend(rows.map(|row| Line::raw(format!("  {row}"))));
            foot("y yes, n no, Esc no answer", &mut below.rows);
        }
        UiMethod::Input { title, placeholder, .. } => {
            head(title, width, &mut below.rows);
            typed(&panel.editor, width, &mut below);
            if let Some(example) = placeholder.as_ref().filter(|_| panel.editor.is_empty())
                && let Some(row) = below.rows.last_mut()
            {
                row.push_span(Span::styled(one_line(example), theme::DIM));
            }
            foot("Enter answers, Esc no answer", &mut below.rows);
        }
        UiMethod::Editor { title, .. } => {
            head(title, width, &mut below.rows);
            typed(&panel.editor, width, &mut below);
            foot("Ctrl-D answers, Esc no answer", &mut below.rows);
        }
        _ => {}
    }
    if chat.questions.len() > 1 {
        foot(&format!("{} more wait", chat.questions.len() - 1), &mut below.rows);
    }
    below
}

fn permission(panel: &QuestionPanel, question: &PermissionQuestion, chat: &Chat, below: &mut Below) {
    let width = chat.width;
    let title = format!("Allow this? {} ({})", one_line(&question.tool), time_left(question));
    below.rows.push(rule(&title, width));
    let mut body = Vec::new();
    for line in question_lines(question) {
        let (text, style) = match &line {
            QuestionLine::Text(text) => (text, ratatui_core::style::Style::new()),
            QuestionLine::Diff(text) => (text, theme::diff(text)),
            QuestionLine::Reason(text) => (text, theme::DIM),
        };
        // Nothing of what the user agrees to is cut off.
        let rows = wrap(text, width.saturating_sub(4)).into_iter();
        body.extend(rows.map(|row| Line::styled(format!("  {row}"), style)));
    }
    let room = (chat.height * 2 / 3).saturating_sub(question.options.len() + 3).max(3);
    let first = panel.scrolled.min(body.len().saturating_sub(room));
    let hidden = body.len().saturating_sub(first + room);
    below.rows.extend(body.into_iter().skip(first).take(room));
    if hidden > 0 || first > 0 {
        foot(&format!("Up and Down scroll: {hidden} rows below"), &mut below.rows);
    }
    if panel.wants_words {
        below.rows.push(Line::styled(
            "  What should the model know? Enter says no with it, Esc goes back.",
            theme::DIM,
        ));
        typed(&panel.editor, width, below);
        return;
    }
    let options =
        question_options(question).into_iter().chain([('m', "No, with words to the model".to_owned())]);
    for (key, text) in options {
        for (at, row) in wrap(&text, width.saturating_sub(6)).into_iter().enumerate() {
            let mark = if at == 0 { format!("  {key}  ") } else { "     ".to_owned() };
            below.rows.push(Line::from(vec![Span::styled(mark, theme::ACCENT), Span::raw(row)]));
        }
    }
}

fn shown(text: &str) -> String {
    one_line(&visible(text))
}

fn head(title: &str, width: usize, rows: &mut Vec<Line<'static>>) {
    rows.push(rule("Question", width));
    rows.extend(
        wrap(&visible(title), width.saturating_sub(4))
            .into_iter()
            .map(|row| Line::styled(format!("  {row}"), theme::BOLD)),
    );
}

fn foot(text: &str, rows: &mut Vec<Line<'static>>) {
    rows.push(Line::styled(format!("  {text}"), theme::DIM));
}

fn typed(editor: &Editor, width: usize, below: &mut Below) {
    let typed = editor.rows(width.saturating_sub(6));
    below.cursor = Some((4 + typed.column, below.rows.len() + typed.row));
    for row in typed.rows {
        below.rows.push(Line::from(vec![Span::styled("  › ", theme::ACCENT), Span::raw(row)]));
    }
}
