//! Cache markers, and the history before them.

use super::*;

/// Everything that can be marked.
fn markable() -> Value {
    json!([
        {"role": "system", "content": "S", "toolsAdded": [{"name": "a"}, {"name": "b"}]},
        user(json!("q")),
        answer(json!([call("c")])),
        result("c", json!([text("out")])),
    ])
}

#[test]
fn caches_are_asked_for_up_to_the_end() {
    let check = |overrides: Value, retention: CacheRetention, [system, tool, end]: [Value; 3]| {
        let request = Request { cache_retention: retention, ..request(&overrides, &markable()) };
        let body = encoded(&request);
        let found = [
            &body["system"][0]["cache_control"],
            &body["tools"][1]["cache_control"],
            &body["messages"][2]["content"][0]["cache_control"],
        ];
        assert_eq!(found, [&system, &tool, &end], "{overrides} {retention:?}");
        let all = body.to_string().matches("cache_control").count();
        assert_eq!(all, found.iter().filter(|marker| !marker.is_null()).count());
    };
    let plain = || json!({"type": "ephemeral"});
    let hour = || json!({"type": "ephemeral", "ttl": "1h"});
    check(json!({}), CacheRetention::Short, [plain(), plain(), plain()]);
    check(json!({}), CacheRetention::Long, [hour(), hour(), hour()]);
    check(json!({}), CacheRetention::None, [Value::Null, Value::Null, Value::Null]);
    let short = json!({"compat": {"supportsLongCacheRetention": false}});
    check(short, CacheRetention::Long, [plain(), plain(), plain()]);
    let no_tools = json!({"compat": {"supportsCacheControlOnTools": false}});
    check(no_tools, CacheRetention::Short, [plain(), Value::Null, plain()]);
}

#[test]
fn an_answer_at_the_end_is_not_marked() {
    let messages = json!([user(json!("q")), answer(json!([text("a")]))]);
    let request = Request { cache_retention: CacheRetention::Short, ..request(&json!({}), &messages) };
    assert!(!encoded(&request).to_string().contains("cache_control"));
}

#[test]
fn history_stays_the_same_from_request_to_request() {
    let mut messages = markable();
    let marker = ",\"cache_control\":{\"type\":\"ephemeral\"}";
    let mut before: Option<String> = None;
    for step in [
        answer(json!([text("a"), call("c")])),
        result("c", json!([image("1")])),
        user(json!("next")),
        answer(json!([thinking("hm", Some("s")), text("b")])),
        user(json!([text("see"), image("2")])),
    ] {
        messages.as_array_mut().unwrap().push(step);
        let request = Request { cache_retention: CacheRetention::Short, ..request(&json!({}), &messages) };
        // A call waits for its result: the request of the turn before had none of it.
        let waits = messages.as_array().unwrap().last().unwrap()["role"] == "assistant";
        let json = String::from_utf8(parts(&request).2.json.to_vec()).unwrap().replace(marker, "");
        let json = json.strip_suffix("]}").unwrap().to_owned();
        if let Some(before) = &before {
            assert!(json.starts_with(before.as_str()), "{before}\n{json}");
        }
        if !waits {
            before = Some(json);
        }
    }
}
