use serde_json::{Value, json};

use super::*;
use crate::models::testing::full_id;

fn registry(file: &Value) -> ModelRegistry {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.json");
    std::fs::write(&path, json!({ "providers": file }).to_string()).unwrap();
    let registry = ModelRegistry::load(&path);
    assert_eq!(registry.load_error(), None);
    registry
}

fn unpacked(registry: &ModelRegistry) -> Vec<&str> {
    registry.unpacked_providers().collect()
}

fn ids(registry: &ModelRegistry) -> Vec<String> {
    registry.select(&|_| true).map(|model| full_id(model)).collect()
}

#[test]
fn nothing_is_unpacked_before_it_is_looked_at() {
    let file = json!({"openai": {"baseUrl": "http://proxy", "headers": {"X": "1"}}, "mine": {"baseUrl": "http://h", "api": "a",
        "models": [{"id": "m"}]}, "anthropic": {"modelOverrides": {"claude-opus-5-5": {"name": "x"}}}});
    let registry = registry(&file);
    assert_eq!(registry.providers().count(), 43);
    assert_eq!(registry.providers().last(), Some("mine"));
    assert_eq!(registry.provider("groq").unwrap().name, "Groq");
    assert!(registry.may_speak("openai", &["openai-responses"]) && !registry.may_speak("openai", &["a"]));
    assert_eq!(registry.count_by_api("groq"), [("openai-completions".to_owned(), 7)]);
    assert_eq!(registry.find("mine", "m").unwrap().base_url, "http://h");
    assert_eq!(registry.find("nobody", "m"), None);
    assert_eq!(unpacked(&registry), [""; 0]);

    assert_eq!(registry.find("openai", "gpt-6.1-sol").unwrap().base_url, "http://proxy");
    assert_eq!(registry.models_of("openai").count(), 44);
    assert_eq!(unpacked(&registry), ["openai"]);
    assert_eq!(registry.select(&|provider| provider == "xai" || provider == "mine").count(), 5);
    assert_eq!(unpacked(&registry), ["openai", "xai"]);
    assert_eq!(registry.select(&|_| true).count(), 1644);
    assert_eq!(unpacked(&registry).len(), 42);
}

#[test]
fn without_a_file_there_is_the_catalogue() {
    let registry = ModelRegistry::load(Path::new("/nonexistent/models.json"));
    assert_eq!(registry.load_error(), None);
    let model = registry.find("anthropic", "claude-opus-5-5").unwrap();
    assert_eq!(
        (model.api.as_str(), model.base_url.as_str()),
        ("anthropic-messages", "https://api.anthropic.com")
    );
    let gateway = registry.models_of("cloudflare-ai-gateway").next().unwrap();
    assert!(gateway.base_url.contains("{CLOUDFLARE_ACCOUNT_ID}"), "{}", gateway.base_url);
    assert!(registry.find(DEMO_PROVIDER, DEMO_MODEL).is_some());
    let ids = ids(&registry);
    assert_eq!(ids.len(), 1643);
    assert!(ids[0].starts_with("amazon-bedrock/") && ids[1642].starts_with("zai-coding-cn/"));
}

#[test]
fn a_broken_file_leaves_the_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.json");
    std::fs::write(&path, "{").unwrap();
    let registry = ModelRegistry::load(&path);
    assert!(registry.load_error().unwrap().starts_with("Failed to parse models.json"));
    assert!(registry.find("openai", "gpt-6.1-sol").is_some());
}

#[test]
fn a_provider_of_the_catalogue_is_patched() {
    let file = json!({"groq": {"baseUrl": "http://proxy", "compat": {"supportsStore": false}}});
    let (patched, plain) = (registry(&file), ModelRegistry::builtin());
    for (model, before) in patched.models_of("groq").zip(plain.models_of("groq")) {
        let mut expected = Model::clone(before);
        expected.base_url = "http://proxy".into();
        expected.compat.get_or_insert_default().insert("supportsStore".into(), false.into());
        assert_eq!(**model, expected);
    }
    let (model, before) = (patched.find("xai", "grok-4.7").unwrap(), plain.find("xai", "grok-4.7").unwrap());
    // A model that the file does not touch is shared, not copied.
    assert!(Arc::ptr_eq(&model, &before));
}

#[test]
fn models_of_the_file_replace_in_place_or_come_last() {
    let file = json!({
        "own": {"baseUrl": "http://own", "api": "x", "models": [{"id": "first"}]},
        "deepseek": {"models": [{"id": "new"}, {"id": "deepseek-v4-pro", "contextWindow": 5}]},
    });
    let registry = registry(&file);
    let ids = ids(&registry);
    assert_eq!(ids.len(), 1645);
    assert_eq!(ids[1643..], ["own/first", "deepseek/new"]);
    let plain: Vec<String> = ModelRegistry::builtin().select(&|_| true).map(|model| full_id(model)).collect();
    assert_eq!(ids[..1643], plain);
    let replaced = registry.find("deepseek", "deepseek-v4-pro").unwrap();
    assert_eq!(
        (replaced.context_window, replaced.reasoning, replaced.name.as_str()),
        (5, false, "deepseek-v4-pro")
    );
    assert_eq!(replaced.base_url, "https://api.deepseek.com");
    let of_file: Vec<String> = registry.of_file().map(|model| full_id(model)).collect();
    assert_eq!(of_file, ["own/first", "deepseek/new"]);
    assert_eq!(registry.count_by_api("deepseek"), [("openai-completions".to_owned(), 3)]);
}

/// API and base URL of `models: [model]` in the provider `opencode`, which speaks four APIs at as many places.
fn endpoint(provider: &Value, model: &Value) -> (String, String) {
    let mut entry = provider.clone();
    entry["models"] = json!([model]);
    let registry = registry(&json!({ "opencode": entry }));
    let model = registry.find("opencode", model["id"].as_str().unwrap()).unwrap();
    (model.api.clone(), model.base_url.clone())
}

#[test]
fn api_and_base_url_come_from_a_built_in_model() {
    let plain = ModelRegistry::builtin();
    let of_api = |api: &str| {
        let model = plain.models_of("opencode").find(|model| model.api == api).unwrap();
        (api.to_owned(), model.base_url.clone())
    };
    let gemini = plain.models_of("opencode").find(|model| model.api == "google-generative-ai").unwrap();
    assert_eq!(endpoint(&json!({}), &json!({"id": gemini.id})), of_api("google-generative-ai"));
    assert_eq!(
        endpoint(&json!({}), &json!({"id": "n", "api": "anthropic-messages"})),
        of_api("anthropic-messages")
    );
    assert_eq!(
        endpoint(&json!({"api": "openai-responses"}), &json!({"id": "n"})),
        of_api("openai-responses")
    );
    assert_eq!(endpoint(&json!({}), &json!({"id": "n"})), of_api("openai-completions"));
    let own = ("openai-completions".to_owned(), "http://mine".to_owned());
    assert_eq!(endpoint(&json!({"baseUrl": "http://mine"}), &json!({"id": "n"})), own);
    let own = ("morse".to_owned(), "http://model".to_owned());
    let model = json!({"id": "n", "api": "morse", "baseUrl": "http://model"});
    assert_eq!(endpoint(&json!({"baseUrl": "http://mine"}), &model), own);
}

#[test]
fn overrides_change_one_model() {
    let file = json!({"openai": {"modelOverrides": {"gpt-6.1-sol": {"name": "Mine", "maxTokens": 7.0, "cost": {"input": 9},
        "inputLimits": {"maxRequestBytes": 5.0}, "headers": {"X-A": "1"}}, "no-such-model": {"name": "x"}}}});
    let (registry, plain) = (registry(&file), ModelRegistry::builtin());
    let (model, before) =
        (registry.find("openai", "gpt-6.1-sol").unwrap(), plain.find("openai", "gpt-6.1-sol").unwrap());
    assert_eq!((model.name.as_str(), model.max_tokens, model.cost.input), ("Mine", 7, 9.0));
    assert_eq!(
        (model.cost.output, model.context_window, &model.compat),
        (before.cost.output, before.context_window, &before.compat)
    );
    assert_eq!(serde_json::to_string(&model.input_limits).unwrap(), r#"{"maxRequestBytes":5}"#);
    let changed = registry.models_of("openai").zip(plain.models_of("openai")).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 1);
    assert_eq!(registry.models_of("openai").count(), 44);
}

#[test]
fn overrides_of_nothing_are_named() {
    let file = json!({
        "openai": {"modelOverrides": {"gpt-6.1-sol": {"name": "x"}, "gpt-6.1-soll": {"name": "x"}}},
        "groq": {"baseUrl": "http://proxy"},
        "own": {"baseUrl": "http://own", "api": "x", "models": [{"id": "a"}],
            "modelOverrides": {"a": {"api": "y"}}},
    });
    let registry = registry(&file);
    assert_eq!(registry.idle_overrides(), [("openai", "gpt-6.1-soll"), ("own", "a")]);
    assert_eq!(unpacked(&registry), ["openai"]);
    assert!(registry.may_speak("own", &["x"]) && !registry.may_speak("own", &["y"]));
}

fn headers(registry: &ModelRegistry, provider: &str, id: &str) -> Vec<String> {
    let model = registry.find(provider, id).unwrap();
    let headers = registry.headers_of(&model);
    let shown = |value: &Option<ConfigValue>| {
        value.as_ref().map_or_else(|| "(none)".to_owned(), |value| value.expose().to_owned())
    };
    headers.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect()
}

#[test]
fn headers_of_catalogue_provider_and_model() {
    let plain = ModelRegistry::builtin();
    let id = plain.models_of("nvidia").next().unwrap().id.clone();
    assert_eq!(headers(&plain, "nvidia", &id), ["NVCF-POLL-SECONDS=3600"]);
    assert_eq!(headers(&plain, "openai", "gpt-6.1-sol"), [""; 0]);
    let file = json!({"nvidia": {"headers": {"A": "p", "B": "p"}, "modelOverrides": {id.as_str(): {"headers": {"b": "m"}}}}});
    assert_eq!(headers(&registry(&file), "nvidia", &id), ["NVCF-POLL-SECONDS=3600", "A=p", "b=m"]);
    let file = json!({"nvidia": {"headers": {"A": "p", "B": "p", "NVCF-POLL-SECONDS": null},
        "modelOverrides": {id.as_str(): {"headers": {"a": null}}}}});
    assert_eq!(headers(&registry(&file), "nvidia", &id), ["B=p", "NVCF-POLL-SECONDS=(none)", "a=(none)"]);
    let file = json!({"nvidia": {"headers": {"nvcf-poll-seconds": "5"}}});
    assert_eq!(headers(&registry(&file), "nvidia", &id), ["nvcf-poll-seconds=5"]);
}
