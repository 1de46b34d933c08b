//! Token counts as servers of this API report them.

use agentd_protocol::message::{Cost, Usage};
use serde_json::Value;

/// Reads a usage report; `None` when it is none. `reports_cost` says whether its `cost` is what is paid.
pub(super) fn usage(report: &Value, reports_cost: bool) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |value: Option<&Value>| {
        let value = value?;
        // Some servers count in floats.
        value.as_u64().or_else(|| value.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64))
    };
    let top = |name: &str| number(report.get(name));
    let detail = |group: &str, name: &str| number(report.get(group)?.get(name));
    let prompt = top("prompt_tokens").unwrap_or(0);
    let output = top("completion_tokens").unwrap_or(0);
    let cache_read = detail("prompt_tokens_details", "cached_tokens")
        .or_else(|| top("prompt_cache_hit_tokens"))
        .or_else(|| top("cached_tokens"))
        .unwrap_or(0)
        .min(prompt);
    let cache_write =
        detail("prompt_tokens_details", "cache_write_tokens").unwrap_or(0).min(prompt - cache_read);
    let cost = report.get("cost").and_then(Value::as_f64).filter(|_| reports_cost);
    Some(Usage {
        input: prompt - cache_read - cache_write,
        output,
        cache_read,
        cache_write,
        cache_write1h: None,
        reasoning: Some(detail("completion_tokens_details", "reasoning_tokens").unwrap_or(0)),
        total_tokens: prompt.saturating_add(output),
        cost: match cost {
            Some(total) => Cost { total, total_from_provider: Some(true), ..Cost::default() },
            None => Cost::default(),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(report: Value, expected: (u64, u64, u64, u64, u64, u64)) {
        let found = usage(&report, false).unwrap();
        let parts = (found.input, found.output, found.cache_read, found.cache_write);
        assert_eq!(
            (parts.0, parts.1, parts.2, parts.3, found.reasoning.unwrap(), found.total_tokens),
            expected
        );
    }

    #[test]
    fn cached_tokens_are_no_input() {
        check(json!({"prompt_tokens": 100, "completion_tokens": 20}), (100, 20, 0, 0, 0, 120));
        check(
            json!({"prompt_tokens": 50, "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 1}}),
            (35, 2, 10, 5, 1, 52),
        );
        check(json!({"prompt_tokens": 50, "prompt_cache_hit_tokens": 20}), (30, 0, 20, 0, 0, 50));
        check(json!({"prompt_tokens": 50.0, "cached_tokens": 60}), (0, 0, 50, 0, 0, 50));
        check(json!({"prompt_tokens": 5, "prompt_tokens_details": null}), (5, 0, 0, 0, 0, 5));
    }

    #[test]
    fn a_reported_cost_counts_where_it_is_what_is_paid() {
        let report = json!({"prompt_tokens": 1, "cost": 0.25});
        let cost = usage(&report, true).unwrap().cost;
        assert_eq!((cost.total, cost.total_from_provider), (0.25, Some(true)));
        assert_eq!(usage(&report, false).unwrap().cost, Cost::default());
        assert_eq!(usage(&Value::Null, true), None);
    }
}
