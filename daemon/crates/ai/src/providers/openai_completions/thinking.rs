//! The request fields that turn thinking on or off. Pure.

use agentd_protocol::model::{Model, ThinkingLevel};
use serde_json::{Map, Value, json};

use super::compat::Compat;
use crate::{ThinkingBudgets, vendors::ThinkingFormat};

/// The entry `off` of the model's map of levels.
enum Off<'a> {
    /// Nothing.
    Unmapped,
    /// Thinking cannot be turned off.
    Unsupported,
    /// The name of `off`.
    Named(&'a str),
}

/// The part of the limit that a thinking budget leaves for the answer, in tokens.
const ANSWER_ROOM: u64 = 1024;

/// The fields for `model` at `level` with an answer of at most `limit` tokens; none for a model without reasoning.
pub(super) fn fields(
    model: &Model,
    compat: &Compat,
    level: ThinkingLevel,
    budgets: &ThinkingBudgets,
    limit: Option<u64>,
) -> Map<String, Value> {
    let mut fields = Map::new();
    // Thinking counts towards the limit of the answer, which needs some room besides.
    let budget = budgets.of(level).min(limit.map_or(u64::MAX, |limit| limit.saturating_sub(ANSWER_ROOM)));
    if !model.reasoning {
        return fields;
    }
    let mapped = |level: ThinkingLevel| model.thinking_level_map.as_ref()?.get(level.as_str());
    let on = level != ThinkingLevel::Off;
    let effort = mapped(level).and_then(Value::as_str).unwrap_or(level.as_str());
    let off = match mapped(ThinkingLevel::Off) {
        Some(Value::Null) => Off::Unsupported,
        Some(Value::String(name)) => Off::Named(name),
        _ => Off::Unmapped,
    };
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    let mut with_effort = on && compat.supports_reasoning_effort;
    match compat.thinking_format {
        ThinkingFormat::OpenAi => {
            if let (false, true, Off::Named(name)) = (on, compat.supports_reasoning_effort, &off) {
                set("reasoning_effort", json!(name));
            }
        }
        ThinkingFormat::OpenRouter => {
            with_effort = false;
            match off {
                _ if on => set("reasoning", json!({ "effort": effort })),
                Off::Unsupported => {}
                Off::Named(name) => set("reasoning", json!({ "effort": name })),
                Off::Unmapped => set("reasoning", json!({ "effort": "none" })),
            }
        }
        ThinkingFormat::DeepSeek => {
            if on {
                set("thinking", json!({ "type": "enabled" }));
            } else if !matches!(off, Off::Unsupported) {
                set("thinking", json!({ "type": "disabled" }));
            }
        }
        ThinkingFormat::Zai if on => set("thinking", json!({ "type": "enabled", "clear_thinking": false })),
        ThinkingFormat::Zai => set("thinking", json!({ "type": "disabled" })),
        ThinkingFormat::Together => set("reasoning", json!({ "enabled": on })),
        ThinkingFormat::Qwen => set("enable_thinking", json!(on)),
        ThinkingFormat::QwenChatTemplate => {
            with_effort = false;
            // Earlier thinking stays in the transcript, even when thinking is off now.
            set("chat_template_kwargs", json!({ "enable_thinking": on, "preserve_thinking": true }));
        }
        ThinkingFormat::ChatTemplate | ThinkingFormat::Baseten => {
            let is_baseten = compat.thinking_format == ThinkingFormat::Baseten;
            with_effort &= is_baseten;
            if let (true, false, true, Off::Named(name)) =
                (is_baseten, on, compat.supports_reasoning_effort, &off)
            {
                set("reasoning_effort", json!(name));
            }
            let (name, template) = match compat.thinking_format {
                ThinkingFormat::Baseten => ("chat_template_args", &compat.chat_template_args),
                _ => ("chat_template_kwargs", &compat.chat_template_kwargs),
            };
            let values = filled(template, on, effort, &off, budget);
            if !values.is_empty() {
                set(name, Value::Object(values));
            }
        }
        ThinkingFormat::StringThinking => {
            with_effort = false;
            match off {
                _ if on => set("thinking", json!(effort)),
                Off::Unsupported => {}
                Off::Named(name) => set("thinking", json!(name)),
                Off::Unmapped => set("thinking", json!("none")),
            }
        }
        ThinkingFormat::AntLing => {
            with_effort = false;
            if let Some(Value::String(effort)) = mapped(level).filter(|_| on) {
                set("reasoning", json!({ "effort": effort }));
            }
        }
    }
    if with_effort {
        set("reasoning_effort", json!(effort));
    }
    if let Some(field) = compat.thinking_token_budget_field.as_ref().filter(|_| on && budget > 0) {
        set(field, json!(budget));
    }
    fields
}

/// Configured template values with their variables filled in: `{"$var": "thinking.enabled" | "thinking.effort" | "thinking.budget",
/// "omitWhenOff": bool}`.
fn filled(
    template: &Map<String, Value>,
    on: bool,
    effort: &str,
    off: &Off<'_>,
    budget: u64,
) -> Map<String, Value> {
    let mut values = Map::new();
    for (name, value) in template {
        let Some(variable) = value.get("$var").and_then(Value::as_str) else {
            values.insert(name.clone(), value.clone());
            continue;
        };
        if !on && value.get("omitWhenOff").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        let filled = match (variable, off) {
            ("thinking.enabled", _) => json!(on),
            ("thinking.budget", _) if on && budget > 0 => json!(budget),
            ("thinking.budget", _) => continue,
            ("thinking.effort", _) if on => json!(effort),
            ("thinking.effort", Off::Named(name)) => json!(name),
            ("thinking.effort", Off::Unmapped | Off::Unsupported) => continue,
            _ => {
                tracing::warn!(variable, "unknown variable in the chat template values of a model");
                continue;
            }
        };
        values.insert(name.clone(), filled);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields at `level` for a model with that compat and thinking map.
    fn check(compat: Value, map: Value, level: ThinkingLevel, expected: Value) {
        let model = Model {
            reasoning: true,
            compat: compat.as_object().cloned(),
            thinking_level_map: map.as_object().cloned(),
            ..Model::placeholder()
        };
        let found =
            Value::Object(fields(&model, &Compat::of(&model), level, &ThinkingBudgets::default(), None));
        assert_eq!(found, expected, "{compat} {map} {level:?}");
    }

    #[test]
    fn each_format_has_its_fields() {
        use ThinkingLevel::{High, Low, Off};
        let none = Value::Null;
        let mapped = json!({"off": "none", "high": "max", "low": null});
        let no_off = json!({ "off": null });
        let check = |format: &str, map: &Value, level: ThinkingLevel, expected: Value| {
            check(json!({ "thinkingFormat": format }), map.clone(), level, expected);
        };
        check("openai", &none, High, json!({"reasoning_effort": "high"}));
        check("openai", &mapped, High, json!({"reasoning_effort": "max"}));
        check("openai", &none, Off, json!({}));
        check("openai", &mapped, Off, json!({"reasoning_effort": "none"}));
        check("openrouter", &none, Low, json!({"reasoning": {"effort": "low"}}));
        check("openrouter", &none, Off, json!({"reasoning": {"effort": "none"}}));
        check("openrouter", &no_off, Off, json!({}));
        check("deepseek", &none, High, json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}));
        check("deepseek", &none, Off, json!({"thinking": {"type": "disabled"}}));
        check("deepseek", &no_off, Off, json!({}));
        check(
            "zai",
            &none,
            Low,
            json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "low"}),
        );
        check("zai", &no_off, Off, json!({"thinking": {"type": "disabled"}}));
        check("together", &none, Low, json!({"reasoning": {"enabled": true}, "reasoning_effort": "low"}));
        check("together", &none, Off, json!({"reasoning": {"enabled": false}}));
        check("qwen", &none, Low, json!({"enable_thinking": true, "reasoning_effort": "low"}));
        check("qwen", &none, Off, json!({"enable_thinking": false}));
        check(
            "qwen-chat-template",
            &none,
            Low,
            json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}}),
        );
        check(
            "qwen-chat-template",
            &none,
            Off,
            json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}}),
        );
        check("string-thinking", &none, High, json!({"thinking": "high"}));
        check("string-thinking", &none, Off, json!({"thinking": "none"}));
        check("string-thinking", &no_off, Off, json!({}));
        check("ant-ling", &mapped, High, json!({"reasoning": {"effort": "max"}}));
        check("ant-ling", &none, High, json!({}));
        check("ant-ling", &mapped, Off, json!({}));
    }

    #[test]
    fn template_values_are_filled_in() {
        let values = json!({
            "fixed": 1,
            "enable": {"$var": "thinking.enabled"},
            "effort": {"$var": "thinking.effort", "omitWhenOff": true},
            "budget": {"$var": "thinking.budget"},
        });
        let compat = json!({"thinkingFormat": "chat-template", "chatTemplateKwargs": values});
        check(
            compat.clone(),
            Value::Null,
            ThinkingLevel::Medium,
            json!({"chat_template_kwargs": {"fixed": 1, "enable": true, "effort": "medium", "budget": 8192}}),
        );
        check(
            compat,
            Value::Null,
            ThinkingLevel::Off,
            json!({"chat_template_kwargs": {"fixed": 1, "enable": false}}),
        );
        let compat =
            json!({"thinkingFormat": "baseten", "chatTemplateArgs": {"e": {"$var": "thinking.enabled"}}});
        check(
            compat,
            Value::Null,
            ThinkingLevel::Low,
            json!({"chat_template_args": {"e": true}, "reasoning_effort": "low"}),
        );
        let silent = json!({"thinkingFormat": "baseten", "supportsReasoningEffort": false});
        check(silent, Value::Null, ThinkingLevel::Low, json!({}));
        let named = json!({"off": "no"});
        check(
            json!({"thinkingFormat": "baseten"}),
            named.clone(),
            ThinkingLevel::Off,
            json!({"reasoning_effort": "no"}),
        );
        let effort = json!({"thinkingFormat": "chat-template", "chatTemplateKwargs": {"e": {"$var": "thinking.effort"}}});
        check(effort.clone(), named, ThinkingLevel::Off, json!({"chat_template_kwargs": {"e": "no"}}));
        check(effort, Value::Null, ThinkingLevel::Off, json!({}));
    }

    #[test]
    fn efforts_and_budgets_are_sent_where_they_are_known() {
        check(json!({"supportsReasoningEffort": false}), Value::Null, ThinkingLevel::High, json!({}));
        check(
            json!({"supportsReasoningEffort": false, "supportsThinkingTokenBudget": true}),
            Value::Null,
            ThinkingLevel::Minimal,
            json!({"thinking_token_budget": 1024}),
        );
        check(
            json!({"supportsReasoningEffort": false, "supportsThinkingTokenBudget": true, "thinkingTokenBudgetField": "b"}),
            json!({"xhigh": "x"}),
            ThinkingLevel::Xhigh,
            json!({"b": 16384}),
        );
        check(
            json!({"supportsReasoningEffort": false, "thinkingTokenBudgetField": "b"}),
            Value::Null,
            ThinkingLevel::Low,
            json!({"b": 2048}),
        );
        let tight = Model {
            reasoning: true,
            compat: json!({"thinkingTokenBudgetField": "b"}).as_object().cloned(),
            ..Model::placeholder()
        };
        let at = |limit: u64| {
            let budgets = ThinkingBudgets::default();
            fields(&tight, &Compat::of(&tight), ThinkingLevel::High, &budgets, Some(limit)).get("b").cloned()
        };
        assert_eq!((at(4096), at(1024), at(100_000)), (Some(json!(3072)), None, Some(json!(16_384))));
        let plain = Model { reasoning: false, ..Model::placeholder() };
        assert!(
            fields(&plain, &Compat::of(&plain), ThinkingLevel::High, &ThinkingBudgets::default(), None)
                .is_empty()
        );
    }
}
