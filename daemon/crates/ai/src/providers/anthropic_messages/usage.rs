//! Token counts, which this API reports in pieces.

use agentd_protocol::message::{Cost, Usage};

use super::wire::incoming;

/// The counts of one answer so far.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Counts {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cache_write1h: Option<u64>,
    reasoning: Option<u64>,
}

impl Counts {
    /// Takes a report; what it leaves out stays as it was.
    pub(super) fn take(&mut self, report: &incoming::Usage) -> Usage {
        let set = |count: &mut u64, news: Option<u64>| *count = news.unwrap_or(*count);
        set(&mut self.input, report.input_tokens);
        set(&mut self.output, report.output_tokens);
        set(&mut self.cache_read, report.cache_read_input_tokens);
        set(&mut self.cache_write, report.cache_creation_input_tokens);
        self.cache_write1h = report.cache_creation.ephemeral_1h_input_tokens.or(self.cache_write1h);
        let reasoning = report.output_tokens_details.thinking_tokens.or(report.thinking_tokens);
        self.reasoning = reasoning.or(self.reasoning);
        let parts = [self.input, self.output, self.cache_read, self.cache_write];
        Usage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cache_write1h: self.cache_write1h,
            reasoning: self.reasoning,
            total_tokens: parts.into_iter().fold(0, u64::saturating_add),
            cost: Cost::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(counts: &mut Counts, report: &str) -> Usage {
        counts.take(&serde_json::from_str(report).unwrap())
    }

    #[test]
    fn what_is_left_out_stays() {
        let mut counts = Counts::default();
        let first = take(
            &mut counts,
            r#"{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,
                "cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":3}}"#,
        );
        let expected = Usage {
            input: 10,
            output: 1,
            cache_read: 5,
            cache_write: 7,
            cache_write1h: Some(3),
            reasoning: None,
            total_tokens: 23,
            cost: Cost::default(),
        };
        assert_eq!(first, expected);
        let second = take(
            &mut counts,
            r#"{"input_tokens":null,"output_tokens":20,"cache_creation":null,"output_tokens_details":{"thinking_tokens":9}}"#,
        );
        let expected = Usage { output: 20, reasoning: Some(9), total_tokens: 42, ..expected };
        assert_eq!(second, expected);
        let third =
            take(&mut counts, r#"{"input_tokens":2,"thinking_tokens":11,"output_tokens_details":null}"#);
        assert_eq!(third, Usage { input: 2, reasoning: Some(11), total_tokens: 34, ..expected });
    }
}
