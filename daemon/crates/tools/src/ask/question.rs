//! The questions of a call, and what choosing among their answers comes to. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Questions of one call.
pub(super) const MAX_QUESTIONS: usize = 8;

/// Answers of one question.
pub(super) const MAX_OPTIONS: usize = 20;

/// Characters of a question, and of an answer with its description: dialogs show them in full.
const MAX_TEXT: usize = 2_000;

/// The entry that leads to a line of text.
const TYPE_IT: &str = "Another answer…";

/// The entry that ends a choice of several answers.
const DONE: &str = "Done";

/// A question with its answers.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) question: String,
    #[serde(default)]
    header: Option<String>,
    options: Vec<AnswerOption>,
    #[serde(default)]
    multi: bool,
    #[serde(default)]
    recommended: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
struct AnswerOption {
    label: String,
    #[serde(default)]
    description: Option<String>,
}

/// What was picked: answers by their index, in their order, and a text of the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Picked {
    options: Vec<usize>,
    typed: Option<String>,
}

/// The answer to one question, as it stands in the result's details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    pub(super) id: String,
    pub(super) question: String,
    pub(super) options: Vec<String>,
    pub(super) multi: bool,
    pub(super) selected_options: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) custom_input: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) timed_out: bool,
}

/// The questions of a call.
///
/// # Errors
/// What is wrong with them, for the model.
pub(super) fn read_questions(arguments: &Value) -> Result<Vec<Question>, String> {
    let questions = arguments.get("questions").cloned().unwrap_or_default();
    let questions: Vec<Question> = serde_json::from_value(questions)
        .map_err(|error| format!("The questions cannot be read: {error}"))?;
    if questions.is_empty() || questions.len() > MAX_QUESTIONS {
        return Err(format!("A call asks 1 to {MAX_QUESTIONS} questions, not {}.", questions.len()));
    }
    for question in &questions {
        check(question)?;
    }
    Ok(questions)
}

fn check(question: &Question) -> Result<(), String> {
    let Question { id, question: text, options, recommended, .. } = question;
    if text.trim().is_empty() {
        return Err(format!("The question \"{id}\" has no text."));
    }
    if options.is_empty() || options.len() > MAX_OPTIONS {
        let count = options.len();
        return Err(format!(
            "The question \"{id}\" has {count} answers to choose from; 1 to {MAX_OPTIONS} are asked for."
        ));
    }
    if let Some(index) = recommended.filter(|index| *index >= options.len()) {
        return Err(format!(
            "The question \"{id}\" recommends answer {index}, and has {} (from 0).",
            options.len()
        ));
    }
    for (at, option) in options.iter().enumerate() {
        if option.label.trim().is_empty() {
            return Err(format!("Answer {at} of the question \"{id}\" is empty."));
        }
        if options[..at].iter().any(|other| other.label == option.label) {
            return Err(format!("The question \"{id}\" has the answer \"{}\" twice.", option.label));
        }
    }
    let lengths = options.iter().map(|it| it.label.len() + it.description.as_ref().map_or(0, String::len));
    if lengths.chain([text.len()]).any(|length| length > MAX_TEXT) {
        return Err(format!("A text of the question \"{id}\" is longer than {MAX_TEXT} bytes."));
    }
    Ok(())
}

impl Question {
    /// The title of its dialog.
    pub(super) fn title(&self) -> String {
        match &self.header {
            Some(header) if !header.trim().is_empty() => format!("{header}: {}", self.question),
            _ => self.question.clone(),
        }
    }

    /// What counts where nobody answers in time: the recommended answer, else the first.
    pub(super) fn by_default(&self) -> Picked {
        Picked { options: vec![self.recommended.unwrap_or(0)], typed: None }
    }

    pub(super) fn answered(&self, picked: Picked, timed_out: bool) -> Answered {
        let label = |index: &usize| self.options[*index].label.clone();
        Answered {
            id: self.id.clone(),
            question: self.question.clone(),
            options: self.options.iter().map(|option| option.label.clone()).collect(),
            multi: self.multi,
            selected_options: picked.options.iter().map(label).collect(),
            custom_input: picked.typed,
            timed_out,
        }
    }

    /// An answer as it is shown.
    fn line(&self, index: usize) -> String {
        let AnswerOption { label, description } = &self.options[index];
        let mut line = label.clone();
        if self.recommended == Some(index) {
            line.push_str(" (recommended)");
        }
        if let Some(description) = description.as_ref().filter(|text| !text.trim().is_empty()) {
            line.push_str(&format!(" — {description}"));
        }
        line
    }
}

/// A choice that is under way.
pub(super) struct Choices<'a> {
    question: &'a Question,
    chosen: Vec<bool>,
}

/// What an entry of a dialog comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The choice is made.
    Done(Picked),
    /// The dialog is shown again.
    More,
    /// The user wants to type.
    Typed,
}

impl<'a> Choices<'a> {
    pub(super) fn of(question: &'a Question) -> Self {
        Self { question, chosen: vec![false; question.options.len()] }
    }

    /// The entries of the dialog.
    pub(super) fn shown(&self) -> Vec<String> {
        let lines = (0..self.chosen.len()).map(|index| self.entry(index));
        let done = self.question.multi.then(|| DONE.to_owned());
        lines.chain(done).chain([TYPE_IT.to_owned()]).collect()
    }

    fn entry(&self, index: usize) -> String {
        let line = self.question.line(index);
        match (self.question.multi, self.chosen[index]) {
            (false, _) => line,
            (true, false) => format!("[ ] {line}"),
            (true, true) => format!("[x] {line}"),
        }
    }

    /// Takes what the user chose. A text that is no entry is an answer of the user's own; a plain label is that answer.
    pub(super) fn take(&mut self, text: String) -> Taken {
        let named = |index: &usize| self.entry(*index) == text || self.question.options[*index].label == text;
        let index = (0..self.chosen.len()).find(named);
        match index {
            Some(index) if self.question.multi => {
                self.chosen[index] = !self.chosen[index];
                Taken::More
            }
            Some(index) => Taken::Done(Picked { options: vec![index], typed: None }),
            None if text == TYPE_IT => Taken::Typed,
            None if self.question.multi && text == DONE => Taken::Done(self.picked(None)),
            None => Taken::Done(self.picked(Some(text))),
        }
    }

    /// The choice with a text of the user's own.
    pub(super) fn typed(&self, text: String) -> Picked {
        self.picked(Some(text))
    }

    fn picked(&self, typed: Option<String>) -> Picked {
        let options = (0..self.chosen.len()).filter(|index| self.chosen[*index]).collect();
        Picked { options, typed }
    }
}
