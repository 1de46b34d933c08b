//! The switches of a model: those of its API ([`Dialect`]) and of its vendor, overridden by the model's `compat`.

use agentd_protocol::model::Model;
use serde_json::{Map, Value};

use crate::vendors;

/// The switches of one model.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::providers) struct Compat {
    pub(super) dialect: Dialect,
    pub(super) supports_developer_role: bool,
    pub(super) supports_mid_convo_system_messages: bool,
    pub(super) supports_reasoning_effort: bool,
    pub(super) supports_strict_mode: bool,
    pub(super) supports_max_output_tokens: bool,
    pub(super) supports_long_cache_retention: bool,
    pub(super) supports_explicit_prompt_cache_mode: bool,
    pub(super) prompt_cache_key_mode: String,
    pub(super) send_session_affinity_headers: bool,
    pub(super) session_affinity_format: String,
}

impl Compat {
    /// The switches of `model` with `dialect`.
    pub(in crate::providers) fn of(model: &Model, dialect: Dialect) -> Self {
        let mut compat = Self {
            dialect,
            supports_developer_role: true,
            supports_mid_convo_system_messages: false,
            supports_reasoning_effort: true,
            supports_strict_mode: dialect.is_strict(),
            supports_max_output_tokens: dialect.limits_answers(),
            supports_long_cache_retention: dialect.keeps_prompts_longer(),
            supports_explicit_prompt_cache_mode: false,
            prompt_cache_key_mode: "auto".into(),
            send_session_affinity_headers: dialect.names_sessions(),
            session_affinity_format: "openai".into(),
        };
        if let Some(format) = vendors::session_affinity_format(model) {
            compat.session_affinity_format = format.into();
        }
        if let Some(overrides) = &model.compat {
            compat.apply(overrides);
        }
        compat
    }

    fn apply(&mut self, overrides: &Map<String, Value>) {
        let switches = [
            ("supportsDeveloperRole", &mut self.supports_developer_role),
            ("supportsMidConvoSystemMessages", &mut self.supports_mid_convo_system_messages),
            ("supportsReasoningEffort", &mut self.supports_reasoning_effort),
            ("supportsStrictMode", &mut self.supports_strict_mode),
            ("supportsMaxOutputTokens", &mut self.supports_max_output_tokens),
            ("supportsLongCacheRetention", &mut self.supports_long_cache_retention),
            ("supportsExplicitPromptCacheMode", &mut self.supports_explicit_prompt_cache_mode),
            ("sendSessionAffinityHeaders", &mut self.send_session_affinity_headers),
        ];
        for (name, switch) in switches {
            if let Some(value) = overrides.get(name).and_then(Value::as_bool) {
                *switch = value;
            }
        }
        let names = [
            ("promptCacheKeyMode", &mut self.prompt_cache_key_mode),
            ("sessionAffinityFormat", &mut self.session_affinity_format),
        ];
        for (name, field) in names {
            if let Some(value) = overrides.get(name).and_then(Value::as_str) {
                value.clone_into(field);
            }
        }
    }
}

/// One of the APIs of this family. `compat` names what an imitation lacks; a dialect differs by nature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers) enum Dialect {
    /// OpenAI's own, and what imitates it.
    OpenAi,
    /// Azure's, where the model is a deployment of the user.
    Azure,
    /// That of ChatGPT subscriptions.
    Codex,
}

impl Dialect {
    /// The default of `supports_strict_mode`.
    pub(super) fn is_strict(self) -> bool {
        self != Self::OpenAi
    }

    /// The default of `supports_long_cache_retention`.
    pub(super) fn keeps_prompts_longer(self) -> bool {
        self == Self::OpenAi
    }

    /// The default of `supports_max_output_tokens`.
    pub(super) fn limits_answers(self) -> bool {
        self != Self::Codex
    }

    /// The default of `send_session_affinity_headers`.
    pub(super) fn names_sessions(self) -> bool {
        self != Self::Azure
    }

    /// Whether the system prompt has its own field, which may not be empty.
    pub(super) fn has_instructions(self) -> bool {
        self == Self::Codex
    }

    /// Whether a tool that is not strict has `null` as its strictness, which leaves it to the server.
    pub(super) fn leaves_strictness_open(self) -> bool {
        self == Self::Codex
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(provider: &str, compat: Value) -> Compat {
        let compat = compat.as_object().cloned();
        Compat::of(&Model { provider: provider.into(), compat, ..Model::placeholder() }, Dialect::OpenAi)
    }

    #[test]
    fn the_models_own_switches_win() {
        let plain = of("openai", Value::Null);
        assert!(plain.supports_developer_role && plain.supports_max_output_tokens);
        assert!(plain.supports_long_cache_retention && plain.send_session_affinity_headers);
        assert!(!plain.supports_strict_mode && !plain.supports_mid_convo_system_messages);
        assert_eq!(of("openrouter", Value::Null).session_affinity_format, "openrouter");
        let odd = json!({"supportsStrictMode": true, "supportsDeveloperRole": "no", "promptCacheKeyMode": "disabled",
            "sendSessionAffinityHeaders": false, "sessionAffinityFormat": "openai-nosession"});
        let odd = of("openrouter", odd);
        assert!(
            odd.supports_strict_mode && odd.supports_developer_role && !odd.send_session_affinity_headers
        );
        assert_eq!(
            (&*odd.prompt_cache_key_mode, &*odd.session_affinity_format),
            ("disabled", "openai-nosession")
        );
    }
}
