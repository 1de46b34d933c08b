//! A question of the session: about a call, or a dialog.

use agentd_client_text::{TypedKey, typed_key};
use agentd_protocol::{
    permissions::PermissionAnswer,
    ui::{ExtensionUiRequest, UiMethod},
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::{Edit, Editor, Move};

/// The question on the screen, and what is typed at it.
#[derive(Debug)]
pub(crate) struct QuestionPanel {
    pub(crate) request: ExtensionUiRequest,
    pub(crate) editor: Editor,
    /// Whether the words to the model are being typed.
    pub(crate) wants_words: bool,
    pub(crate) selected: usize,
    /// How many rows of what the call would do are scrolled away.
    pub(crate) scrolled: usize,
}

/// What a key did at a question.
#[derive(Debug, PartialEq)]
pub(crate) enum QuestionAnswer {
    Nothing,
    /// The key means something outside of the question.
    Other,
    Permission(PermissionAnswer, Option<String>),
    Value(String),
    Confirmed(bool),
    Cancelled,
}

impl QuestionPanel {
    pub(crate) fn new(request: ExtensionUiRequest) -> Self {
        let mut editor = Editor::default();
        if let UiMethod::Editor { prefill: Some(text), .. } = &request.method {
            editor.set(text);
        }
        Self { request, editor, wants_words: false, selected: 0, scrolled: 0 }
    }

    /// Whether it shows the time that is left.
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self.request.method, UiMethod::Permission(_))
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> QuestionAnswer {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_editor = matches!(self.request.method, UiMethod::Editor { .. });
        if with_control && !(is_editor && key.code == KeyCode::Char('d')) {
            return QuestionAnswer::Other;
        }
        match &self.request.method {
            UiMethod::Permission(_) if self.wants_words => self.words_key(key),
            UiMethod::Permission(question) => match key.code {
                KeyCode::Char(c) => match typed_key(question, &c.to_string()) {
                    TypedKey::Answer(answer, words) => QuestionAnswer::Permission(answer, words),
                    TypedKey::Words => {
                        self.wants_words = true;
                        QuestionAnswer::Nothing
                    }
                    TypedKey::Unclear => QuestionAnswer::Nothing,
                },
                KeyCode::Down => {
                    self.scrolled += 1;
                    QuestionAnswer::Nothing
                }
                KeyCode::Up => {
                    self.scrolled = self.scrolled.saturating_sub(1);
                    QuestionAnswer::Nothing
                }
                KeyCode::Enter | KeyCode::Esc => QuestionAnswer::Nothing,
                _ => QuestionAnswer::Other,
            },
            UiMethod::Select { options, .. } => match key.code {
                KeyCode::Up => {
                    self.selected = self.selected.checked_sub(1).unwrap_or(options.len().saturating_sub(1));
                    QuestionAnswer::Nothing
                }
                KeyCode::Down | KeyCode::Tab => {
                    self.selected = if self.selected + 1 < options.len() { self.selected + 1 } else { 0 };
                    QuestionAnswer::Nothing
                }
                KeyCode::Char(digit @ '1'..='9') => {
                    let at = digit as usize - '1' as usize;
                    options
                        .get(at)
                        .map_or(QuestionAnswer::Nothing, |text| QuestionAnswer::Value(text.clone()))
                }
                KeyCode::Enter => options
                    .get(self.selected)
                    .map_or(QuestionAnswer::Cancelled, |text| QuestionAnswer::Value(text.clone())),
                KeyCode::Esc => QuestionAnswer::Cancelled,
                _ => QuestionAnswer::Other,
            },
            UiMethod::Confirm { .. } => match key.code {
                KeyCode::Char('y' | 'Y') => QuestionAnswer::Confirmed(true),
                KeyCode::Char('n' | 'N') => QuestionAnswer::Confirmed(false),
                KeyCode::Esc => QuestionAnswer::Cancelled,
                KeyCode::Char(_) | KeyCode::Enter => QuestionAnswer::Nothing,
                _ => QuestionAnswer::Other,
            },
            UiMethod::Editor { .. } => match key.code {
                KeyCode::Char('d') if with_control => QuestionAnswer::Value(self.editor.take()),
                KeyCode::Enter => {
                    self.editor.insert("\n");
                    QuestionAnswer::Nothing
                }
                KeyCode::Esc => QuestionAnswer::Cancelled,
                _ => self.typed(key),
            },
            _ => match key.code {
                KeyCode::Enter => QuestionAnswer::Value(self.editor.take()),
                KeyCode::Esc => QuestionAnswer::Cancelled,
                _ => self.typed(key),
            },
        }
    }

    fn words_key(&mut self, key: KeyEvent) -> QuestionAnswer {
        match key.code {
            KeyCode::Esc => {
                self.wants_words = false;
                QuestionAnswer::Nothing
            }
            KeyCode::Enter => {
                let words = self.editor.take();
                self.wants_words = false;
                match words.trim() {
                    "" => QuestionAnswer::Nothing,
                    words => QuestionAnswer::Permission(PermissionAnswer::Deny, Some(words.to_owned())),
                }
            }
            _ => self.typed(key),
        }
    }

    fn typed(&mut self, key: KeyEvent) -> QuestionAnswer {
        match key.code {
            KeyCode::Char(c) => self.editor.insert(&c.to_string()),
            KeyCode::Backspace => self.editor.edit(Edit::DeleteLeft),
            KeyCode::Delete => self.editor.edit(Edit::DeleteRight),
            KeyCode::Left => drop(self.editor.go(Move::Left, usize::MAX)),
            KeyCode::Right => drop(self.editor.go(Move::Right, usize::MAX)),
            KeyCode::Home => drop(self.editor.go(Move::LineStart, usize::MAX)),
            KeyCode::End => drop(self.editor.go(Move::LineEnd, usize::MAX)),
            _ => return QuestionAnswer::Other,
        }
        QuestionAnswer::Nothing
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn press(panel: &mut QuestionPanel, keys: &str) -> QuestionAnswer {
        let mut answer = QuestionAnswer::Nothing;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '↓' => KeyCode::Down,
                c => KeyCode::Char(c),
            };
            answer = panel.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        answer
    }

    fn panel(method: serde_json::Value) -> QuestionPanel {
        let mut request = method;
        request["id"] = json!("i");
        QuestionPanel::new(serde_json::from_value(request).unwrap())
    }

    fn permission() -> QuestionPanel {
        panel(json!({
            "method": "permission", "title": "t", "tool": "bash", "command": "make", "reason": "r", "timeout": 1, "deadline": 0,
            "options": [{"decision": "once", "text": "Yes"}, {"decision": "deny", "text": "No"}],
        }))
    }

    #[test]
    fn keys_answer_a_question_about_a_call() {
        use PermissionAnswer::{Deny, Once};
        assert_eq!(press(&mut permission(), "y"), QuestionAnswer::Permission(Once, None));
        assert_eq!(press(&mut permission(), "xan"), QuestionAnswer::Permission(Deny, None));
        assert_eq!(press(&mut permission(), "a"), QuestionAnswer::Nothing);
        assert_eq!(press(&mut permission(), "\n"), QuestionAnswer::Nothing);
        let words = Some("use tests".to_owned());
        assert_eq!(press(&mut permission(), "muse tests\n"), QuestionAnswer::Permission(Deny, words));
        assert_eq!(press(&mut permission(), "mx\x1by"), QuestionAnswer::Permission(Once, None));
    }

    #[test]
    fn dialogs_have_answers() {
        let select = || panel(json!({"method": "select", "title": "t", "options": ["a", "b"]}));
        assert_eq!(press(&mut select(), "↓\n"), QuestionAnswer::Value("b".into()));
        assert_eq!(press(&mut select(), "1"), QuestionAnswer::Value("a".into()));
        assert_eq!(press(&mut select(), "3\x1b"), QuestionAnswer::Cancelled);
        let confirm = || panel(json!({"method": "confirm", "title": "t", "message": "m"}));
        assert_eq!(press(&mut confirm(), "xn"), QuestionAnswer::Confirmed(false));
        let input = || panel(json!({"method": "input", "title": "t"}));
        assert_eq!(press(&mut input(), "hi\n"), QuestionAnswer::Value("hi".into()));
        let mut editor = panel(json!({"method": "editor", "title": "t", "prefill": "a"}));
        press(&mut editor, "\nb");
        let answer = editor.key(KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL));
        assert_eq!(answer, QuestionAnswer::Value("a\nb".into()));
    }
}
