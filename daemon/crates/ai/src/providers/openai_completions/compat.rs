//! The switches of a model: what its vendor's row says ([`crate::vendors`]), overridden by the model's `compat`.

use agentd_protocol::model::Model;
use serde_json::{Map, Value};

use crate::vendors::{self, ThinkingFormat, Vendor};

/// The switches of one model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compat {
    pub(super) supports_store: bool,
    pub(super) supports_developer_role: bool,
    pub(super) supports_reasoning_effort: bool,
    pub(super) supports_usage_in_streaming: bool,
    pub(super) supports_finish_reason: bool,
    pub(super) max_tokens_field: String,
    pub(super) requires_tool_result_name: bool,
    pub(super) requires_assistant_after_tool_result: bool,
    pub(super) requires_non_null_assistant_content: bool,
    pub(super) requires_tools_with_tool_history: bool,
    pub(super) requires_thinking_as_text: bool,
    pub(super) requires_reasoning_content_on_assistant_messages: bool,
    pub(super) thinking_format: ThinkingFormat,
    pub(super) supports_strict_mode: bool,
    pub(super) supports_mid_convo_system_messages: bool,
    pub(super) zai_tool_stream: bool,
    /// The field for the limit of thinking tokens, if there is one.
    pub(super) thinking_token_budget_field: Option<String>,
    pub(super) anthropic_cache_control: bool,
    pub(super) send_session_affinity_headers: bool,
    pub(super) session_affinity_format: String,
    pub(super) prompt_cache_key_mode: String,
    pub(super) supports_long_cache_retention: bool,
    pub(super) open_router_routing: Option<Value>,
    pub(super) vercel_gateway_routing: Option<Value>,
    pub(super) chat_template_kwargs: Map<String, Value>,
    pub(super) chat_template_args: Map<String, Value>,
    pub(super) vllm_priority: Option<Value>,
    /// Whether the server reports the cost that is paid.
    pub(super) reports_cost: bool,
    /// Whether the server is OpenAI itself, whatever the provider's name.
    pub(super) is_openai: bool,
}

impl Compat {
    /// The switches of `model`.
    pub(super) fn of(model: &Model) -> Self {
        let mut compat = Self::openai(model);
        for vendor in vendors::of(model) {
            compat.adjust(vendor, model);
        }
        if let Some(overrides) = &model.compat {
            compat.apply(overrides);
        }
        compat
    }

    /// The switches of OpenAI itself, which unknown servers get, too.
    fn openai(model: &Model) -> Self {
        Self {
            supports_store: true,
            supports_developer_role: true,
            supports_reasoning_effort: true,
            supports_usage_in_streaming: true,
            supports_finish_reason: true,
            max_tokens_field: "max_completion_tokens".into(),
            requires_tool_result_name: false,
            requires_assistant_after_tool_result: false,
            requires_non_null_assistant_content: false,
            requires_tools_with_tool_history: false,
            requires_thinking_as_text: false,
            requires_reasoning_content_on_assistant_messages: false,
            thinking_format: ThinkingFormat::OpenAi,
            supports_strict_mode: false,
            supports_mid_convo_system_messages: false,
            zai_tool_stream: false,
            thinking_token_budget_field: None,
            anthropic_cache_control: false,
            send_session_affinity_headers: false,
            session_affinity_format: "openai".into(),
            prompt_cache_key_mode: "auto".into(),
            supports_long_cache_retention: true,
            open_router_routing: None,
            vercel_gateway_routing: None,
            chat_template_kwargs: Map::new(),
            chat_template_args: Map::new(),
            vllm_priority: None,
            reports_cost: false,
            is_openai: model.base_url.contains("api.openai.com"),
        }
    }

    /// Adds the differences of one vendor. The thinking format of the first vendor that has one stays.
    fn adjust(&mut self, vendor: &Vendor, model: &Model) {
        let differences = &vendor.completions;
        self.supports_store &= differences.supports_store;
        self.supports_developer_role &= differences.developer_role.contains(&model.id);
        self.supports_reasoning_effort &= differences.supports_reasoning_effort;
        if !differences.supports_max_completion_tokens {
            self.max_tokens_field = "max_tokens".into();
        }
        self.requires_reasoning_content_on_assistant_messages |= differences.requires_reasoning_content;
        if self.thinking_format == ThinkingFormat::OpenAi {
            self.thinking_format = differences.thinking_format;
        }
        self.anthropic_cache_control |= differences.anthropic_cache_control.contains(&model.id);
        if let Some(format) = vendor.session_affinity_format {
            self.send_session_affinity_headers = true;
            self.session_affinity_format = format.into();
        }
        self.supports_long_cache_retention &= differences.supports_long_cache_retention;
        self.reports_cost |= differences.reports_cost;
    }

    /// Puts the switches in a model's `compat` over those of its vendor.
    fn apply(&mut self, overrides: &Map<String, Value>) {
        let switches = [
            ("supportsStore", &mut self.supports_store),
            ("supportsDeveloperRole", &mut self.supports_developer_role),
            ("supportsReasoningEffort", &mut self.supports_reasoning_effort),
            ("supportsUsageInStreaming", &mut self.supports_usage_in_streaming),
            ("supportsFinishReason", &mut self.supports_finish_reason),
            ("requiresToolResultName", &mut self.requires_tool_result_name),
            ("requiresAssistantAfterToolResult", &mut self.requires_assistant_after_tool_result),
            ("requiresNonNullAssistantContent", &mut self.requires_non_null_assistant_content),
            ("requiresToolsWithToolHistory", &mut self.requires_tools_with_tool_history),
            ("requiresThinkingAsText", &mut self.requires_thinking_as_text),
            (
                "requiresReasoningContentOnAssistantMessages",
                &mut self.requires_reasoning_content_on_assistant_messages,
            ),
            ("supportsStrictMode", &mut self.supports_strict_mode),
            ("supportsMidConvoSystemMessages", &mut self.supports_mid_convo_system_messages),
            ("zaiToolStream", &mut self.zai_tool_stream),
            ("sendSessionAffinityHeaders", &mut self.send_session_affinity_headers),
            ("supportsLongCacheRetention", &mut self.supports_long_cache_retention),
        ];
        for (name, switch) in switches {
            if let Some(value) = overrides.get(name).and_then(Value::as_bool) {
                *switch = value;
            }
        }
        let names = [
            ("maxTokensField", &mut self.max_tokens_field),
            ("sessionAffinityFormat", &mut self.session_affinity_format),
            ("promptCacheKeyMode", &mut self.prompt_cache_key_mode),
        ];
        for (name, field) in names {
            if let Some(value) = overrides.get(name).and_then(Value::as_str) {
                value.clone_into(field);
            }
        }
        let field = overrides.get("thinkingTokenBudgetField").and_then(Value::as_str);
        self.thinking_token_budget_field = match overrides.get("supportsThinkingTokenBudget") {
            _ if field.is_some() => field.map(str::to_owned),
            Some(Value::Bool(true)) => Some("thinking_token_budget".to_owned()),
            _ => None,
        };
        if let Some(format) = overrides.get("thinkingFormat").and_then(Value::as_str) {
            match ThinkingFormat::from_name(format) {
                Some(format) => self.thinking_format = format,
                None => tracing::warn!(format, "unknown thinkingFormat of a model"),
            }
        }
        if let Some(format) = overrides.get("cacheControlFormat") {
            self.anthropic_cache_control = format == "anthropic";
        }
        let given = |name: &str| overrides.get(name).filter(|value| !value.is_null()).cloned();
        self.open_router_routing = given("openRouterRouting");
        self.vercel_gateway_routing = given("vercelGatewayRouting");
        self.vllm_priority = given("vllmPriority");
        let map = |name: &str| overrides.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        self.chat_template_kwargs = map("chatTemplateKwargs");
        self.chat_template_args = map("chatTemplateArgs");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(provider: &str, base_url: &str, id: &str) -> Model {
        Model { provider: provider.into(), base_url: base_url.into(), id: id.into(), ..Model::placeholder() }
    }

    #[test]
    fn an_unknown_server_is_taken_for_openai() {
        let compat = Compat::of(&model("local", "http://127.0.0.1:8080/v1", "m"));
        assert!(compat.supports_store && compat.supports_developer_role && compat.supports_reasoning_effort);
        assert_eq!(compat.max_tokens_field, "max_completion_tokens");
        assert_eq!(compat.thinking_format, ThinkingFormat::OpenAi);
        assert!(!compat.anthropic_cache_control && !compat.reports_cost);
    }

    #[test]
    fn known_hosts_are_found_by_provider_or_address() {
        for model in [model("deepseek", "", "m"), model("mine", "https://api.deepseek.com", "m")] {
            let compat = Compat::of(&model);
            assert_eq!(compat.thinking_format, ThinkingFormat::DeepSeek);
            assert_eq!(compat.max_tokens_field, "max_tokens");
            assert!(compat.requires_reasoning_content_on_assistant_messages && !compat.supports_store);
            assert!(compat.supports_reasoning_effort);
        }
        assert!(!Compat::of(&model("xai", "", "m")).supports_reasoning_effort);
        assert_eq!(Compat::of(&model("cerebras", "", "m")).max_tokens_field, "max_completion_tokens");
        assert!(
            !Compat::of(&model("x", "https://gateway.ai.cloudflare.com/v1/a", "m"))
                .supports_long_cache_retention
        );
    }

    #[test]
    fn openrouter_depends_on_the_model() {
        let of = |id: &str| Compat::of(&model("openrouter", "https://openrouter.ai/api/v1", id));
        assert!(of("anthropic/x").anthropic_cache_control && of("anthropic/x").supports_developer_role);
        assert!(!of("openai/x").anthropic_cache_control && of("openai/x").supports_developer_role);
        assert!(!of("qwen/x").supports_developer_role && of("qwen/x").reports_cost);
        assert_eq!(of("qwen/x").session_affinity_format, "openrouter");
    }

    #[test]
    fn the_models_own_switches_win() {
        let compat = json!({"supportsStore": false, "maxTokensField": "max_tokens", "thinkingFormat": "qwen",
            "cacheControlFormat": "anthropic", "chatTemplateKwargs": {"a": 1}, "vllmPriority": 3,
            "supportsDeveloperRole": "odd"});
        let compat = Compat::of(&Model { compat: compat.as_object().cloned(), ..model("local", "", "m") });
        assert!(!compat.supports_store && compat.anthropic_cache_control && compat.supports_developer_role);
        assert_eq!((&*compat.max_tokens_field, compat.thinking_format), ("max_tokens", ThinkingFormat::Qwen));
        assert_eq!((compat.vllm_priority, compat.chat_template_kwargs.len()), (Some(json!(3)), 1));
    }
}
