//! What a model call can take at most, before it is made. Pure.
//!
//! The input is counted by the provider's own last count of the transcript, and by a bound for what came after it: a token holds at
//! least one byte of UTF-8, and words of letters are cut into pieces of three letters or more. The output is bounded by the limit that
//! the request carries.

use agentd_protocol::{
    Json,
    message::{ContentBlock, Message, MessageContent, Usage},
    model::{Model, ModelCost},
};

use crate::{
    CacheRetention, Request,
    cost::cost,
    estimate::{last_count, max_answer_tokens},
};

/// The tokens of an image where the provider has not counted it.
const IMAGE_TOKENS: u64 = 6000;

/// What a provider puts around each message, in tokens.
const MESSAGE_TOKENS: u64 = 16;

/// Longer runs of letters are no words but encoded data.
const LONGEST_WORD: usize = 24;

/// The output of a model whose limit is unknown.
const UNKNOWN_OUTPUT: u64 = 32_768;

/// The most that one model call can take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallBound {
    /// Tokens of input.
    pub input: u64,
    /// Tokens of output.
    pub output: u64,
    /// US dollars for the input.
    pub input_cost: f64,
    /// US dollars for one token of output.
    pub output_price: f64,
}

/// The most that a request can take. Requests that agentd sends again itself are each a call of their own.
#[must_use]
pub fn call_bound(request: &Request) -> CallBound {
    let messages: Vec<&Message> = request.messages.iter().filter_map(Json::get).collect();
    let input = input_bound(&messages);
    let model = &*request.model;
    let (input_price, output_price) = prices(&model.cost, input, request.cache_retention);
    CallBound { input, output: output_bound(model), input_cost: input_price * input as f64, output_price }
}

/// The same request with shorter answers.
#[must_use]
pub fn with_output_limit(mut request: Request, tokens: u64) -> Request {
    let model = Model { max_tokens: tokens, ..(*request.model).clone() };
    request.model = std::sync::Arc::new(model);
    request
}

/// Whether the price of a model is known: a model of which every price is 0 says nothing of it.
#[must_use]
pub fn has_price(model: &Model) -> bool {
    let ModelCost { input, output, cache_read, cache_write, tiers } = &model.cost;
    [input, output, cache_read, cache_write].into_iter().any(|price| *price > 0.0)
        || tiers.iter().flatten().any(|tier| tier.input > 0.0 || tier.output > 0.0)
}

fn output_bound(model: &Model) -> u64 {
    max_answer_tokens(model, 0).unwrap_or(UNKNOWN_OUTPUT)
}

/// The highest prices of a token of input and of output that may apply, in US dollars.
fn prices(prices: &ModelCost, input: u64, retention: CacheRetention) -> (f64, f64) {
    let one = |usage: Usage| {
        // One token is counted by the tier of the whole.
        let tiers = prices.tiers.iter().flatten();
        let reached = tiers.filter(|tier| tier.input_tokens_above < input);
        let base = ModelCost { tiers: None, ..prices.clone() };
        let of_tiers = reached.map(|tier| ModelCost {
            input: tier.input,
            output: tier.output,
            cache_read: tier.cache_read,
            cache_write: tier.cache_write,
            tiers: None,
        });
        of_tiers.chain([base]).map(|prices| cost(&prices, &usage).total).fold(0.0, f64::max)
    };
    let written = match retention {
        CacheRetention::None => Usage::default(),
        CacheRetention::Short => Usage { cache_write: 1, ..Usage::default() },
        CacheRetention::Long => Usage { cache_write: 1, cache_write1h: Some(1), ..Usage::default() },
    };
    let kinds =
        [Usage { input: 1, ..Usage::default() }, Usage { cache_read: 1, ..Usage::default() }, written];
    let input = kinds.into_iter().map(one).fold(0.0, f64::max);
    (input, one(Usage { output: 1, ..Usage::default() }))
}

/// The most tokens of a transcript.
fn input_bound(messages: &[&Message]) -> u64 {
    let (counted, later) = match last_count(messages) {
        Some((index, tokens)) => (tokens, &messages[index + 1..]),
        None => (0, messages),
    };
    later.iter().map(|message| message_bound(message)).fold(counted, u64::saturating_add)
}

fn message_bound(message: &Message) -> u64 {
    let tokens = match message {
        Message::System(system) => {
            let sections = system.sections.iter().flatten().filter_map(|(_, value)| value.as_str());
            let tools = system.tools_added.iter().flatten();
            let tools = tools.map(|tool| serde_json::to_string(tool).map_or(0, |json| text_bound(&json)));
            content_bound(&system.content) + sections.map(text_bound).sum::<u64>() + tools.sum::<u64>()
        }
        Message::User(user) => content_bound(&user.content),
        Message::Custom(custom) => content_bound(&custom.content),
        Message::Assistant(answer) => blocks_bound(&answer.content),
        Message::ToolResult(result) => blocks_bound(&result.content),
        Message::BashExecution(bash) if bash.exclude_from_context == Some(true) => return 0,
        Message::BashExecution(bash) => text_bound(&bash.command) + text_bound(&bash.output),
        Message::BranchSummary(branch) => text_bound(&branch.summary),
        Message::CompactionSummary(compaction) => text_bound(&compaction.summary),
    };
    tokens.saturating_add(MESSAGE_TOKENS)
}

fn content_bound(content: &MessageContent) -> u64 {
    match content {
        MessageContent::Text(text) => text_bound(text),
        MessageContent::Blocks(blocks) => blocks_bound(blocks),
        MessageContent::Nothing => 0,
    }
}

fn blocks_bound(blocks: &[ContentBlock]) -> u64 {
    let tokens = blocks.iter().map(|block| match block {
        ContentBlock::Text { text, .. } => text_bound(text),
        ContentBlock::Thinking { thinking, .. } => text_bound(thinking),
        ContentBlock::Image(_) => IMAGE_TOKENS,
        ContentBlock::ToolCall(call) => {
            let arguments = serde_json::to_string(&call.arguments).map_or(0, |json| text_bound(&json));
            text_bound(&call.name) + arguments + MESSAGE_TOKENS
        }
    });
    tokens.sum()
}

/// The most tokens of a text. Words of ASCII letters: one for each three letters that are begun. A single space belongs to the word
/// after it, and of several each two are one. Everything else, and letters that go on and on (encoded data): one for each byte.
#[must_use]
pub fn text_bound(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (0, 0);
    while at < bytes.len() {
        let is_letter = bytes[at].is_ascii_alphabetic();
        let is_space = bytes[at] == b' ';
        let run = bytes[at..].iter().take_while(|byte| match (is_letter, is_space) {
            (true, _) => byte.is_ascii_alphabetic(),
            (_, true) => **byte == b' ',
            _ => !byte.is_ascii_alphabetic() && **byte != b' ',
        });
        let length = run.count();
        tokens += match (is_letter, is_space) {
            (true, _) if length <= LONGEST_WORD => length.div_ceil(3),
            (_, true) => length / 2,
            _ => length,
        };
        at += length;
    }
    tokens as u64
}

#[cfg(test)]
mod tests {
    use agentd_protocol::model::CostTier;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::estimate::input_tokens;

    #[test]
    fn texts_are_bounded_from_above() {
        for (text, tokens) in [
            ("", 0),
            ("The quick fox", 1 + 2 + 1),
            ("{\"path\":", 2 + 2 + 2),
            ("12345", 5),
            ("é", 2),
            ("a    b", 1 + 2 + 1),
            (&"x".repeat(24), 8),
            (&"x".repeat(25), 25),
        ] {
            assert_eq!(text_bound(text), tokens, "{text:?}");
        }
    }

    proptest! {
        /// No text has more tokens than bytes, and none of letters fewer than a third.
        #[test]
        fn a_bound_lies_between_a_third_and_all_of_the_bytes(text in ".{0,200}") {
            let bound = text_bound(&text) as usize;
            let spaces = text.bytes().filter(|byte| *byte == b' ').count();
            prop_assert!(bound <= text.len());
            prop_assert!(bound * 3 + spaces >= text.len() - spaces);
        }
    }

    #[test]
    fn what_the_provider_counted_is_not_counted_again() {
        let messages: Vec<Message> = serde_json::from_value(json!([
            {"role": "user", "content": "x".repeat(7000)},
            {"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 5, "usage": {"totalTokens": 100}},
            {"role": "user", "content": "hello there"},
        ]))
        .unwrap();
        let messages: Vec<&Message> = messages.iter().collect();
        assert_eq!(input_bound(&messages), 100 + 4 + MESSAGE_TOKENS);
        assert!(input_bound(&messages) >= input_tokens(&messages));
    }

    #[test]
    fn the_dearest_kind_of_token_counts() {
        let tier = CostTier { input_tokens_above: 1000, input: 6.0, output: 22.5, ..CostTier::default() };
        let cost = ModelCost {
            input: 3.0,
            output: 15.0,
            cache_read: 0.3,
            cache_write: 3.75,
            tiers: Some(vec![tier]),
        };
        let check = |input, retention, expected: (f64, f64)| {
            let found = prices(&cost, input, retention);
            assert!(
                (found.0 * 1e6 - expected.0).abs() < 1e-9 && (found.1 * 1e6 - expected.1).abs() < 1e-9,
                "{found:?}"
            );
        };
        check(1000, CacheRetention::None, (3.0, 15.0));
        check(1000, CacheRetention::Short, (3.75, 15.0));
        check(1000, CacheRetention::Long, (6.0, 15.0));
        check(1001, CacheRetention::Short, (6.0, 22.5));
        assert!(!has_price(&Model::placeholder()));
        assert!(has_price(&Model { cost, ..Model::placeholder() }));
    }
}
