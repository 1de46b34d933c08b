//! Token counts as this API reports them.

use agentd_protocol::message::Usage;
use serde_json::Value;

/// Reads a usage report; `None` when it is none.
pub(super) fn usage(report: &Value) -> Option<Usage> {
    report.is_object().then_some(())?;
    let count = |value: &Value| value.as_u64();
    let prompt = count(&report["prompt_tokens"]).unwrap_or(0);
    let output = count(&report["completion_tokens"]).unwrap_or(0);
    let cached = count(&report["prompt_tokens_details"]["cached_tokens"])
        .or_else(|| count(&report["prompt_token_details"]["cached_tokens"]))
        .or_else(|| count(&report["num_cached_tokens"]));
    let cache_read = cached.unwrap_or(0).min(prompt);
    Some(Usage {
        input: prompt - cache_read,
        output,
        cache_read,
        reasoning: count(&report["completion_tokens_details"]["reasoning_tokens"]),
        total_tokens: count(&report["total_tokens"]).unwrap_or_else(|| prompt.saturating_add(output)),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_no_input() {
        let check = |report: Value, expected: [u64; 4]| {
            let found = usage(&report).unwrap();
            assert_eq!(
                [found.input, found.output, found.cache_read, found.total_tokens],
                expected,
                "{report}"
            );
        };
        check(json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}), [10, 5, 0, 15]);
        for cached in [
            json!({"prompt_tokens_details": {"cached_tokens": 4}}),
            json!({"prompt_token_details": {"cached_tokens": 4}}),
            json!({"num_cached_tokens": 4, "prompt_tokens_details": null}),
        ] {
            let mut report = json!({"prompt_tokens": 10, "completion_tokens": 5});
            report.as_object_mut().unwrap().extend(cached.as_object().unwrap().clone());
            check(report, [6, 5, 4, 15]);
        }
        check(json!({"prompt_tokens": 3, "num_cached_tokens": 9}), [0, 0, 3, 3]);
        assert_eq!(usage(&Value::Null), None);
    }
}
