//! Token counts as this API reports them.

use agentd_protocol::message::Usage;
use serde_json::Value;

/// Reads a usage report; `None` when it is none.
pub(super) fn usage(report: &Value) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |name: &str| report.get(name).and_then(Value::as_u64);
    let count = |name: &str| number(name).unwrap_or(0);
    let prompt = count("promptTokenCount");
    let cache_read = count("cachedContentTokenCount").min(prompt);
    let thoughts = count("thoughtsTokenCount");
    let output = count("candidatesTokenCount").saturating_add(thoughts);
    // Results of the provider's own tools are read like a prompt.
    let tool_use = count("toolUsePromptTokenCount");
    Some(Usage {
        input: (prompt - cache_read).saturating_add(tool_use),
        output,
        cache_read,
        reasoning: Some(thoughts),
        total_tokens: number("totalTokenCount")
            .unwrap_or_else(|| prompt.saturating_add(tool_use).saturating_add(output)),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_no_input_and_thoughts_are_output() {
        let check = |report: Value, expected: [u64; 5]| {
            let found = usage(&report).unwrap();
            let found =
                [found.input, found.output, found.cache_read, found.reasoning.unwrap(), found.total_tokens];
            assert_eq!(found, expected, "{report}");
        };
        check(
            json!({"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}),
            [100, 20, 0, 0, 120],
        );
        check(
            json!({"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 20,
                "thoughtsTokenCount": 7, "totalTokenCount": 127}),
            [40, 27, 60, 7, 127],
        );
        check(json!({"promptTokenCount": 5, "toolUsePromptTokenCount": 3}), [8, 0, 0, 0, 8]);
        check(json!({"cachedContentTokenCount": 9, "promptTokenCount": null}), [0, 0, 0, 0, 0]);
        assert_eq!(usage(&Value::Null), None);
    }
}
