//! Token counts as servers of this API report them, and what the service tier makes of their price.

use agentd_protocol::{
    message::{Cost, Usage},
    model::Model,
};
use serde_json::Value;

use crate::cost;

/// Reads a usage report; `None` when it is none. `tier` is the service tier that answered.
pub(super) fn usage(report: &Value, tier: Option<&str>, model: &Model) -> Option<Usage> {
    let report = report.as_object()?;
    let number = |value: Option<&Value>| {
        let value = value?;
        // Some servers count in floats.
        value.as_u64().or_else(|| value.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64))
    };
    let top = |name: &str| number(report.get(name));
    let detail =
        |group: &str, name: &str| number(report.get(group).and_then(|group| group.get(name))).unwrap_or(0);
    let prompt = top("input_tokens").unwrap_or(0);
    let output = top("output_tokens").unwrap_or(0);
    let cache_read = detail("input_tokens_details", "cached_tokens").min(prompt);
    let cache_write = detail("input_tokens_details", "cache_write_tokens").min(prompt - cache_read);
    let mut usage = Usage {
        input: prompt - cache_read - cache_write,
        output,
        cache_read,
        cache_write,
        cache_write1h: None,
        reasoning: Some(detail("output_tokens_details", "reasoning_tokens")),
        total_tokens: top("total_tokens").unwrap_or_else(|| prompt.saturating_add(output)),
        cost: Cost::default(),
    };
    if let Some(factor) = tier.and_then(|tier| factor(tier, &model.id)) {
        usage.cost = scaled(cost(&model.cost, &usage), factor);
    }
    Some(usage)
}

/// What a service tier costs, as a multiple of the listed prices; `None` for the one that they are for.
fn factor(tier: &str, model: &str) -> Option<f64> {
    match tier {
        "flex" => Some(0.5),
        "priority" | "fast" if model == "gpt-5.5" => Some(2.5),
        "priority" | "fast" => Some(2.0),
        _ => None,
    }
}

fn scaled(cost: Cost, factor: f64) -> Cost {
    let (input, output) = (cost.input * factor, cost.output * factor);
    let (cache_read, cache_write) = (cost.cache_read * factor, cost.cache_write * factor);
    let total = input + output + cache_read + cache_write;
    Cost { input, output, cache_read, cache_write, total, total_from_provider: cost.total_from_provider }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::model::ModelCost;
    use serde_json::json;

    use super::*;

    fn model(id: &str) -> Model {
        let cost = ModelCost { input: 2.0, output: 8.0, cache_read: 0.5, ..ModelCost::default() };
        Model { id: id.into(), cost, ..Model::placeholder() }
    }

    fn check(report: Value, expected: [u64; 6]) {
        let found = usage(&report, None, &model("m")).unwrap();
        let reasoning = found.reasoning.unwrap();
        let total = found.total_tokens;
        assert_eq!(
            [found.input, found.output, found.cache_read, found.cache_write, reasoning, total],
            expected,
            "{report}"
        );
        assert_eq!(found.cost, Cost::default());
    }

    #[test]
    fn cached_tokens_are_no_input() {
        check(json!({"input_tokens": 100, "output_tokens": 20}), [100, 20, 0, 0, 0, 120]);
        check(
            json!({"input_tokens": 50, "output_tokens": 9, "total_tokens": 60,
                "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
                "output_tokens_details": {"reasoning_tokens": 7}}),
            [35, 9, 10, 5, 7, 60],
        );
        check(json!({"input_tokens": 5.0, "input_tokens_details": {"cached_tokens": 9}}), [0, 0, 5, 0, 0, 5]);
        check(json!({"input_tokens": 5, "input_tokens_details": null}), [5, 0, 0, 0, 0, 5]);
        assert_eq!(usage(&Value::Null, None, &model("m")), None);
    }

    fn check_tier(tier: &str, id: &str, expected: f64) {
        let report = json!({"input_tokens": 1_000_000, "output_tokens": 1_000_000});
        let cost = usage(&report, Some(tier), &model(id)).unwrap().cost;
        assert_eq!((cost.input, cost.output), (2.0 * expected, 8.0 * expected), "{tier}");
        assert_eq!((cost.total, cost.total_from_provider.is_some()), (10.0 * expected, expected > 0.0));
    }

    #[test]
    fn the_service_tier_changes_the_price() {
        check_tier("flex", "m", 0.5);
        check_tier("priority", "m", 2.0);
        check_tier("fast", "m", 2.0);
        check_tier("priority", "gpt-5.5", 2.5);
        // Priced as usual, by whoever adds up the answer.
        check_tier("default", "m", 0.0);
    }
}
