//! YAML within limits, as people write it: its options, its errors, and a repair of values that lack quotes.

use agentd_protocol::text_bounds;
use serde_saphyr::{Error, Options, UserMessageFormatter, alias_limits, budget, options};

use super::field::FrontMatterProblem;

/// The longest front matter that is read: 32 KiB.
pub(super) const MAX_BYTES: usize = 32 * 1024;

/// The longest quotation of what is wrong, in bytes: a problem says the value, which may be all there is.
const MAX_SAID: usize = 200;

/// The limit for the expansion of aliases, in events.
const MAX_EVENTS: usize = 10_000;

pub(super) fn yaml_options() -> Options {
    options! {
        budget: budget! {
            max_events: MAX_EVENTS,
            max_recorded_anchor_events: MAX_EVENTS,
            max_recorded_anchor_bytes: 1 << 20,
            flow_nesting_limit: 32,
        },
        alias_limits: alias_limits! { max_total_replayed_events: MAX_EVENTS },
        strict_booleans: true,
        with_snippet: false,
    }
}

pub(super) fn not_yaml(error: &Error) -> FrontMatterProblem {
    let line = error.location().map(|place| place.line()).filter(|line| *line > 0);
    let message = if is_too_much(error) {
        "the front matter refers to itself too often, or has too many values".to_owned()
    } else {
        let said = error.render_with_formatter(&UserMessageFormatter);
        // The places are told apart from the message.
        let said = said.split_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        format!(
            "the front matter is not valid YAML: {}",
            text_bounds::without_middle(said.to_owned(), MAX_SAID)
        )
    };
    FrontMatterProblem { line: line.and_then(|line| u32::try_from(line).ok()), message }
}

/// Returns whether the text exceeds the limits, which it does not show itself.
pub(super) fn is_too_much(error: &Error) -> bool {
    match error {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => true,
        Error::AliasError { error, .. } => is_too_much(error),
        _ => false,
    }
}

/// Repairs texts whose authors did not know them to be YAML, such as `description: Use when: asked`: the same lines, with every plain value of a key at the left margin in quotes.
pub(super) fn quote_values(yaml: &str) -> String {
    yaml.split('\n').map(quote_value).collect::<Vec<_>>().join("\n")
}

fn quote_value(line: &str) -> String {
    let untouched = || line.to_owned();
    let Some((key, value)) = line.split_once(':') else { return untouched() };
    let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let value = value.trim();
    // A value that is quoted or continues below is YAML that its author knew. So is a list without its end, but not a text that
    // begins with a word in brackets.
    let is_list = match value.chars().next() {
        Some('[') => !value.trim_end_matches(']').contains(']'),
        Some('{') => !value.trim_end_matches('}').contains('}'),
        _ => false,
    };
    if !is_key || is_list || value.is_empty() || value.starts_with(['"', '\'', '|', '>']) {
        return untouched();
    }
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("{key}: \"{quoted}\"")
}
