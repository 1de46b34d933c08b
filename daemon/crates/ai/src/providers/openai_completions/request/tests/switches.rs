//! What the switches of a model's `compat` do, one by one. (Those of thinking and of the answer have tests beside them.)

use super::*;

/// A conversation in which every switch can show.
fn conversation() -> Value {
    json!([
        {"role": "system", "content": "", "sections": {"a": "A"}, "toolsAdded": [
            {"name": "t", "description": "", "parameters": null}]},
        {"role": "user", "content": "q"},
        answer(json!([call("c1")])),
        result("c1", json!([text("out")])),
        {"role": "system", "content": "", "sections": {"a": "B"}},
        {"role": "user", "content": "r"},
    ])
}

fn with(compat: Value, retention: CacheRetention) -> Value {
    let overrides = json!({"reasoning": true, "maxTokens": 9, "compat": compat});
    encoded(&request(overrides, conversation()), retention)
}

fn short(compat: Value) -> Value {
    with(compat, CacheRetention::Short)
}

#[test]
fn fields_of_the_request() {
    let plain = short(json!({}));
    let field = |switch: &str, value: Value, name: &str, before: Value, after: Value| {
        assert_eq!(plain[name], before, "without {switch}");
        assert_eq!(short(json!({ switch: value }))[name], after, "{switch}");
    };
    field("supportsStore", json!(false), "store", json!(false), Value::Null);
    let usage = json!({"include_usage": true});
    field("supportsUsageInStreaming", json!(false), "stream_options", usage, Value::Null);
    field("maxTokensField", json!("max_tokens"), "max_completion_tokens", json!(9), Value::Null);
    field("maxTokensField", json!("max_tokens"), "max_tokens", Value::Null, json!(9));
    field("zaiToolStream", json!(true), "tool_stream", Value::Null, json!(true));
    field("vllmPriority", json!(-1), "priority", Value::Null, json!(-1));
    let routing = json!({"only": ["x"], "order": ["y"]});
    field("openRouterRouting", routing.clone(), "provider", Value::Null, routing.clone());
    let gateway = json!({ "gateway": routing });
    field("vercelGatewayRouting", routing, "providerOptions", Value::Null, gateway);
    for nothing in [json!({}), json!({"sort": "price"}), json!({"only": null})] {
        field("vercelGatewayRouting", nothing, "providerOptions", Value::Null, Value::Null);
    }
    field("promptCacheKeyMode", json!("enabled"), "prompt_cache_key", Value::Null, json!("session-1"));
}

#[test]
fn a_tool_stream_needs_tools() {
    let request =
        request(json!({"compat": {"zaiToolStream": true}}), json!([{"role": "user", "content": "q"}]));
    assert_eq!(encoded(&request, CacheRetention::Short)["tool_stream"], Value::Null);
}

#[test]
fn messages_of_the_request() {
    let roles = |compat: Value| {
        let body = short(compat);
        let messages = body["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(roles(json!({})), "developer user assistant tool user");
    assert_eq!(roles(json!({"supportsDeveloperRole": false})), "system user assistant tool user");
    let extra = json!({"requiresAssistantAfterToolResult": true});
    assert_eq!(roles(extra), "developer user assistant tool assistant user");

    let in_place = json!({"supportsMidConvoSystemMessages": true});
    assert_eq!(roles(in_place.clone()), "developer user assistant tool developer user");
    let body = short(in_place);
    assert_eq!(body["messages"][0]["content"], "A");
    assert_eq!(body["messages"][4]["content"], "Updated system prompt section \"a\":\n\nB");
    assert_eq!(short(json!({}))["messages"][0]["content"], "B");

    let content = |compat: Value| short(compat)["messages"][2]["content"].clone();
    assert_eq!(content(json!({})), Value::Null);
    assert_eq!(content(json!({"requiresNonNullAssistantContent": true})), "");
    assert_eq!(content(json!({"requiresAssistantAfterToolResult": true})), "");
    let name = |compat: Value| short(compat)["messages"][3]["name"].clone();
    assert_eq!(name(json!({})), Value::Null);
    assert_eq!(name(json!({"requiresToolResultName": true})), "bash");
    let reasoning = |compat: Value| short(compat)["messages"][2]["reasoning_content"].clone();
    assert_eq!(reasoning(json!({})), Value::Null);
    assert_eq!(reasoning(json!({"requiresReasoningContentOnAssistantMessages": true})), "");
}

#[test]
fn caches() {
    let long = |compat: Value| {
        let body = with(compat, CacheRetention::Long);
        (body["prompt_cache_key"].clone(), body["prompt_cache_retention"].clone())
    };
    assert_eq!(long(json!({})), (json!("session-1"), json!("24h")));
    assert_eq!(long(json!({"supportsLongCacheRetention": false})), (Value::Null, Value::Null));
    assert_eq!(long(json!({"promptCacheKeyMode": "disabled"})), (Value::Null, json!("24h")));

    let marker = |compat: Value, retention: CacheRetention| {
        let body = with(compat, retention);
        body["messages"][0]["content"][0]["cache_control"].clone()
    };
    let format = json!({"cacheControlFormat": "anthropic"});
    let (plain, hour) = (json!({"type": "ephemeral"}), json!({"type": "ephemeral", "ttl": "1h"}));
    assert_eq!(marker(json!({}), CacheRetention::Short), Value::Null);
    assert_eq!(marker(format.clone(), CacheRetention::Short), plain);
    assert_eq!(marker(format.clone(), CacheRetention::Long), hour);
    let mut no_hour = format;
    no_hour["supportsLongCacheRetention"] = json!(false);
    assert_eq!(marker(no_hour, CacheRetention::Long), plain);
}

#[test]
fn headers_of_a_session() {
    let found = |compat: Value| {
        let request = request(json!({ "compat": compat }), json!([]));
        let headers = headers(&request, &Compat::of(&request.model)).unwrap();
        let names = headers.iter().filter(|(_, value)| *value == "session-1").map(|(name, _)| name.as_str());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(found(json!({})), "");
    let on =
        |format: &str| found(json!({"sendSessionAffinityHeaders": true, "sessionAffinityFormat": format}));
    assert_eq!(on("openai"), "session_id x-client-request-id x-session-affinity");
    assert_eq!(on("openai-nosession"), "x-client-request-id x-session-affinity");
    assert_eq!(on("openrouter"), "x-session-id");

    let compat = json!({"compat": {"sendSessionAffinityHeaders": true}});
    let uncached = Request { cache_retention: CacheRetention::None, ..request(compat, json!([])) };
    let headers = headers(&uncached, &Compat::of(&uncached.model)).unwrap();
    assert!(headers.iter().all(|(_, value)| value != "session-1"), "{headers:?}");
}
