//! The thinking of a request. Pure.

use agentd_protocol::model::{Model, ThinkingLevel};
use serde_json::{Value, json};

use super::family::GeminiFamily;
use crate::{Request, ThinkingBudgets};

/// The budget that leaves the amount of thinking to the model.
const DYNAMIC: i64 = -1;

/// The member `thinkingConfig` of a request; `None` for a model that does not think.
pub(super) fn config(request: &Request, family: &GeminiFamily) -> Option<Value> {
    let model = &*request.model;
    if !model.reasoning {
        return None;
    }
    let level = request.thinking_level;
    let config = match (family.has_thinking_levels(model), level == ThinkingLevel::Off) {
        (true, false) => json!({ "includeThoughts": true, "thinkingLevel": level_name(model, level) }),
        // Thinking that cannot be turned off is set to its lowest level.
        (true, true) => match model.clamp_thinking(Some(ThinkingLevel::Off)) {
            ThinkingLevel::Off => json!({ "thinkingBudget": 0 }),
            least => json!({ "thinkingLevel": level_name(model, least) }),
        },
        (false, false) => json!({
            "includeThoughts": true,
            "thinkingBudget": budget(model, family, level, &request.thinking_budgets),
        }),
        (false, true) => json!({ "thinkingBudget": family.least_budget() }),
    };
    Some(config)
}

/// The API's name of a level.
fn level_name(model: &Model, level: ThinkingLevel) -> String {
    let name = mapped(model, level).unwrap_or(match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => "minimal",
        ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
    });
    name.to_ascii_uppercase()
}

fn mapped(model: &Model, level: ThinkingLevel) -> Option<&str> {
    model.thinking_level_map.as_ref()?.get(level.as_str())?.as_str()
}

/// The budget of a level in tokens: the configured one, else the model's usual one.
fn budget(model: &Model, family: &GeminiFamily, level: ThinkingLevel, configured: &ThinkingBudgets) -> i64 {
    let renamed = mapped(model, level).and_then(|name| ThinkingLevel::from_name(&name.to_ascii_lowercase()));
    let level = renamed.unwrap_or(level);
    let tokens = configured.of(level);
    if tokens != ThinkingBudgets::default().of(level) {
        return i64::try_from(tokens).unwrap_or(DYNAMIC);
    }
    let Some([minimal, low, medium, high]) = family.budgets() else { return DYNAMIC };
    let tokens = match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => minimal,
        ThinkingLevel::Low => low,
        ThinkingLevel::Medium => medium,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => high,
    };
    i64::try_from(tokens).unwrap_or(DYNAMIC)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn found(id: &str, map: Value, level: ThinkingLevel, budgets: ThinkingBudgets) -> Option<Value> {
        let model = Model {
            id: id.into(),
            reasoning: true,
            thinking_level_map: map.as_object().cloned(),
            ..Model::placeholder()
        };
        let family = GeminiFamily::of(&model);
        let mut request = Request::new(Arc::new(model), Vec::new());
        request.thinking_level = level;
        request.thinking_budgets = budgets;
        config(&request, &family)
    }

    fn check(id: &str, map: Value, level: ThinkingLevel, expected: Value) {
        let found = found(id, map, level, ThinkingBudgets::default());
        assert_eq!(found, Some(expected), "{id} {level:?}");
    }

    #[test]
    fn older_models_have_budgets() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};
        for (id, off, budgets) in [
            ("gemini-2.5-pro", 128, [128, 2048, 8192, 32_768]),
            ("gemini-2.5-flash", 0, [128, 2048, 8192, 24_576]),
            ("gemini-2.5-flash-lite", 0, [512, 2048, 8192, 24_576]),
            ("gemini-2.5-computer-use-preview", 0, [-1, -1, -1, -1]),
            ("deep-research-preview", 0, [-1, -1, -1, -1]),
        ] {
            check(id, Value::Null, Off, json!({ "thinkingBudget": off }));
            for (level, tokens) in [Minimal, Low, Medium, High].into_iter().zip(budgets) {
                check(id, Value::Null, level, json!({ "includeThoughts": true, "thinkingBudget": tokens }));
            }
            for level in [Xhigh, Max] {
                let tokens = budgets[3];
                check(id, Value::Null, level, json!({ "includeThoughts": true, "thinkingBudget": tokens }));
            }
        }
        let map = json!({"xhigh": "medium"});
        check("gemini-2.5-pro", map, Xhigh, json!({"includeThoughts": true, "thinkingBudget": 8192}));
    }

    #[test]
    fn budgets_can_be_configured() {
        let budgets = ThinkingBudgets { low: 777, ..ThinkingBudgets::default() };
        for (level, tokens) in [(ThinkingLevel::Low, 777), (ThinkingLevel::Medium, 8192)] {
            let found = found("gemini-2.5-flash", Value::Null, level, budgets);
            assert_eq!(found, Some(json!({"includeThoughts": true, "thinkingBudget": tokens})));
        }
    }

    #[test]
    fn newer_models_have_levels() {
        use ThinkingLevel::{High, Low, Medium, Minimal, Off};
        let flash =
            json!({"off": null, "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"});
        let pro = json!({"off": null, "minimal": null, "low": "low", "medium": "medium", "high": "high"});
        let gemma = json!({"off": null, "minimal": "MINIMAL", "low": null, "medium": null, "high": "HIGH"});
        let thoughts = |level: &str| json!({"includeThoughts": true, "thinkingLevel": level});
        for (level, name) in [(Minimal, "MINIMAL"), (Low, "LOW"), (Medium, "MEDIUM"), (High, "HIGH")] {
            check("gemini-3-flash-preview", flash.clone(), level, thoughts(name));
        }
        check("gemini-3-flash-preview", flash, Off, json!({"thinkingLevel": "MINIMAL"}));
        check("gemini-3.1-pro-preview", pro.clone(), Off, json!({"thinkingLevel": "LOW"}));
        check("gemini-3.1-pro-preview", Value::Null, Off, json!({"thinkingBudget": 0}));
        check("gemini-pro-latest", pro, High, thoughts("HIGH"));
        check("gemma-4-31b-it", gemma.clone(), High, thoughts("HIGH"));
        check("gemma-4-31b-it", gemma, Off, json!({"thinkingLevel": "MINIMAL"}));
        check("gemini-4-argon", json!({"xhigh": "ultra"}), ThinkingLevel::Xhigh, thoughts("ULTRA"));
    }

    #[test]
    fn a_model_that_does_not_think_is_not_told() {
        let model = Model { id: "gemini-2.5-flash".into(), ..Model::placeholder() };
        let family = GeminiFamily::of(&model);
        assert_eq!(config(&Request::new(Arc::new(model), Vec::new()), &family), None);
    }
}
