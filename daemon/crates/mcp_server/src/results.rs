//! Pure. Results as each era has them: of methods, of tools, and of a prompt's work.

use agentd_protocol::{
    error::ErrorCode,
    message::{StopReason, Usage},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::versions::Era;

/// How long clients may keep what a list has, in milliseconds: it is the same as long as this process runs.
const TTL_MS: u64 = 3_600_000;

/// Who this server is.
pub(crate) fn server_info(version: &str) -> Value {
    json!({"name": "agentd", "title": "agentd", "version": version})
}

/// A result, with what the era adds to every one.
pub(crate) fn of_era(era: Era, version: &str, kind: &str, mut result: Value) -> Value {
    if era == Era::Modern {
        result["resultType"] = kind.into();
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info(version);
    }
    result
}

/// A result that clients may keep.
pub(crate) fn cacheable(era: Era, mut result: Value) -> Value {
    if era == Era::Modern {
        result["ttlMs"] = TTL_MS.into();
        // Nothing in it depends on the user.
        result["cacheScope"] = "public".into();
    }
    result
}

/// The result of a tool that did what it was asked for. The text repeats the data, for clients that know texts alone.
pub(crate) fn of_tool(data: &impl Serialize) -> Value {
    // These are our own types, which JSON can represent.
    let data = serde_json::to_value(data).unwrap_or_default();
    json!({"content": [{"type": "text", "text": data.to_string()}], "structuredContent": data})
}

/// The result of a tool that failed: the caller's model reads why.
pub(crate) fn tool_error(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// What became of a prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) session: String,
    pub(crate) answer: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) error: Option<String>,
    pub(crate) code: Option<ErrorCode>,
    pub(crate) model: Option<String>,
    pub(crate) turns: u64,
    pub(crate) tool_calls: u64,
    pub(crate) usage: Usage,
    pub(crate) denied: Vec<Denied>,
    pub(crate) warnings: Vec<String>,
    pub(crate) was_aborted: bool,
}

/// A call that the guard rails did not let run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Denied {
    pub(crate) tool: String,
    pub(crate) reason: String,
}

impl Outcome {
    fn stop_reason(&self) -> &'static str {
        match self.stop_reason {
            _ if self.was_aborted => "aborted",
            Some(StopReason::Aborted) => "aborted",
            Some(StopReason::Error) => "error",
            _ if self.error.is_some() => "error",
            Some(StopReason::Length) => "length",
            _ => "stop",
        }
    }

    /// The result of `prompt`. What failed or was stopped is an error, and has all that there is.
    pub(crate) fn result(&self) -> Value {
        let stop_reason = self.stop_reason();
        let Usage { input, output, cache_read, cache_write, total_tokens, ref cost, .. } = self.usage;
        let mut data = json!({
            "sessionId": self.session,
            "answer": self.answer,
            "stopReason": stop_reason,
            "turns": self.turns,
            "toolCalls": self.tool_calls,
            "usage": {
                "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write, "total": total_tokens,
            },
            "costUsd": cost.total,
        });
        let failure = match stop_reason {
            "aborted" => Some("The work was stopped.".to_owned()),
            "error" => Some(self.error.clone().unwrap_or_else(|| "The model did not answer.".to_owned())),
            _ => None,
        };
        if stop_reason == "error" {
            data["error"] = failure.as_deref().into();
            data["code"] = json!(self.code.unwrap_or(ErrorCode::ModelFailed));
        }
        if let Some(model) = &self.model {
            data["model"] = model.as_str().into();
        }
        if !self.denied.is_empty() {
            data["denied"] = json!(self.denied);
        }
        if !self.warnings.is_empty() {
            data["warnings"] = json!(self.warnings);
        }
        let texts = [Some(self.answer.clone()).filter(|answer| !answer.is_empty()), failure.clone()];
        let texts = texts.into_iter().flatten().chain([self.summary(stop_reason)]);
        let content: Vec<Value> = texts.map(|text| json!({"type": "text", "text": text})).collect();
        let mut result = json!({"content": content, "structuredContent": data});
        if failure.is_some() {
            result["isError"] = true.into();
        }
        result
    }

    /// A line for models that see texts alone: the session's id, and what it took.
    fn summary(&self, stop_reason: &str) -> String {
        let mut line = format!(
            "[sessionId {}; {stop_reason}; turns {}; tool calls {}; tokens {}; ${:.4}",
            self.session, self.turns, self.tool_calls, self.usage.total_tokens, self.usage.cost.total
        );
        if !self.denied.is_empty() {
            line.push_str(&format!("; calls denied by the guard rails {}", self.denied.len()));
        }
        line.push(']');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;

    fn outcome() -> Outcome {
        Outcome { session: "s".into(), answer: "Done.".into(), turns: 1, ..Outcome::default() }
    }

    /// Everything that `prompt` gives is what its schema says.
    fn checked(outcome: &Outcome) -> Value {
        let tool = TOOLS.as_array().unwrap().iter().find(|tool| tool["name"] == "prompt").unwrap();
        let result = outcome.result();
        let validator = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        assert!(validator.is_valid(&result["structuredContent"]), "{result}");
        result
    }

    #[test]
    fn an_answer_is_told_with_the_session() {
        let result = checked(&Outcome { stop_reason: Some(StopReason::Stop), ..outcome() });
        assert_eq!(result["content"][0]["text"], "Done.");
        assert_eq!(
            result["content"][1]["text"],
            "[sessionId s; stop; turns 1; tool calls 0; tokens 0; $0.0000]"
        );
        assert_eq!(result.get("isError"), None);
        assert_eq!(result["structuredContent"].get("error"), None);
    }

    #[test]
    fn the_end_of_the_work_is_told() {
        for (stop_reason, was_aborted, expected, is_error) in [
            (Some(StopReason::Stop), false, "stop", false),
            (Some(StopReason::ToolUse), false, "stop", false),
            (Some(StopReason::Length), false, "length", false),
            (Some(StopReason::Aborted), false, "aborted", true),
            (Some(StopReason::Error), true, "aborted", true),
            (Some(StopReason::Error), false, "error", true),
            (None, false, "stop", false),
        ] {
            let result = checked(&Outcome { stop_reason, was_aborted, ..outcome() });
            assert_eq!(result["structuredContent"]["stopReason"], expected, "{stop_reason:?}");
            assert_eq!(result["isError"] == true, is_error, "{stop_reason:?}");
        }
        let refused = Outcome {
            stop_reason: Some(StopReason::Error),
            error: Some("no".into()),
            code: Some(ErrorCode::ModelRefused),
            denied: vec![Denied { tool: "bash".into(), reason: "a rule".into() }],
            ..outcome()
        };
        let result = checked(&refused);
        assert_eq!(result["structuredContent"]["code"], "model_refused");
        assert_eq!(result["content"][1]["text"], "no");
        assert!(result["content"][2]["text"].as_str().unwrap().ends_with("denied by the guard rails 1]"));
    }

    #[test]
    fn only_the_stateless_era_has_types_of_results() {
        assert_eq!(of_era(Era::Legacy, "1", "complete", cacheable(Era::Legacy, json!({}))), json!({}));
        let modern = of_era(Era::Modern, "1", "complete", cacheable(Era::Modern, json!({})));
        assert_eq!((&modern["resultType"], &modern["cacheScope"]), (&json!("complete"), &json!("public")));
        assert_eq!(modern["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "agentd");
    }
}
