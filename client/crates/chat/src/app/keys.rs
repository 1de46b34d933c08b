//! What keys do.

use agentd_protocol::{command::StreamingBehavior, permissions::PermissionResponseParams, ui::UiResponse};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::{
    app::{
        chat::{Chat, Connection, Panel},
        commands, completing,
        messages::{Call, Effect, SwitchTo},
        sending,
        showing::show_question,
    },
    editor::{Edit, Move},
    panels::{Picked, QuestionAnswer, TreeChoice},
};

/// Takes a paste.
pub(super) fn paste(chat: &mut Chat, text: &str) -> Vec<Effect> {
    if let Some(question) = &mut chat.question {
        question.editor.insert(text);
        return Vec::new();
    }
    if chat.panel.is_some() {
        return Vec::new();
    }
    chat.history.leave();
    chat.editor.paste(text);
    completing::refresh(chat)
}

/// Takes a key.
pub(super) fn key(chat: &mut Chat, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    chat.flash = None;
    let was_leaving = std::mem::take(&mut chat.is_leaving);
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('l') if with_control => return vec![Effect::Redraw],
        KeyCode::Char('z') if with_control => return vec![Effect::Suspend],
        _ => {}
    }
    if let Some(effects) = scroll(chat, key) {
        return effects;
    }
    if chat.question.is_some()
        && let Some(effects) = question(chat, key)
    {
        return effects;
    }
    if chat.panel.is_some() {
        return panel(chat, key);
    }
    if chat.completions.is_open()
        && let Some(effects) = completion(chat, key)
    {
        return effects;
    }
    if matches!(chat.connection, Connection::Lost(_) | Connection::Closed)
        && chat.editor.is_empty()
        && matches!(key.code, KeyCode::Char('r' | 'R'))
        && !with_control
    {
        return vec![Effect::Reconnect];
    }
    if with_control && key.code == KeyCode::Char('c') {
        if chat.editor.is_empty() {
            if was_leaving {
                return vec![Effect::Quit];
            }
            chat.is_leaving = true;
            chat.flash = Some("Ctrl-C again leaves; the session goes on.".to_owned());
        } else {
            chat.editor.set("");
            chat.history.leave();
            chat.completions.clear();
        }
        return Vec::new();
    }
    let effects = command_key(chat, key).or_else(|| {
        edit_key(chat, key).then(|| {
            chat.history.leave();
            completing::refresh(chat)
        })
    });
    effects.unwrap_or_default()
}

/// Keys that scroll the conversation.
fn scroll(chat: &mut Chat, key: KeyEvent) -> Option<Vec<Effect>> {
    if chat.panel.is_some() {
        return None;
    }
    let page = i32::try_from(chat.transcript.page()).unwrap_or(1);
    match (key.code, key.modifiers) {
        (KeyCode::PageUp, _) => chat.transcript.scroll(-page),
        (KeyCode::PageDown, _) => chat.transcript.scroll(page),
        (KeyCode::Up, KeyModifiers::SHIFT) => chat.transcript.scroll(-1),
        (KeyCode::Down, KeyModifiers::SHIFT) => chat.transcript.scroll(1),
        (KeyCode::Home, KeyModifiers::CONTROL) => chat.transcript.go_to_start(),
        (KeyCode::End, KeyModifiers::CONTROL) => chat.transcript.follow(),
        _ => return None,
    }
    Some(Vec::new())
}

/// Keys that do something.
fn command_key(chat: &mut Chat, key: KeyEvent) -> Option<Vec<Effect>> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    if std::mem::take(&mut chat.is_after_ctrl_x) {
        return match key.code {
            KeyCode::Char('e') if control => Some(vec![Effect::OpenEditor(chat.editor.take())]),
            _ => Some(Vec::new()),
        };
    }
    let call = |call: Call| Some(vec![Effect::Call(Box::new(call))]);
    match key.code {
        KeyCode::Enter if alt && chat.is_working() => {
            Some(sending::submit(chat, StreamingBehavior::FollowUp))
        }
        KeyCode::Enter if alt || shift || control => None,
        KeyCode::Enter => {
            // A backslash at the end of the line asks for another one, where the terminal has no other key for it.
            if chat.editor.text()[..chat.editor.cursor()].ends_with('\\') {
                chat.editor.edit(Edit::DeleteLeft);
                chat.editor.insert("\n");
                return Some(Vec::new());
            }
            Some(sending::submit(chat, StreamingBehavior::Steer))
        }
        KeyCode::Up if alt => call(Call::ClearQueue),
        KeyCode::Esc if chat.is_working() => call(Call::Abort),
        KeyCode::Esc if chat.bash.is_some() => call(Call::AbortBash),
        KeyCode::Esc => {
            chat.transcript.follow();
            Some(Vec::new())
        }
        KeyCode::Char('d') if control && chat.editor.is_empty() => Some(vec![Effect::Quit]),
        KeyCode::Char('o') if control => {
            chat.transcript.toggle_unfolded();
            Some(Vec::new())
        }
        KeyCode::Char('p') if control => call(Call::ListModels),
        KeyCode::Char('t') if control => call(Call::ListLevels),
        KeyCode::Char('r') if control => {
            commands::search_history(chat);
            Some(Vec::new())
        }
        KeyCode::Char('g') if control => Some(vec![Effect::OpenEditor(chat.editor.take())]),
        KeyCode::Char('x') if control => {
            chat.is_after_ctrl_x = true;
            Some(Vec::new())
        }
        KeyCode::Up | KeyCode::Down => {
            recall(chat, key.code == KeyCode::Up);
            Some(Vec::new())
        }
        _ => None,
    }
}

/// Moves among the rows of what is typed, and from the first and the last one into the history.
fn recall(chat: &mut Chat, is_up: bool) {
    let width = chat.input_width();
    if chat.editor.go(if is_up { Move::Up } else { Move::Down }, width) {
        return;
    }
    let typed = chat.editor.text().to_owned();
    let found = if is_up { chat.history.older(&typed) } else { chat.history.newer() };
    if let Some(prompt) = found.map(str::to_owned) {
        chat.editor.set(&prompt);
        chat.completions.clear();
    }
}

/// Keys that change what is typed, or move in it; false for others.
fn edit_key(chat: &mut Chat, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let width = chat.input_width();
    let editor = &mut chat.editor;
    let go = match (key.code, control, alt) {
        (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, false) => Some(Move::Left),
        (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, false) => Some(Move::Right),
        (KeyCode::Left, ..) | (KeyCode::Char('b'), false, true) => Some(Move::WordLeft),
        (KeyCode::Right, ..) | (KeyCode::Char('f'), false, true) => Some(Move::WordRight),
        (KeyCode::Home, ..) | (KeyCode::Char('a'), true, false) => Some(Move::LineStart),
        (KeyCode::End, ..) | (KeyCode::Char('e'), true, false) => Some(Move::LineEnd),
        (KeyCode::Char('<'), _, true) => Some(Move::Start),
        (KeyCode::Char('>'), _, true) => Some(Move::End),
        _ => None,
    };
    if let Some(go) = go {
        editor.go(go, width);
        return true;
    }
    let edit = match (key.code, control, alt) {
        (KeyCode::Backspace, false, false) | (KeyCode::Char('h'), true, _) => Some(Edit::DeleteLeft),
        (KeyCode::Backspace, ..) => Some(Edit::KillWordLeft),
        (KeyCode::Delete, false, false) | (KeyCode::Char('d'), true, false) => Some(Edit::DeleteRight),
        (KeyCode::Delete, ..) | (KeyCode::Char('d'), false, true) => Some(Edit::KillWordRight),
        (KeyCode::Char('w'), true, false) => Some(Edit::KillLongWordLeft),
        (KeyCode::Char('u'), true, false) => Some(Edit::KillToLineStart),
        (KeyCode::Char('k'), true, false) => Some(Edit::KillToLineEnd),
        (KeyCode::Char('y'), true, false) => Some(Edit::Yank),
        (KeyCode::Char('y'), false, true) => Some(Edit::YankPop),
        (KeyCode::Char('t'), false, true) => Some(Edit::Transpose),
        _ => None,
    };
    if let Some(edit) = edit {
        editor.edit(edit);
        return true;
    }
    match (key.code, control, alt) {
        (KeyCode::Char('_' | '-' | '7' | '/'), true, _) => drop(editor.undo()),
        (KeyCode::Char('_'), _, true) => drop(editor.redo()),
        (KeyCode::Enter, ..) | (KeyCode::Char('j'), true, _) => editor.insert("\n"),
        (KeyCode::Char(c), false, false) => editor.insert(&c.to_string()),
        _ => return false,
    }
    true
}

/// Keys at a list of offers; `None` for those that mean what they always do.
fn completion(chat: &mut Chat, key: KeyEvent) -> Option<Vec<Effect>> {
    match key.code {
        KeyCode::Esc => chat.completions.close(),
        KeyCode::Up => chat.completions.previous(),
        KeyCode::Down => chat.completions.next(),
        KeyCode::Tab => {
            completing::accept(chat);
            return Some(completing::refresh(chat));
        }
        // A command that is typed whole is sent at once.
        KeyCode::Enter if key.modifiers.is_empty() => {
            let typed = chat.editor.text().to_owned();
            let is_whole = chat.completions.chosen().is_some_and(|offer| typed == format!("/{}", offer.text));
            if is_whole || !typed.starts_with('/') && typed.ends_with('@') {
                return None;
            }
            completing::accept(chat);
            return Some(completing::refresh(chat));
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// Keys at a question; `None` for those that mean what they always do.
fn question(chat: &mut Chat, key: KeyEvent) -> Option<Vec<Effect>> {
    let panel = chat.question.as_mut()?;
    let answer = panel.key(key);
    let id = panel.request.id.clone();
    let mut response = UiResponse {
        id: id.clone(),
        session_id: Some(chat.session.session_id.clone()),
        ..UiResponse::default()
    };
    let call = match answer {
        QuestionAnswer::Nothing => return Some(Vec::new()),
        QuestionAnswer::Other if key.code == KeyCode::Char('d') => return Some(vec![Effect::Quit]),
        // What is typed for later is left alone.
        QuestionAnswer::Other => return Some(Vec::new()),
        QuestionAnswer::Permission(decision, message) => Call::Answer(PermissionResponseParams {
            request_id: id.clone(),
            decision,
            message,
            client: String::new(),
        }),
        QuestionAnswer::Value(value) => {
            response.value = Some(value.into());
            Call::AnswerDialog(response)
        }
        QuestionAnswer::Confirmed(yes) => {
            response.confirmed = Some(yes.into());
            Call::AnswerDialog(response)
        }
        QuestionAnswer::Cancelled => {
            response.cancelled = Some(true.into());
            Call::AnswerDialog(response)
        }
    };
    chat.questions.pop_front();
    chat.answered = Some(id);
    show_question(chat);
    Some(vec![Effect::Call(Box::new(call))])
}

/// Keys at a list or the tree.
fn panel(chat: &mut Chat, key: KeyEvent) -> Vec<Effect> {
    let Some(open) = &mut chat.panel else { return Vec::new() };
    let call = |call: Call| Some(Effect::Call(Box::new(call)));
    let (stays, effect) = match open {
        Panel::Models(picker) => match picker.key(key) {
            Picked::One(model) => (false, call(Call::SetModel { provider: model.provider, id: model.id })),
            other => (other == Picked::Nothing, None),
        },
        Panel::Levels(picker) => match picker.key(key) {
            Picked::One(level) => (false, call(Call::SetLevel(level))),
            other => (other == Picked::Nothing, None),
        },
        Panel::Sessions(picker) => match picker.key(key) {
            Picked::One(id) => (false, Some(Effect::Switch(SwitchTo::Session(id)))),
            other => (other == Picked::Nothing, None),
        },
        Panel::Permissions(picker) => match picker.key(key) {
            Picked::One(preset) => (false, call(Call::SetPermissions(Some(preset)))),
            other => (other == Picked::Nothing, None),
        },
        Panel::Tools(picker) => match picker.key(key) {
            Picked::Marked(tools) => (false, call(Call::SetTools(tools))),
            other => (other == Picked::Nothing, None),
        },
        Panel::History(picker) => match picker.key(key) {
            Picked::One(prompt) => {
                chat.editor.set(&prompt);
                (false, None)
            }
            other => (other == Picked::Nothing, None),
        },
        Panel::Tree(tree) => match tree.key(key) {
            TreeChoice::Nothing => (true, None),
            TreeChoice::Closed => (false, None),
            TreeChoice::Go(entry) => (false, call(Call::Navigate(entry))),
            TreeChoice::Fork(entry) => (false, Some(Effect::Switch(SwitchTo::Fork(entry)))),
        },
    };
    if !stays {
        chat.panel = None;
    }
    effect.into_iter().collect()
}
