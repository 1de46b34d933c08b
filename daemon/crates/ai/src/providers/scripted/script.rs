//! The format of scripts; `docs/scripted-model.md` describes it for people.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The lowest and the highest speed, in tokens per second.
const SLOWEST: f64 = 0.001;
const FASTEST: f64 = 1_000_000.0;

/// A script.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Script {
    /// The steps in order.
    pub(super) steps: Vec<ScriptStep>,
    /// Whether requests may hold tool calls without results, as after a crash.
    #[serde(default)]
    pub(super) allow_open_calls: bool,
    /// The sizes of the deltas into which whole texts are cut.
    pub(super) chunks: Option<ChunkSizes>,
    /// The speed of deltas.
    pub(super) tokens_per_second: Option<f64>,
    /// Whether token counts simulate a provider with a prompt cache.
    #[serde(default)]
    pub(super) prompt_cache: bool,
}

/// Bounds of the random sizes of deltas, in tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChunkSizes {
    pub(super) min: u32,
    pub(super) max: u32,
    /// The seed of the random sizes.
    pub(super) seed: u64,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self { min: 3, max: 5, seed: 0 }
    }
}

/// One answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ScriptStep {
    /// Chooses this step for every request that it fits; without it, the step has its place in the order.
    pub(super) when: Option<Conditions>,
    /// Conditions that the request has to fulfil.
    #[serde(default)]
    pub(super) expect: Conditions,
    /// The actions of the answer.
    #[serde(default)]
    pub(super) emit: Vec<ScriptAction>,
}

/// Conditions on a request; all that are given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Conditions {
    pub(super) prompt: Option<String>,
    pub(super) prompt_contains: Option<String>,
    pub(super) system_contains: Option<String>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) has_tool: Option<String>,
    pub(super) messages: Option<usize>,
    pub(super) answers: Option<usize>,
    pub(super) results: Option<usize>,
    pub(super) result_contains: Option<String>,
    pub(super) result_is_error: Option<bool>,
    pub(super) images: Option<usize>,
    pub(super) thinking_level: Option<String>,
    pub(super) model: Option<String>,
}

/// One action of an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) enum ScriptAction {
    /// A block of text.
    Text(Chunks),
    /// A block of reasoning.
    Thinking(Chunks),
    /// A tool call.
    ToolCall(Call),
    /// Tokens.
    Usage(Tokens),
    /// The id of the answer.
    ResponseId(String),
    /// Ends the answer; without it, it ends after the last action.
    Stop(Stop),
    /// A block of text that is the model's refusal, as which the answer ends.
    Refusal(Chunks),
    /// Fails the answer.
    Fail(Fail),
    /// Waits until a process has opened a named pipe for writing.
    WaitForFile(String),
    /// Sends nothing more until the request is aborted.
    Hang(bool),
}

/// A text, whole or in pieces.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Chunks {
    Whole(String),
    Pieces(Vec<String>),
}

impl Chunks {
    pub(super) fn pieces(&self) -> &[String] {
        match self {
            Self::Whole(text) => std::slice::from_ref(text),
            Self::Pieces(pieces) => pieces,
        }
    }
}

/// A tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Call {
    pub(super) name: String,
    /// Generated if absent.
    pub(super) id: Option<String>,
    /// The arguments, sent in one piece.
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    /// The arguments as text, which need not be JSON, in these pieces.
    pub(super) arguments_text: Option<Chunks>,
}

/// Tokens of an answer.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
#[derive(Default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) reasoning: u64,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Stop {
    #[serde(rename = "stop")]
    Done,
    Length,
    ToolUse,
}

/// A failure of an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    pub(super) message: String,
    /// Classified by the message if absent.
    pub(super) kind: Option<ScriptedFailureKind>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ScriptedFailureKind {
    Retryable,
    Overflow,
    Auth,
    /// The provider cannot do anything with the request.
    #[serde(alias = "refused")]
    InvalidRequest,
    ModelRefusal,
    Fatal,
}

/// A script that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScriptError {
    #[error("{0}")]
    Whole(serde_json::Error),
    #[error("line {line}: {error}")]
    Line { line: usize, error: serde_json::Error },
    #[error("{0}")]
    Value(&'static str),
}

impl Script {
    /// Reads a script: one JSON object, or a step on each line.
    pub(super) fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let is_step = |line: &str| matches!(serde_json::from_str::<Map<String, Value>>(line), Ok(object) if !object.contains_key("steps"));
        if !lines.next().is_some_and(|(_, first)| is_step(first)) {
            let script: Self = serde_json::from_str(text).map_err(ScriptError::Whole)?;
            return script.checked();
        }
        let steps =
            text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(index, line)| {
                serde_json::from_str(line).map_err(|error| ScriptError::Line { line: index + 1, error })
            });
        Ok(Self { steps: steps.collect::<Result<_, _>>()?, ..Self::default() })
    }

    fn checked(self) -> Result<Self, ScriptError> {
        if self.chunks.is_some_and(|sizes| sizes.min == 0 || sizes.max < sizes.min) {
            return Err(ScriptError::Value(
                "chunks needs a min of at least 1 and a max that is not below it",
            ));
        }
        // NaN is out of range, too.
        if self.tokens_per_second.is_some_and(|speed| !(SLOWEST..=FASTEST).contains(&speed)) {
            return Err(ScriptError::Value("tokensPerSecond has to be between 0.001 and 1000000"));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_an_object_or_lines() {
        let step = r#"{"emit":[{"text":"a"},{"toolCall":{"name":"x","argumentsText":["{","}"]}},{"stop":"length"}]}"#;
        assert_eq!(Script::parse(&format!("{step}\n\n{step}\n")).unwrap().steps.len(), 2);
        let script = Script::parse(&format!("{{\n\"allowOpenCalls\": true, \"steps\":[{step}]}}")).unwrap();
        assert!(script.allow_open_calls);
        assert_eq!(script.steps[0].emit.len(), 3);
        assert_eq!(Script::parse(r#"{"steps":[]}"#).unwrap().steps.len(), 0);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert!(
            error("{\"emit\":[]}\n{\"emit\":[{\"txt\":1}]}").starts_with("line 2: unknown variant `txt`")
        );
        assert!(error("{\"steps\":[{\"expct\":{}}]}").contains("unknown field `expct`"));
        assert!(error(r#"{"steps":[],"chunks":{"min":0}}"#).contains("a min of at least 1"));
        assert!(error(r#"{"steps":[],"chunks":{"min":6}}"#).contains("a max that is not below it"));
        assert!(error(r#"{"steps":[],"tokensPerSecond":0}"#).contains("between 0.001 and 1000000"));
        assert!(error("").contains("EOF"));
        assert!(error("hello").contains("expected value"));
    }
}
