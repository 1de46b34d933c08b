//! Dialogs of a session on a terminal: shown on stderr, answered by typed lines.

use std::{collections::VecDeque, time::Instant};

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionResponseParams},
    ui::{ExtensionUiRequest, NotifyType, UiMethod, UiRequestResolved, UiResponse},
};
use serde_json::Value;

use super::{
    permission_question::{self, HOW_TO_SAY, TypedKey},
    typed_lines::TypedLine,
};
use crate::{
    render::one_line,
    rpc::{CallError, Client, PermissionResponse},
};

/// The line that ends a text for an editor.
const END_OF_TEXT: &str = ".";

/// The words about a line that came before the dialog that is on the screen.
const TOO_EARLY: &str = "  That was typed before this was on the screen; type it again.\n";

/// The dialogs of a session that wait for an answer. The first one is on the screen.
#[derive(Debug, Default)]
pub(crate) struct PendingDialogs {
    session: String,
    waiting: VecDeque<ExtensionUiRequest>,
    /// The lines of a text that is not complete.
    lines: Vec<String>,
    /// Whether the next line has the words to the model that go with a no.
    wants_words: bool,
    /// Since when the first one is on the screen.
    shown_at: Option<Instant>,
    /// The last answer to a question about a call, until we are told that it counts.
    sent: Option<(String, PermissionAnswer)>,
    /// Whether diffs are coloured.
    colour: bool,
}

/// An answer that is to be sent.
#[derive(Debug, PartialEq)]
pub(crate) enum TypedAnswer {
    /// To a dialog.
    Dialog(UiResponse),
    /// To a question about a call, in this session.
    Permission(String, PermissionResponseParams),
}

impl TypedAnswer {
    /// Sends it. Whether it came first is told by an event.
    ///
    /// # Errors
    /// When the connection has ended.
    pub(crate) async fn send(&self, client: &Client) -> Result<(), CallError> {
        match self {
            Self::Dialog(response) => client.answer_question(response).await,
            Self::Permission(session, params) => {
                let session = Some(session.as_str()).filter(|session| !session.is_empty());
                client.tell::<PermissionResponse>(session, params).await
            }
        }
    }
}

/// The outcome of a typed line.
#[derive(Debug, PartialEq)]
pub(crate) enum TypedOutcome {
    /// The answer to send, and the text that shows the next dialog.
    Answer(Box<TypedAnswer>, String),
    /// The line is part of a longer text.
    More,
    /// The line is no answer; the text says what is one.
    Unclear(String),
}

impl PendingDialogs {
    /// No dialogs of a session yet.
    pub(crate) fn of(session: &str, colour: bool) -> Self {
        Self { session: session.to_owned(), colour, ..Self::default() }
    }

    /// Whether a dialog waits for an answer.
    pub(crate) fn is_asking(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a request; gives the text to show now.
    pub(crate) fn take(&mut self, request: ExtensionUiRequest) -> String {
        if !request.method.is_dialog() {
            return notice(&request.method);
        }
        // The request was part of the snapshot already.
        if self.waiting.iter().any(|waiting| waiting.id == request.id) {
            return String::new();
        }
        self.waiting.push_back(request);
        if self.waiting.len() == 1 { self.shown() } else { String::new() }
    }

    /// Removes a dialog that is over; gives the text about one that others answered.
    pub(crate) fn resolved(&mut self, resolved: &UiRequestResolved) -> String {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.id == resolved.id) else {
            return self.overtaken(resolved);
        };
        let removed = self.waiting.remove(at);
        if at > 0 {
            return String::new();
        }
        self.lines.clear();
        self.wants_words = false;
        if removed.is_some_and(|request| matches!(request.method, UiMethod::Permission(_))) {
            return permission_question::ended(resolved) + &self.shown();
        }
        let said = match &resolved.by {
            Some(by) => format!("  Answered by {}.\n", one_line(by)),
            None => "  Nobody answered in time.\n".to_owned(),
        };
        said + &self.shown()
    }

    /// The text about a question that we answered too late; nothing where our answer counts.
    fn overtaken(&mut self, resolved: &UiRequestResolved) -> String {
        let Some((_, sent)) = self.sent.take_if(|(id, _)| *id == resolved.id) else { return String::new() };
        if resolved.decision == Some(sent) {
            return String::new();
        }
        format!("  Your answer came too late.\n{}", permission_question::ended(resolved))
    }

    /// Takes a line that was typed at a question about a call.
    fn typed_key(&mut self, line: &str) -> TypedOutcome {
        let Some(ExtensionUiRequest { id, method: UiMethod::Permission(question) }) = self.waiting.front()
        else {
            return TypedOutcome::More;
        };
        let said = match (self.wants_words, line.trim()) {
            (true, "") => TypedKey::Unclear,
            (true, words) => TypedKey::Answer(PermissionAnswer::Deny, Some(words.to_owned())),
            (false, line) => permission_question::key(question, line),
        };
        self.wants_words = said == TypedKey::Words;
        let (decision, message) = match said {
            TypedKey::Words => return TypedOutcome::Unclear(HOW_TO_SAY.to_owned()),
            TypedKey::Unclear => return TypedOutcome::Unclear(permission_question::keys(question)),
            TypedKey::Answer(decision, message) => (decision, message),
        };
        let answer =
            PermissionResponseParams { request_id: id.clone(), decision, message, client: String::new() };
        self.sent = Some((id.clone(), decision));
        self.waiting.pop_front();
        let answer = TypedAnswer::Permission(self.session.clone(), answer);
        TypedOutcome::Answer(Box::new(answer), self.shown())
    }

    /// Gives up all that waits, since nothing can be typed any more: the noes to be sent, and the text about it. A session that other
    /// clients follow, too, leaves the answers to them.
    pub(crate) fn input_ended(&mut self) -> (Vec<TypedAnswer>, &'static str) {
        self.lines.clear();
        self.wants_words = false;
        let given_up = std::mem::take(&mut self.waiting);
        if !self.session.is_empty() {
            return (Vec::new(), "  The input has ended; other clients can answer.\n");
        }
        let noes = given_up.into_iter().map(|request| self.no(request)).collect();
        (noes, "  The input has ended: that is a no.\n")
    }

    fn no(&self, request: ExtensionUiRequest) -> TypedAnswer {
        let ExtensionUiRequest { id, method } = request;
        if matches!(method, UiMethod::Permission(_)) {
            let answer = PermissionResponseParams {
                request_id: id,
                decision: PermissionAnswer::Deny,
                message: None,
                client: String::new(),
            };
            return TypedAnswer::Permission(self.session.clone(), answer);
        }
        TypedAnswer::Dialog(UiResponse { id, cancelled: Some(true.into()), ..UiResponse::default() })
    }

    /// Takes a line that was typed while a dialog waits.
    pub(crate) fn typed(&mut self, line: &TypedLine) -> TypedOutcome {
        if self.shown_at.is_some_and(|shown| line.at < shown) {
            return TypedOutcome::Unclear(TOO_EARLY.to_owned());
        }
        let line = line.text.as_str();
        let Some(request) = self.waiting.front() else { return TypedOutcome::More };
        if matches!(request.method, UiMethod::Permission(_)) {
            return self.typed_key(line);
        }
        let mut response = UiResponse {
            id: request.id.clone(),
            // An agentd of our own has one session, which nobody names.
            session_id: Some(self.session.clone()).filter(|session| !session.is_empty()),
            ..UiResponse::default()
        };
        let word = line.trim();
        let value = |text: &str| Some(Value::from(text));
        match &request.method {
            UiMethod::Editor { .. } if word != END_OF_TEXT => {
                self.lines.push(line.to_owned());
                return TypedOutcome::More;
            }
            UiMethod::Editor { .. } if !self.lines.is_empty() => {
                response.value = value(&self.lines.join("\n"));
            }
            UiMethod::Editor { .. } => response.cancelled = Some(true.into()),
            _ if word.is_empty() => response.cancelled = Some(true.into()),
            UiMethod::Select { options, .. } => {
                let numbered =
                    word.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
                let Some(chosen) = numbered.or_else(|| options.iter().find(|option| *option == word)) else {
                    return TypedOutcome::Unclear(how(&request.method));
                };
                response.value = value(chosen);
            }
            UiMethod::Confirm { .. } => match word.to_lowercase().as_str() {
                "y" | "yes" => response.confirmed = Some(true.into()),
                "n" | "no" => response.confirmed = Some(false.into()),
                _ => return TypedOutcome::Unclear(how(&request.method)),
            },
            _ => response.value = value(line),
        }
        self.waiting.pop_front();
        self.lines.clear();
        TypedOutcome::Answer(Box::new(TypedAnswer::Dialog(response)), self.shown())
    }

    /// The first dialog as text, which goes on the screen now.
    fn shown(&mut self) -> String {
        self.shown_at = Some(Instant::now());
        let Some(request) = self.waiting.front() else { return String::new() };
        let mut text = String::new();
        match &request.method {
            UiMethod::Permission(question) => return permission_question::shown(question, self.colour),
            UiMethod::Select { title, options, .. } => {
                text.push_str(&format!("? {}\n", one_line(title)));
                for (index, option) in options.iter().enumerate() {
                    text.push_str(&format!("  {}. {}\n", index + 1, one_line(option)));
                }
            }
            UiMethod::Confirm { title, message, .. } => {
                text.push_str(&format!("? {}\n  {}\n", one_line(title), one_line(message)));
            }
            UiMethod::Input { title, placeholder, .. } => {
                text.push_str(&format!("? {}\n", one_line(title)));
                if let Some(example) = placeholder {
                    text.push_str(&format!("  For example: {}\n", one_line(example)));
                }
            }
            UiMethod::Editor { title, prefill } => {
                text.push_str(&format!("? {}\n", one_line(title)));
                for line in prefill.iter().flat_map(|text| text.lines()) {
                    text.push_str(&format!("  | {}\n", one_line(line)));
                }
            }
            _ => {}
        }
        text + &how(&request.method)
    }
}

/// The instructions for an answer.
fn how(method: &UiMethod) -> String {
    match method {
        UiMethod::Select { options, .. } => {
            format!("  Type a number from 1 to {}; an empty line for none of them.\n", options.len())
        }
        UiMethod::Confirm { .. } => "  Type y or n; an empty line for no answer.\n".to_owned(),
        UiMethod::Editor { .. } => {
            "  Type the text, and a line with a single dot behind it; the dot alone for no answer.\n"
                .to_owned()
        }
        _ => "  Type it; an empty line for no answer.\n".to_owned(),
    }
}

/// The text of a notice, where a terminal can show it.
fn notice(method: &UiMethod) -> String {
    match method {
        UiMethod::Notify { message, notify_type } => {
            let kind = match notify_type {
                Some(NotifyType::Error) => "Error: ",
                Some(NotifyType::Warning) => "Warning: ",
                Some(NotifyType::Info) | None => "",
            };
            format!("{kind}{}\n", one_line(message))
        }
        UiMethod::SetStatus { status_key, status_text: Some(text) } => {
            format!("{}: {}\n", one_line(status_key), one_line(text))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str, method: UiMethod) -> ExtensionUiRequest {
        ExtensionUiRequest { id: id.into(), method }
    }

    fn select(id: &str) -> ExtensionUiRequest {
        let options = vec!["tea\x1b".into(), "coffee".into()];
        request(id, UiMethod::Select { title: "Which?".into(), options, timeout: None })
    }

    fn typed(questions: &mut PendingDialogs, text: &str) -> TypedOutcome {
        questions.typed(&TypedLine { text: text.to_owned(), at: Instant::now() })
    }

    /// The response to the only dialog.
    fn answer(method: UiMethod, lines: &[&str]) -> String {
        let mut questions = PendingDialogs::of("s", false);
        questions.take(request("i", method));
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            assert_eq!(typed(&mut questions, line), TypedOutcome::More);
        }
        let TypedOutcome::Answer(answer, next) = typed(&mut questions, last) else { panic!("no answer") };
        let TypedAnswer::Dialog(response) = *answer else { panic!("another answer") };
        assert!(next.is_empty() && !questions.is_asking());
        serde_json::to_string(&response).unwrap().replace(r#"{"id":"i","sessionId":"s","#, "{")
    }

    #[test]
    fn answers_are_typed() {
        let confirm = || UiMethod::Confirm { title: "t".into(), message: "m".into(), timeout: None };
        let editor = || UiMethod::Editor { title: "t".into(), prefill: None };
        let input = || UiMethod::Input { title: "t".into(), placeholder: None, timeout: None };
        assert_eq!(answer(select("i").method, &["2"]), r#"{"value":"coffee"}"#);
        assert_eq!(answer(select("i").method, &["coffee"]), r#"{"value":"coffee"}"#);
        assert_eq!(answer(select("i").method, &[" "]), r#"{"cancelled":true}"#);
        assert_eq!(answer(confirm(), &["Y"]), r#"{"confirmed":true}"#);
        assert_eq!(answer(confirm(), &["no"]), r#"{"confirmed":false}"#);
        assert_eq!(answer(input(), &["a b"]), r#"{"value":"a b"}"#);
        assert_eq!(answer(editor(), &["a", "", "b", "."]), r#"{"value":"a\n\nb"}"#);
        assert_eq!(answer(editor(), &["."]), r#"{"cancelled":true}"#);
    }

    #[test]
    fn what_does_not_answer_is_asked_again() {
        let mut questions = PendingDialogs::of("s", false);
        let shown = questions.take(select("i"));
        assert_eq!(
            shown,
            "? Which?\n  1. tea \n  2. coffee\n  Type a number from 1 to 2; an empty line for none of them.\n"
        );
        for line in ["0", "3", "water"] {
            assert!(
                matches!(typed(&mut questions, line), TypedOutcome::Unclear(text) if text.contains("from 1 to 2"))
            );
        }
        assert!(questions.is_asking());
    }

    #[test]
    fn questions_come_one_after_the_other() {
        let mut questions = PendingDialogs::of("s", false);
        questions.take(select("a"));
        assert_eq!(questions.take(select("b")), "");
        assert_eq!(questions.take(select("b")), "");
        let resolved =
            |id: &str| UiRequestResolved { id: id.into(), by: Some("editor".into()), decision: None };
        let said = questions.resolved(&resolved("a"));
        assert!(said.starts_with("  Answered by editor.\n? Which?\n"), "{said}");
        let TypedOutcome::Answer(answer, next) = typed(&mut questions, "1") else { panic!("no answer") };
        let TypedAnswer::Dialog(response) = *answer else { panic!("another answer") };
        assert_eq!((response.id.as_str(), next.as_str()), ("b", ""));
        // Our own answer needs no text.
        assert_eq!(questions.resolved(&resolved("b")), "");
    }

    #[test]
    fn a_line_from_before_the_question_answers_nothing() {
        let mut questions = PendingDialogs::of("s", false);
        questions.take(select("a"));
        questions.take(select("b"));
        let early = TypedLine { text: "1".into(), at: Instant::now() };
        assert!(matches!(questions.typed(&early), TypedOutcome::Answer(..)));
        // The second one came on the screen with the answer to the first.
        assert_eq!(questions.typed(&early), TypedOutcome::Unclear(TOO_EARLY.to_owned()));
        assert!(matches!(typed(&mut questions, "1"), TypedOutcome::Answer(..)));
    }

    #[test]
    fn the_end_of_the_input_is_a_no_where_nobody_else_can_answer() {
        for (session, count) in [("", 2), ("s", 0)] {
            let mut questions = PendingDialogs::of(session, false);
            questions.take(select("a"));
            questions.take(select("b"));
            let (noes, text) = questions.input_ended();
            assert_eq!((noes.len(), questions.is_asking(), text.contains("a no")), (count, false, count > 0));
        }
    }
}
