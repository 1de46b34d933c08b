//! The thinking of a request, and the limit of the answer that includes it. The models of each maker have their own fields for it.

use agentd_protocol::model::{Model, ThinkingLevel};
use serde_json::{Map, Value, json};

use super::model_traits::ModelTraits;
use crate::{Request, estimate::max_answer_tokens};

/// The limit of an answer with a thinking budget if the model's own is unknown, in tokens.
const UNKNOWN_LIMIT: u64 = 16_384;

/// The part of the limit that a thinking budget leaves for the answer, in tokens.
const ANSWER_ROOM: u64 = 1024;

/// The smallest budget that the service accepts, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// Allows thinking between tool calls.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

/// Makes the service drop thinking whose preceding transcript has changed, instead of refusing the request.
const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// The thinking part of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Thinking {
    /// The limit of the whole answer, thinking included; `None` for the service's default.
    pub(super) max_tokens: Option<u64>,
    /// The model's own fields.
    pub(super) fields: Map<String, Value>,
    /// Whether the model refuses a temperature together with these fields.
    pub(super) has_own_temperature: bool,
}

impl Thinking {
    /// The thinking of `request`, whose input has `input` tokens.
    pub(super) fn of(request: &Request, traits: &ModelTraits, input: u64) -> Self {
        let model = &*request.model;
        let max_tokens = max_answer_tokens(model, input);
        let plain = Self { max_tokens, ..Self::default() };
        let level = request.thinking_level;
        if !model.reasoning || level == ThinkingLevel::Off {
            return plain;
        }
        if traits.claude {
            return claude(request, traits, max_tokens).unwrap_or(plain);
        }
        let fields = if traits.gpt_oss {
            json!({ "reasoning_effort": word(level, "high", "high") })
        } else if traits.gpt {
            json!({ "reasoning": { "effort": mapped(model, level).unwrap_or(word(level, "xhigh", "max")) } })
        } else if traits.nova {
            json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": word(level, "high", "high") } })
        } else {
            return plain;
        };
        // The highest effort of a Nova excludes a limit of the answer, and everything about temperature.
        let is_nova_high = traits.nova && word(level, "high", "high") == "high";
        let max_tokens = max_tokens.filter(|_| !is_nova_high);
        Self { max_tokens, fields: members(fields), has_own_temperature: is_nova_high }
    }
}

/// The thinking of a Claude; `None` if the limit leaves no room for it.
fn claude(request: &Request, traits: &ModelTraits, max_tokens: Option<u64>) -> Option<Thinking> {
    let level = request.thinking_level;
    let mut thinking = Map::new();
    let mut fields = Map::new();
    let mut betas = Vec::new();
    let mut limit = max_tokens;
    let kind = if traits.adaptive { "adaptive" } else { "enabled" };
    thinking.insert("type".into(), kind.into());
    if !traits.adaptive {
        let most = max_tokens.unwrap_or_else(|| unknown_limit(&request.model));
        let wanted = request.thinking_budgets.of(level);
        let budget = wanted.min(most.saturating_sub(ANSWER_ROOM));
        // A budget below the least is refused. A smaller configured one is sent as it is.
        if budget == 0 || budget < wanted.min(LEAST_BUDGET) {
            return None;
        }
        thinking.insert("budget_tokens".into(), budget.into());
        limit = Some(most);
        betas.push(INTERLEAVED);
    }
    if !traits.gov_cloud {
        thinking.insert("display".into(), "summarized".into());
    }
    if traits.adaptive && traits.latest && !traits.gov_cloud {
        thinking.insert("block_binding".into(), json!({ "prefix_mismatch_behavior": "drop_block" }));
        betas.push(BINDING_CONTROLS);
    }
    fields.insert("thinking".into(), Value::Object(thinking));
    if traits.adaptive {
        let highest = if traits.latest { "xhigh" } else { "high" };
        let effort = match level {
            ThinkingLevel::Xhigh if traits.latest => "xhigh",
            level => mapped(&request.model, level).unwrap_or(word(level, highest, "high")),
        };
        fields.insert("output_config".into(), json!({ "effort": effort }));
    }
    if !betas.is_empty() {
        fields.insert("anthropic_beta".into(), betas.into());
    }
    Some(Thinking { max_tokens: limit, fields, has_own_temperature: true })
}

/// The limit of an answer with a budget, which has to be above the budget.
fn unknown_limit(model: &Model) -> u64 {
    let model = Model { max_tokens: UNKNOWN_LIMIT, ..model.clone() };
    max_answer_tokens(&model, 0).unwrap_or(UNKNOWN_LIMIT)
}

/// The model's own word for a level.
fn mapped(model: &Model, level: ThinkingLevel) -> Option<&str> {
    model.thinking_level_map.as_ref()?.get(level.as_str())?.as_str()
}

/// The usual word for a level.
fn word(level: ThinkingLevel, xhigh: &'static str, max: &'static str) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High => "high",
        ThinkingLevel::Xhigh => xhigh,
        ThinkingLevel::Max => max,
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn thinking(model: Value, level: ThinkingLevel) -> Thinking {
        let mut full = json!({"name": "m", "api": "bedrock-converse-stream", "provider": "p", "reasoning": true,
            "maxTokens": 64_000});
        full.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
        let model: Model = serde_json::from_value(full).unwrap();
        let request = Request { thinking_level: level, ..Request::new(Arc::new(model), Vec::new()) };
        Thinking::of(&request, &ModelTraits::of(&request), 0)
    }

    fn check(model: Value, level: ThinkingLevel, max_tokens: Option<u64>, fields: Value) {
        let found = thinking(model.clone(), level);
        assert_eq!(
            (Value::Object(found.fields), found.max_tokens),
            (fields, max_tokens),
            "{model} {level:?}"
        );
    }

    #[test]
    fn off_is_not_said() {
        for id in ["anthropic.claude-opus-5", "openai.gpt-oss-120b", "amazon.nova-2-lite-v1:0"] {
            check(json!({"id": id}), ThinkingLevel::Off, Some(64_000), json!({}));
        }
        check(
            json!({"id": "anthropic.claude-opus-5", "reasoning": false}),
            ThinkingLevel::High,
            Some(64_000),
            json!({}),
        );
        check(json!({"id": "deepseek.v3.2", "maxTokens": 0}), ThinkingLevel::High, None, json!({}));
    }

    #[test]
    fn claudes_of_three_generations() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Xhigh};
        let old = json!({"id": "anthropic.claude-opus-4-5-20251101-v1:0"});
        for (level, budget) in
            [(Minimal, 1024), (Low, 2048), (Medium, 8192), (High, 16_384), (Xhigh, 16_384), (Max, 16_384)]
        {
            check(
                old.clone(),
                level,
                Some(64_000),
                json!({"thinking": {"type": "enabled", "budget_tokens": budget, "display": "summarized"},
                    "anthropic_beta": [INTERLEAVED]}),
            );
        }
        let middle = json!({"id": "anthropic.claude-opus-4-6-v1", "thinkingLevelMap": {"max": "max"}});
        for (level, effort) in [
            (Minimal, "low"),
            (Low, "low"),
            (Medium, "medium"),
            (High, "high"),
            (Xhigh, "high"),
            (Max, "max"),
        ] {
            check(
                middle.clone(),
                level,
                Some(64_000),
                json!({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}),
            );
        }
        let new =
            json!({"id": "anthropic.claude-opus-5-5", "thinkingLevelMap": {"xhigh": "xhigh", "max": "max"}});
        for (level, effort) in [(Low, "low"), (High, "high"), (Xhigh, "xhigh"), (Max, "max")] {
            check(
                new.clone(),
                level,
                Some(64_000),
                json!({"thinking": {"type": "adaptive", "display": "summarized",
                    "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
                    "output_config": {"effort": effort}, "anthropic_beta": [BINDING_CONTROLS]}),
            );
        }
        check(
            json!({"id": "us-gov.anthropic.claude-opus-5-5"}),
            High,
            Some(64_000),
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        );
        assert!(thinking(new, High).has_own_temperature);
    }

    #[test]
    fn budgets_leave_room_for_the_answer() {
        let with = |max: u64| json!({"id": "anthropic.claude-opus-4-5", "maxTokens": max});
        let budget = |tokens: u64| {
            json!({"thinking": {"type": "enabled", "budget_tokens": tokens, "display": "summarized"},
                "anthropic_beta": [INTERLEAVED]})
        };
        check(with(8192), ThinkingLevel::High, Some(8192), budget(7168));
        check(with(2047), ThinkingLevel::High, Some(2047), json!({}));
        check(with(0), ThinkingLevel::Low, Some(16_384), budget(2048));
    }

    #[test]
    fn other_makers_have_words_of_their_own() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Xhigh};
        for (level, word) in [
            (Minimal, "low"),
            (Low, "low"),
            (Medium, "medium"),
            (High, "high"),
            (Xhigh, "high"),
            (Max, "high"),
        ] {
            let fields = json!({"reasoning_effort": word});
            check(json!({"id": "openai.gpt-oss-120b-1:0"}), level, Some(64_000), fields);
        }
        let gpt = json!({"id": "openai.gpt-6-sol", "thinkingLevelMap": {"xhigh": "extreme"}});
        for (level, word) in [(Minimal, "low"), (High, "high"), (Xhigh, "extreme"), (Max, "max")] {
            check(gpt.clone(), level, Some(64_000), json!({"reasoning": {"effort": word}}));
        }
        let nova = json!({"id": "us.amazon.nova-2-lite-v1:0"});
        let effort = |word: &str| json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": word}});
        check(nova.clone(), Low, Some(64_000), effort("low"));
        check(nova, High, None, effort("high"));
    }
}
