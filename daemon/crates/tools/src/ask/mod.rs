//! The tool `ask`: questions of the model to the user, with answers to choose from.

mod question;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    ask::ASK_TOOL,
    message::ContentBlock,
    tool::{ToolResult, ToolSpec},
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::question::{Answered, Choices, Picked, Question, read_questions};

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: ASK_TOOL.to_owned(),
        description: "Ask the user, where the work cannot go on well without a decision that is theirs. Each question has answers to \
                      choose from; the user can always type another one, so leave out entries like \"Other\". multi: more than one \
                      may be chosen. recommended: the index of the answer that you would take."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": question::MAX_QUESTIONS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "A short name, by which the answer is given back"},
                            "question": {"type": "string", "description": "The question, in full"},
                            "header": {"type": "string", "description": "A word or two above it"},
                            "options": {
                                "type": "array",
                                "minItems": 1,
                                "maxItems": question::MAX_OPTIONS,
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "label": {"type": "string", "description": "The answer, in a few words"},
                                        "description": {"type": "string", "description": "What follows from it"},
                                    },
                                    "required": ["label"],
                                },
                            },
                            "multi": {"type": "boolean", "description": "Whether more than one may be chosen"},
                            "recommended": {"type": "integer", "minimum": 0, "description": "The index of the recommended answer"},
                        },
                        "required": ["id", "question", "options"],
                    },
                },
            },
            "required": ["questions"],
        }),
        constrained_sampling: None,
    })
});

/// What became of a question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    /// The text that was chosen or typed.
    Text(String),
    /// A client closed the question without an answer.
    Declined,
    /// No client was there to answer in the time that questions wait, or the question was given up.
    Nobody,
}

/// Reaches the user of a session through its clients.
pub trait AskUser: Send + Sync {
    /// Asks to choose one of `options`; the answer may be another text. Cancel safety: fire `cancel` to take the question back.
    fn choose<'a>(
        &'a self,
        title: String,
        options: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, UserAnswer>;

    /// Asks for a line of text. Cancel safety: as [`Self::choose`].
    fn type_in<'a>(&'a self, title: String, cancel: &'a CancellationToken) -> BoxFuture<'a, UserAnswer>;
}

/// The tool.
pub struct AskTool {
    user: Arc<dyn AskUser>,
    /// The setting `ask.timeoutMs`: after this time the recommended answer, or the first, counts.
    timeout: Option<Duration>,
}

impl AskTool {
    /// The tool for this user. `timeout`: the setting `ask.timeoutMs`; `None` waits.
    #[must_use]
    pub fn new(user: Arc<dyn AskUser>, timeout: Option<Duration>) -> Self {
        Self { user, timeout }
    }

    async fn run(&self, arguments: &Value, cancel: &CancellationToken) -> Result<ToolResult, ToolError> {
        let questions = read_questions(arguments).map_err(ToolError)?;
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            answers.push(self.ask(question, cancel).await?);
        }
        let text = shown(&answers);
        let details = match answers.as_slice() {
            [one] => json!(one),
            all => json!({"results": all}),
        };
        Ok(ToolResult {
            content: vec![ContentBlock::text(text)],
            details: Some(details),
            ..ToolResult::default()
        })
    }

    /// Asks one question, with the time that it has.
    async fn ask(&self, question: Question, cancel: &CancellationToken) -> Result<Answered, ToolError> {
        let given_up = cancel.child_token();
        let mut asking = std::pin::pin!(self.answer_to(&question, &given_up));
        let over = async {
            match self.timeout {
                Some(timeout) => sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let picked = tokio::select! {
            biased;
            picked = &mut asking => picked?,
            () = over => {
                given_up.cancel();
                // The dialog is taken back before the run goes on. An answer that came first counts.
                match asking.await {
                    Ok(picked) => picked,
                    Err(_) => return Ok(question.answered(question.by_default(), true)),
                }
            }
        };
        Ok(question.answered(picked, false))
    }

    /// Asks until there is an answer.
    async fn answer_to(&self, question: &Question, cancel: &CancellationToken) -> Result<Picked, ToolError> {
        let mut choices = Choices::of(question);
        loop {
            let answer = self.user.choose(question.title(), choices.shown(), cancel).await;
            let text = said(answer, question, cancel)?;
            match choices.take(text) {
                question::Taken::Done(picked) => return Ok(picked),
                question::Taken::More => {}
                question::Taken::Typed => {
                    let typed = self.user.type_in(question.title(), cancel).await;
                    return Ok(choices.typed(said(typed, question, cancel)?));
                }
            }
        }
    }
}

/// The text of an answer.
fn said(answer: UserAnswer, question: &Question, cancel: &CancellationToken) -> Result<String, ToolError> {
    match answer {
        UserAnswer::Text(text) => Ok(text),
        _ if cancel.is_cancelled() => Err(ToolError("Operation aborted".to_owned())),
        UserAnswer::Declined => Err(ToolError(format!(
            "The user closed the question \"{}\" without an answer. Go on with what you can decide yourself, or say what you need to know.",
            question.question
        ))),
        UserAnswer::Nobody => Err(ToolError(format!(
            "Nobody answered the question \"{}\". Go on with what you can decide yourself, and say what you assumed.",
            question.question
        ))),
    }
}

/// The answers for the model.
fn shown(answers: &[Answered]) -> String {
    let mut text = "User answers:".to_owned();
    for Answered { id, selected_options, custom_input, timed_out, .. } in answers {
        let mut said: Vec<&str> = selected_options.iter().map(String::as_str).collect();
        said.extend(custom_input.as_deref());
        let said = if said.is_empty() { "(nothing chosen)".to_owned() } else { said.join(", ") };
        let note = if *timed_out { " (auto-selected after timeout)" } else { "" };
        text.push_str(&format!("\n{id}: {said}{note}"));
    }
    text
}

impl Tool for AskTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Ask the user to choose")
    }

    /// One question after the other.
    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Sequential
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move { self.run(&invocation.arguments, &invocation.cancel).await })
    }
}

#[cfg(test)]
mod tests;
