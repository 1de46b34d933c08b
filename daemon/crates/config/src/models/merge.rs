//! Merges `models.json` over the catalogue.

use agentd_protocol::{model::Model, models_file::ModelFields};
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// The switches that are objects and are merged by member. Every other value replaces the one below it.
const NESTED: &[&str] =
    &["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs"];

/// The switches of `over` laid over those below.
pub(super) fn compat(below: Option<&Object>, over: Option<Object>) -> Option<Object> {
    let (mut merged, over) = match (below, over) {
        (None, over) => return over,
        (Some(below), None) => return Some(below.clone()),
        (Some(below), Some(over)) => (below.clone(), over),
    };
    for (key, value) in over {
        match (merged.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(over)) if NESTED.contains(&key.as_str()) => {
                below.extend(over);
            }
            (_, value) => {
                merged.insert(key, value);
            }
        }
    }
    Some(merged)
}

/// The members of `over` laid over those below.
fn members(below: Option<Object>, over: Option<Object>) -> Option<Object> {
    match (below, over) {
        (Some(mut below), Some(over)) => {
            below.extend(over);
            Some(below)
        }
        (below, over) => over.or(below),
    }
}

/// A built-in model with a `modelOverrides` entry over it. Headers are no part of it: they can be secret.
pub(super) fn override_model(model: &mut Model, over: ModelFields) {
    let ModelFields {
        name,
        api,
        base_url,
        reasoning,
        thinking_level_map,
        input,
        input_limits,
        cost,
        prompt_cache,
        context_window,
        max_tokens,
        sampling_params,
        sampling_params_by_thinking_level,
        headers: _,
        compat: switches,
    } = over;
    replace(&mut model.name, name);
    replace(&mut model.api, api.filter(|api| !api.is_empty()));
    replace(&mut model.base_url, base_url.filter(|url| !url.is_empty()));
    replace(&mut model.reasoning, reasoning);
    model.thinking_level_map = members(model.thinking_level_map.take(), thinking_level_map);
    replace(&mut model.input, input);
    model.input_limits = input_limits.or(model.input_limits.take());
    if let Some(cost) = cost {
        model.cost = cost.over(&model.cost);
    }
    model.prompt_cache = prompt_cache.or(model.prompt_cache.take());
    replace(&mut model.context_window, context_window);
    replace(&mut model.max_tokens, max_tokens);
    model.sampling_params = members(model.sampling_params.take(), sampling_params);
    model.sampling_params_by_thinking_level =
        sampling_params_by_thinking_level.or(model.sampling_params_by_thinking_level.take());
    model.compat = compat(model.compat.as_ref(), switches);
}

fn replace<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Option<Object> {
        value.as_object().cloned()
    }

    fn overridden(model: &Value, over: &Value) -> Value {
        let mut full = serde_json::to_value(Model::placeholder()).unwrap();
        full.as_object_mut().unwrap().extend(object(model).unwrap());
        let mut model: Model = serde_json::from_value(full).unwrap();
        override_model(&mut model, serde_json::from_value(over.clone()).unwrap());
        serde_json::to_value(model).unwrap()
    }

    #[test]
    fn an_override_changes_only_what_it_says() {
        let model = json!({"name":"n","reasoning":true,"thinkingLevelMap":{"off":null,"high":"high"},
            "cost":{"input":1,"output":2,"cacheRead":0.5,"cacheWrite":3,"tiers":[{"inputTokensAbove":9,"input":2}]},
            "compat":{"a":true,"openRouterRouting":{"only":["x"],"sort":"price"},"other":{"p":1}},
            "samplingParams":{"temperature":1,"top_p":0.5},"contextWindow":10,"maxTokens":5});
        let over = json!({"name":"mine","maxTokens":7,"cost":{"output":4},"thinkingLevelMap":{"high":"max"},
            "compat":{"b":1,"openRouterRouting":{"only":["y"]},"other":{"q":2}},"samplingParams":{"top_p":1},
            "samplingParamsByThinkingLevel":{"high":{"top_k":3}},"unknown":1});
        let got = overridden(&model, &over);
        assert_eq!(got["name"], "mine");
        assert_eq!((&got["contextWindow"], &got["maxTokens"]), (&json!(10), &json!(7)));
        assert_eq!(got["thinkingLevelMap"], json!({"off":null,"high":"max"}));
        assert_eq!(got["cost"]["input"], 1);
        assert_eq!(got["cost"]["output"], 4);
        assert_eq!(got["cost"]["tiers"][0]["inputTokensAbove"], 9);
        let compat =
            json!({"a":true,"openRouterRouting":{"only":["y"],"sort":"price"},"other":{"q":2},"b":1});
        assert_eq!(got["compat"], compat);
        assert_eq!(got["samplingParams"], json!({"temperature":1,"top_p":1}));
        assert_eq!(got["samplingParamsByThinkingLevel"], json!({"high":{"top_k":3}}));
    }

    fn switches() -> impl Strategy<Value = Option<Object>> {
        let value = prop_oneof![
            any::<bool>().prop_map(Value::from),
            prop::collection::btree_map("[ab]", any::<u8>(), 0..3).prop_map(|map| json!(map)),
        ];
        let key =
            prop_oneof![Just("x".to_owned()), Just("openRouterRouting".to_owned()), Just("y".to_owned())];
        prop::option::of(prop::collection::vec((key, value), 0..4).prop_map(Object::from_iter))
    }

    proptest! {
        #[test]
        fn laying_the_same_over_twice_changes_nothing_more(below in switches(), over in switches()) {
            let once = compat(below.as_ref(), over.clone());
            prop_assert_eq!(compat(once.as_ref(), over), once);
        }

        #[test]
        fn the_upper_wins_and_nothing_below_is_lost(below in switches(), over in switches()) {
            let merged = compat(below.as_ref(), over.clone()).unwrap_or_default();
            for (key, value) in over.iter().flatten() {
                match value {
                    Value::Object(members) if NESTED.contains(&key.as_str()) => {
                        for (name, member) in members {
                            prop_assert_eq!(&merged[key][name], member);
                        }
                    }
                    value => prop_assert_eq!(&merged[key], value),
                }
            }
            for key in below.iter().flat_map(Object::keys) {
                prop_assert!(merged.contains_key(key));
            }
        }

        #[test]
        fn an_empty_override_changes_nothing(switches in switches(), window in any::<u32>()) {
            let model = Model { compat: switches, context_window: window.into(), ..Model::placeholder() };
            let mut same = model.clone();
            override_model(&mut same, ModelFields::default());
            prop_assert_eq!(same, model);
        }
    }
}
