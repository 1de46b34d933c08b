//! What several parts show: notices, questions, that work goes on.

use std::time::Instant;

use agentd_protocol::ui::ExtensionUiRequest;

use crate::{
    app::chat::{Activity, Chat},
    panels::QuestionPanel,
    transcript::{Entry, NoticeLevel},
};

/// Appends a notice.
pub(super) fn notice(chat: &mut Chat, level: NoticeLevel, text: impl Into<String>) {
    chat.transcript.push(Entry::notice(level, text));
}

/// Puts a question behind those that wait, and on the screen where none is.
pub(super) fn ask(chat: &mut Chat, request: ExtensionUiRequest) {
    if chat.questions.iter().any(|waiting| waiting.id == request.id) {
        return;
    }
    chat.questions.push_back(request);
    show_question(chat);
}

/// Shows the first question that waits.
pub(super) fn show_question(chat: &mut Chat) {
    let first = chat.questions.front();
    let is_shown =
        chat.question.as_ref().zip(first).is_some_and(|(shown, first)| shown.request.id == first.id);
    if !is_shown {
        chat.question = first.cloned().map(QuestionPanel::new);
    }
}

/// Notes that work goes on.
pub(super) fn at_work(chat: &mut Chat, what: &str) {
    match &mut chat.activity {
        Some(activity) => what.clone_into(&mut activity.what),
        None => chat.activity = Some(Activity { since: Instant::now(), what: what.to_owned() }),
    }
}
