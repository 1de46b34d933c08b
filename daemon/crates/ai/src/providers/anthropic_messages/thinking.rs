//! The thinking of a request, and the limit of the answer that includes it.

use agentd_protocol::model::{Model, ThinkingLevel};
use serde_json::{Map, Value, json};

use super::compat::Compat;
use crate::{Request, estimate::max_answer_tokens};

/// The limit of an answer if the model's own is unknown, in tokens: this API requires one.
const UNKNOWN_LIMIT: u64 = 16_384;

/// The part of the limit that a thinking budget leaves for the answer, in tokens.
const ANSWER_ROOM: u64 = 1024;

/// The smallest budget that this API accepts, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// The thinking part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Nothing.
    Unsaid { max_tokens: u64 },
    /// No thinking.
    Disabled { max_tokens: u64 },
    /// As much as the model chooses for an effort.
    Adaptive { max_tokens: u64, effort: String },
    /// At most a number of tokens.
    Budget { max_tokens: u64, budget: u64 },
}

impl Thinking {
    /// The thinking of `request`, whose input has `input` tokens.
    pub(super) fn of(request: &Request, compat: &Compat, input: u64) -> Self {
        let model = &*request.model;
        let max_tokens = limit(model, input);
        if !model.reasoning {
            return Self::Unsaid { max_tokens };
        }
        let level = request.thinking_level;
        let mapped = |level: ThinkingLevel| model.thinking_level_map.as_ref()?.get(level.as_str());
        let off = match mapped(ThinkingLevel::Off) {
            Some(Value::Null) => Self::Unsaid { max_tokens },
            _ => Self::Disabled { max_tokens },
        };
        if level == ThinkingLevel::Off {
            return off;
        }
        if compat.force_adaptive_thinking {
            let effort = mapped(level).and_then(Value::as_str).unwrap_or(match level {
                ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
                ThinkingLevel::Medium => "medium",
                ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
            });
            return Self::Adaptive { max_tokens, effort: effort.to_owned() };
        }
        let wanted = request.thinking_budgets.of(level);
        let budget = wanted.min(max_tokens.saturating_sub(ANSWER_ROOM));
        // A budget below the least is refused. A smaller configured one is sent as it is.
        if budget == 0 || budget < wanted.min(LEAST_BUDGET) {
            return off;
        }
        Self::Budget { max_tokens, budget }
    }

    /// Whether the model thinks.
    pub(super) fn is_on(&self) -> bool {
        matches!(self, Self::Adaptive { .. } | Self::Budget { .. })
    }

    /// The limit of the whole answer, thinking included.
    pub(super) fn max_tokens(&self) -> u64 {
        match self {
            Self::Unsaid { max_tokens }
            | Self::Disabled { max_tokens }
            | Self::Adaptive { max_tokens, .. }
            | Self::Budget { max_tokens, .. } => *max_tokens,
        }
    }

    /// The fields of the request.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let fields = match self {
            Self::Unsaid { .. } => json!({}),
            Self::Disabled { .. } => json!({ "thinking": { "type": "disabled" } }),
            Self::Adaptive { effort, .. } => json!({
                "thinking": { "type": "adaptive", "display": "summarized" },
                "output_config": { "effort": effort },
            }),
            Self::Budget { budget, .. } => json!({
                "thinking": { "type": "enabled", "budget_tokens": budget, "display": "summarized" },
            }),
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// The limit of an answer in tokens: the model's own, or less if its window has less room. It includes the thinking budget.
fn limit(model: &Model, input: u64) -> u64 {
    let unknown = || {
        let model = Model { max_tokens: UNKNOWN_LIMIT, ..model.clone() };
        max_answer_tokens(&model, input)
    };
    max_answer_tokens(model, input).or_else(unknown).unwrap_or(UNKNOWN_LIMIT)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn thinking(model: Value, level: ThinkingLevel, input: u64) -> Thinking {
        let mut full = json!({"id": "m", "name": "m", "api": "anthropic-messages", "provider": "p",
            "reasoning": true, "maxTokens": 64_000});
        full.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
        let model: Model = serde_json::from_value(full).unwrap();
        let compat = Compat::of(&model);
        let request = Request { thinking_level: level, ..Request::new(Arc::new(model), Vec::new()) };
        Thinking::of(&request, &compat, input)
    }

    fn check(model: Value, level: ThinkingLevel, max_tokens: u64, fields: Value) {
        let found = thinking(model.clone(), level, 0);
        assert_eq!(
            (Value::Object(found.fields()), found.max_tokens()),
            (fields, max_tokens),
            "{model} {level:?}"
        );
    }

    fn budget(tokens: u64) -> Value {
        json!({"thinking": {"type": "enabled", "budget_tokens": tokens, "display": "summarized"}})
    }

    fn effort(effort: &str) -> Value {
        json!({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}})
    }

    #[test]
    fn off_is_said_where_it_exists() {
        let disabled = json!({"thinking": {"type": "disabled"}});
        check(json!({}), ThinkingLevel::Off, 64_000, disabled.clone());
        check(json!({"thinkingLevelMap": {"off": "none"}}), ThinkingLevel::Off, 64_000, disabled);
        check(json!({"thinkingLevelMap": {"off": null}}), ThinkingLevel::Off, 64_000, json!({}));
        check(json!({"reasoning": false}), ThinkingLevel::High, 64_000, json!({}));
    }

    #[test]
    fn budgets_leave_room_for_the_answer() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Xhigh};
        for (level, tokens) in
            [(Minimal, 1024), (Low, 2048), (Medium, 8192), (High, 16_384), (Xhigh, 16_384), (Max, 16_384)]
        {
            check(json!({}), level, 64_000, budget(tokens));
        }
        check(json!({"maxTokens": 8192}), High, 8192, budget(7168));
        check(json!({"maxTokens": 2048}), High, 2048, budget(1024));
        check(json!({"maxTokens": 2047}), High, 2047, json!({"thinking": {"type": "disabled"}}));
        check(json!({"maxTokens": 10, "thinkingLevelMap": {"off": null}}), High, 10, json!({}));
        // A window that is nearly full.
        let tight = thinking(json!({"contextWindow": 200_000}), High, 190_000);
        assert_eq!(tight, Thinking::Budget { max_tokens: 5904, budget: 4880 });
    }

    #[test]
    fn efforts_are_named_by_the_map() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Xhigh};
        let adaptive = json!({"compat": {"forceAdaptiveThinking": true}});
        for (level, name) in [
            (Minimal, "low"),
            (Low, "low"),
            (Medium, "medium"),
            (High, "high"),
            (Xhigh, "high"),
            (Max, "high"),
        ] {
            check(adaptive.clone(), level, 64_000, effort(name));
        }
        let mapped = json!({"compat": {"forceAdaptiveThinking": true},
            "thinkingLevelMap": {"off": "none", "xhigh": "xhigh", "low": "tiny"}});
        check(mapped.clone(), Xhigh, 64_000, effort("xhigh"));
        check(mapped.clone(), Low, 64_000, effort("tiny"));
        check(mapped, ThinkingLevel::Off, 64_000, json!({"thinking": {"type": "disabled"}}));
    }

    #[test]
    fn an_unknown_limit_is_a_usual_one() {
        check(json!({"maxTokens": 0, "reasoning": false}), ThinkingLevel::Off, 16_384, json!({}));
        let small = thinking(
            json!({"maxTokens": 0, "contextWindow": 2048, "reasoning": false}),
            ThinkingLevel::Off,
            10,
        );
        assert_eq!(small.max_tokens(), 1526);
    }
}
