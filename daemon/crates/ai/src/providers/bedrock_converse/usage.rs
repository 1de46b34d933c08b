//! Token counts.

use agentd_protocol::message::{Cost, Usage};

use super::wire::incoming;

/// The counts of an answer. The input is without what was read from or written to the cache.
pub(super) fn usage(report: &incoming::Usage) -> Usage {
    let count = Option::unwrap_or_default;
    let (input, output): (u64, u64) = (count(report.input_tokens), count(report.output_tokens));
    let (cache_read, cache_write) =
        (count(report.cache_read_input_tokens), count(report.cache_write_input_tokens));
    let sum = [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
    let hour = report.cache_details.iter().filter(|detail| detail.ttl.as_deref() == Some("1h"));
    let hour = hour.filter_map(|detail| detail.input_tokens).fold(0, u64::saturating_add);
    Usage {
        input,
        output,
        cache_read,
        cache_write,
        cache_write1h: Some(hour).filter(|hour| *hour > 0),
        reasoning: None,
        total_tokens: report.total_tokens.filter(|total| *total > 0).unwrap_or(sum),
        cost: Cost::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(report: &str, expected: Usage) {
        assert_eq!(usage(&serde_json::from_str(report).unwrap()), expected, "{report}");
    }

    #[test]
    fn counts() {
        let none = Usage { cost: Cost::default(), ..Usage::default() };
        check(
            r#"{"inputTokens":10,"outputTokens":4,"totalTokens":14}"#,
            Usage { input: 10, output: 4, total_tokens: 14, ..none.clone() },
        );
        check(
            r#"{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheWriteInputTokens":9,"cacheDetails":
                [{"ttl":"5m","inputTokens":4},{"ttl":"1h","inputTokens":5}]}"#,
            Usage {
                input: 1,
                output: 2,
                cache_read: 3,
                cache_write: 9,
                cache_write1h: Some(5),
                total_tokens: 15,
                ..none.clone()
            },
        );
        check(r#"{"inputTokens":null,"outputTokens":-1,"cacheDetails":null}"#, none);
    }
}
