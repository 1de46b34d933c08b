//! The request fields that ask for reasoning, or ask for none.

use agentd_protocol::model::{Model, ThinkingLevel};
use serde_json::{Map, Value, json};

use super::compat::Compat;

/// The fields for `model` at `level`; none for a model that does not reason.
pub(super) fn fields(model: &Model, compat: &Compat, level: ThinkingLevel) -> Map<String, Value> {
    let mut fields = Map::new();
    if !model.reasoning {
        return fields;
    }
    let mapped = |level: ThinkingLevel| model.thinking_level_map.as_ref()?.get(level.as_str());
    let reasoning = match (level, mapped(level)) {
        _ if !compat.supports_reasoning_effort => None,
        (ThinkingLevel::Off, Some(Value::Null)) => None,
        // It has its own way to say so, and refuses this one.
        (ThinkingLevel::Off, _) if model.provider == "github-copilot" => None,
        (ThinkingLevel::Off, effort) => {
            let effort = effort.and_then(Value::as_str).unwrap_or("none");
            fields.insert("reasoning".into(), json!({ "effort": effort }));
            // Its models may reason all the same.
            if model.provider == "xai" {
                fields.insert("include".into(), json!(["reasoning.encrypted_content"]));
            }
            return fields;
        }
        (level, effort) => {
            let effort = effort.and_then(Value::as_str).unwrap_or(level.as_str());
            Some(json!({ "effort": effort, "summary": "auto" }))
        }
    };
    if let Some(reasoning) = reasoning {
        fields.insert("reasoning".into(), reasoning);
    }
    // Nothing is stored there, so the reasoning can be sent back only if all of it comes here. That holds too for a model
    // that cannot be kept from reasoning.
    fields.insert("include".into(), json!(["reasoning.encrypted_content"]));
    fields
}

#[cfg(test)]
mod tests {
    use super::{super::Dialect, *};

    fn check(overrides: Value, level: ThinkingLevel, expected: Value) {
        let of = |name: &str| overrides.get(name).and_then(Value::as_object).cloned();
        let model = Model {
            reasoning: overrides["reasoning"] != json!(false),
            provider: overrides["provider"].as_str().unwrap_or("openai").into(),
            compat: of("compat"),
            thinking_level_map: of("map"),
            ..Model::placeholder()
        };
        let found = Value::Object(fields(&model, &Compat::of(&model, Dialect::OpenAi), level));
        assert_eq!(found, expected, "{overrides} {level:?}");
    }

    #[test]
    fn levels_become_efforts() {
        use ThinkingLevel::{High, Minimal, Off};
        let include = json!(["reasoning.encrypted_content"]);
        let on =
            |effort: &str| json!({"reasoning": {"effort": effort, "summary": "auto"}, "include": include});
        check(json!({}), High, on("high"));
        check(json!({"map": {"minimal": "low"}}), Minimal, on("low"));
        check(json!({}), Off, json!({"reasoning": {"effort": "none"}}));
        check(json!({"provider": "xai"}), Off, json!({"reasoning": {"effort": "none"}, "include": include}));
        check(json!({"map": {"off": "minimal"}}), Off, json!({"reasoning": {"effort": "minimal"}}));
        check(json!({"map": {"off": null}}), Off, json!({ "include": include }));
        check(json!({"provider": "github-copilot"}), Off, json!({ "include": include }));
        check(json!({"compat": {"supportsReasoningEffort": false}}), High, json!({ "include": include }));
        check(json!({"reasoning": false}), High, json!({}));
    }
}
