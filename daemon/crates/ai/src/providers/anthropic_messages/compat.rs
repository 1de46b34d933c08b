//! The switches of a model: what its vendor is known for ([`crate::vendors`]), overridden by the model's `compat`.

use agentd_protocol::model::{Model, ModelCost};
use serde::Deserialize;
use serde_json::Value;

use crate::vendors;

/// The switches of one model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compat {
    pub(super) supports_eager_tool_input_streaming: bool,
    pub(super) supports_long_cache_retention: bool,
    pub(super) supports_cache_control_on_tools: bool,
    pub(super) supports_temperature: bool,
    pub(super) force_adaptive_thinking: bool,
    pub(super) allow_empty_signature: bool,
    pub(super) supports_strict_tools: bool,
    pub(super) send_session_affinity_headers: bool,
    /// The header by which requests of a session reach the same machine.
    pub(super) session_affinity_header: &'static str,
    /// Models that may answer when the provider does not let the chosen one answer.
    pub(super) fallback_models: Vec<FallbackModel>,
    /// Whether every key goes into `Authorization`, whatever its form.
    pub(super) wants_bearer: bool,
}

/// A model that may answer in place of the chosen one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct FallbackModel {
    /// Its provider.
    pub(super) provider: String,
    /// Its id.
    pub(super) model: String,
    /// Its prices.
    #[serde(default)]
    pub(super) cost: Option<ModelCost>,
}

impl Compat {
    /// The switches of `model`.
    pub(super) fn of(model: &Model) -> Self {
        let openrouter = vendors::session_affinity_format(model) == Some("openrouter");
        let mut compat = Self {
            supports_eager_tool_input_streaming: true,
            supports_long_cache_retention: true,
            supports_cache_control_on_tools: true,
            supports_temperature: true,
            force_adaptive_thinking: false,
            allow_empty_signature: false,
            supports_strict_tools: false,
            send_session_affinity_headers: openrouter,
            session_affinity_header: if openrouter { "x-session-id" } else { "x-session-affinity" },
            fallback_models: fallback_models(model),
            wants_bearer: model.provider == "github-copilot",
        };
        let switches = [
            ("supportsEagerToolInputStreaming", &mut compat.supports_eager_tool_input_streaming),
            ("supportsLongCacheRetention", &mut compat.supports_long_cache_retention),
            ("supportsCacheControlOnTools", &mut compat.supports_cache_control_on_tools),
            ("supportsTemperature", &mut compat.supports_temperature),
            ("forceAdaptiveThinking", &mut compat.force_adaptive_thinking),
            ("allowEmptySignature", &mut compat.allow_empty_signature),
            ("supportsStrictTools", &mut compat.supports_strict_tools),
            ("sendSessionAffinityHeaders", &mut compat.send_session_affinity_headers),
        ];
        let overrides = model.compat.as_ref();
        for (name, switch) in switches {
            if let Some(value) = overrides.and_then(|compat| compat.get(name)).and_then(Value::as_bool) {
                *switch = value;
            }
        }
        if overrides
            .and_then(|compat| compat.get("sessionAffinityFormat"))
            .is_some_and(|format| format == "openrouter")
        {
            compat.session_affinity_header = "x-session-id";
        }
        compat
    }
}

/// The models that `compat` names; malformed entries are left out.
fn fallback_models(model: &Model) -> Vec<FallbackModel> {
    let named = model.compat.as_ref().and_then(|compat| compat.get("allowedFallbackModels"));
    let named = named.and_then(Value::as_array).into_iter().flatten();
    named.filter_map(|entry| FallbackModel::deserialize(entry).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compat(provider: &str, base_url: &str, overrides: Value) -> Compat {
        Compat::of(&Model {
            provider: provider.into(),
            base_url: base_url.into(),
            compat: overrides.as_object().cloned(),
            ..Model::placeholder()
        })
    }

    #[test]
    fn hosts_are_known_and_configuration_wins() {
        let plain = compat("anthropic", "https://api.anthropic.com", Value::Null);
        assert!(plain.supports_eager_tool_input_streaming && plain.supports_temperature);
        assert!(!plain.supports_strict_tools && !plain.send_session_affinity_headers && !plain.wants_bearer);
        assert!(compat("mine", "https://openrouter.ai/api", Value::Null).send_session_affinity_headers);
        assert!(compat("github-copilot", "https://x", Value::Null).wants_bearer);
        let all = json!({
            "supportsEagerToolInputStreaming": false, "supportsLongCacheRetention": false,
            "supportsCacheControlOnTools": false, "supportsTemperature": false, "forceAdaptiveThinking": true,
            "allowEmptySignature": true, "supportsStrictTools": true, "sendSessionAffinityHeaders": false,
        });
        assert_eq!(
            compat("openrouter", "", all),
            Compat {
                supports_eager_tool_input_streaming: false,
                supports_long_cache_retention: false,
                supports_cache_control_on_tools: false,
                supports_temperature: false,
                force_adaptive_thinking: true,
                allow_empty_signature: true,
                supports_strict_tools: true,
                send_session_affinity_headers: false,
                session_affinity_header: "x-session-id",
                fallback_models: Vec::new(),
                wants_bearer: false,
            }
        );
        assert!(compat("p", "", json!({"supportsTemperature": "no"})).supports_temperature);
    }
}
