//! Clients that run the cells of the tool `eval` of their session: a notebook, an editor with an interpreter of its own.

use serde::{Deserialize, Serialize};

use crate::{
    client_tools::{ToolCancelReason, ToolContent},
    error::{ErrorCode, Failure},
    frame::{FieldError, parse_params},
    message::null_as_default,
};

/// The most languages of one connection.
pub const MAX_EVAL_LANGUAGES: usize = 32;

/// The longest name of a language, in bytes.
pub const MAX_LANGUAGE_BYTES: usize = 128;

/// The fields of `set_eval_executor`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetEvalExecutorParams {
    /// The languages whose cells this client runs, as calls of `eval` name them: `py`, `js`, `jupyter:NAME`. They replace those of the command
    /// before. An empty list takes all of them back.
    pub languages: Vec<String>,
}

/// The answer to `set_eval_executor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvalExecutorLanguages {
    /// The languages of the client, in its order, each once.
    pub languages: Vec<String>,
}

/// A cell for this client: answer with `eval_result`, or with `eval_output` lines and then that. It comes after the `tool_execution_start` of
/// the call. It is no event of the session: it has no `seq`, and nobody else gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvalRequest {
    /// Names the request for its answers: a UUID of version 4.
    pub id: String,
    /// The id of the call in the session.
    pub tool_call_id: String,
    /// The language.
    pub language: String,
    /// The code of the cell.
    pub code: String,
    /// What it is for, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Seconds that the cell may take; absent for no limit. The daemon keeps the time, and sends `eval_cancel` when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Whether the interpreter is to be started anew first; absent for no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    /// The session's folder.
    pub cwd: String,
    /// The session.
    pub session_id: String,
}

/// A cell is to be stopped, and needs no answer any more: one that comes all the same is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvalCancel {
    /// Names this line: a UUID of version 4.
    pub id: String,
    /// The `id` of the request.
    pub target_id: String,
    /// Why.
    pub reason: ToolCancelReason,
    /// The session.
    pub session_id: String,
}

/// A piece of what a cell prints. No command: it has a response only if it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvalOutput {
    /// The `id` of the request.
    pub id: String,
    /// The text, which follows that of the pieces before.
    pub text: String,
}

/// The end of a cell. No command: it has a response only if it cannot be used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvalResult {
    /// The `id` of the request.
    pub id: String,
    /// Text that follows what was printed, such as the value of the last expression, and images; default nothing.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    /// Why the cell failed, for the model, such as a traceback; absent for one that did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl EvalOutput {
    /// The `type` of its line.
    pub const TYPE: &'static str = "eval_output";

    /// Reads it from its line.
    ///
    /// # Errors
    /// Names the field that is missing or unusable, and what was expected.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        parse_params(line)
    }
}

impl EvalResult {
    /// The `type` of its line.
    pub const TYPE: &'static str = "eval_result";

    /// Reads it from its line.
    ///
    /// # Errors
    /// Names the field that is missing or unusable, and what was expected.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        parse_params(line)
    }
}

/// The languages of a client, each once.
///
/// # Errors
/// `invalid_field`: there are too many, or one is no name.
pub fn executor_languages(given: Vec<String>) -> Result<Vec<String>, Failure> {
    let refused = |text: String| Failure::new(ErrorCode::InvalidField, text);
    if given.len() > MAX_EVAL_LANGUAGES {
        let found = given.len();
        return Err(refused(format!(
            "Invalid field \"languages\": expected at most {MAX_EVAL_LANGUAGES} languages, got {found}"
        )));
    }
    let mut languages: Vec<String> = Vec::with_capacity(given.len());
    for (index, language) in given.into_iter().enumerate() {
        let kernel = language.strip_prefix("jupyter:");
        let is_name = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !name.is_empty() && name.bytes().all(is_plain)
        };
        let is_known = matches!(language.as_str(), "py" | "js") || kernel.is_some_and(is_name);
        if !is_known || language.len() > MAX_LANGUAGE_BYTES {
            return Err(refused(format!(
                "Invalid field \"languages[{index}]\": expected py, js or jupyter:NAME, got {language:?}"
            )));
        }
        if !languages.contains(&language) {
            languages.push(language);
        }
    }
    Ok(languages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_those_of_calls_and_each_once() {
        let known =
            |names: &[&str]| executor_languages(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(known(&["py", "jupyter:ir", "py"]).unwrap(), ["py", "jupyter:ir"]);
        assert!(known(&[]).unwrap().is_empty());
        for name in ["", "python", "Py", "jupyter:", "jupyter:a b", &format!("jupyter:{}", "x".repeat(128))] {
            let failure = known(&["js", name]).unwrap_err();
            assert_eq!(failure.code, ErrorCode::InvalidField);
            assert!(failure.error.contains("languages[1]"), "{failure}");
        }
        let many: Vec<String> = (0..=MAX_EVAL_LANGUAGES).map(|number| format!("jupyter:k{number}")).collect();
        assert!(executor_languages(many).unwrap_err().error.contains("at most 32 languages, got 33"));
    }

    #[test]
    fn answers_are_read() {
        let line = r#"{"type":"eval_result","id":"r","content":[{"type":"text","text":"2"}],"error":null}"#;
        let result = EvalResult::parse(line).unwrap();
        assert_eq!((result.content.len(), result.error), (1, None));
        assert_eq!(EvalResult::parse(r#"{"id":"r","error":"no"}"#).unwrap().content, []);
        let error = EvalOutput::parse(r#"{"type":"eval_output","id":"r"}"#).unwrap_err();
        assert_eq!(error.to_string(), "Missing field \"text\"");
    }
}
