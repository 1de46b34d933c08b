//! The vendors that speak another vendor's API with differences: one row of [`VENDORS`] each.
//!
//! A provider that speaks an API without differences needs no row. The `compat` of a model, in the catalogue or in `models.json`, overrides
//! its vendor's row.

use agentd_protocol::model::Model;

/// The name by which agentd introduces itself to providers.
pub(crate) const AGENT_NAME: &str = "agentd";

/// The differences of one vendor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vendor {
    /// The vendor's ids in the catalogue's list of providers.
    providers: &'static [&'static str],
    /// Parts of base URLs by which the vendor is recognised when the provider has another id.
    hosts: &'static [&'static str],
    /// Headers by which agentd introduces itself to this vendor, on any API.
    pub(crate) identity_headers: &'static [(&'static str, &'static str)],
    /// The header for the session's id, on any API.
    pub(crate) session_header: Option<&'static str>,
    /// The form of the session affinity headers, on any API, where it is not OpenAI's.
    pub(crate) session_affinity_format: Option<&'static str>,
    /// Differences in the chat completions API.
    pub(crate) completions: CompletionsDifferences,
}

/// The differences of a vendor in the chat completions API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletionsDifferences {
    /// Knows the field `store`.
    pub(crate) supports_store: bool,
    /// The models that take the role `developer`.
    pub(crate) developer_role: SupportedModels,
    /// Knows the field `reasoning_effort`.
    pub(crate) supports_reasoning_effort: bool,
    /// Knows the field `max_completion_tokens`; otherwise the limit of the answer goes into `max_tokens`.
    pub(crate) supports_max_completion_tokens: bool,
    /// Keeps prompts in its cache for longer when a request asks for it.
    pub(crate) supports_long_cache_retention: bool,
    /// Refuses an assistant message of a reasoning model without `reasoning_content`.
    pub(crate) requires_reasoning_content: bool,
    /// The thinking of a request. Pure.
    pub(crate) thinking_format: ThinkingFormat,
    /// The models whose cache markers have Anthropic's form.
    pub(crate) anthropic_cache_control: SupportedModels,
    /// Reports the cost that is paid.
    pub(crate) reports_cost: bool,
}

/// A set of a vendor's models.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SupportedModels {
    All,
    None,
    /// Those whose id begins with one of these.
    WithPrefix(&'static [&'static str]),
}

impl SupportedModels {
    /// Whether the set holds a model.
    pub(crate) fn contains(self, model_id: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::WithPrefix(prefixes) => prefixes.iter().any(|prefix| model_id.starts_with(prefix)),
        }
    }
}

/// The form in which a vendor's chat completions API is asked for thinking (`compat.thinkingFormat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingFormat {
    OpenAi,
    OpenRouter,
    DeepSeek,
    Zai,
    Together,
    Qwen,
    QwenChatTemplate,
    ChatTemplate,
    Baseten,
    StringThinking,
    AntLing,
}

impl ThinkingFormat {
    /// The format that `compat.thinkingFormat` names.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "openai" => Self::OpenAi,
            "openrouter" => Self::OpenRouter,
            "deepseek" => Self::DeepSeek,
            "zai" => Self::Zai,
            "together" => Self::Together,
            "qwen" => Self::Qwen,
            "qwen-chat-template" => Self::QwenChatTemplate,
            "chat-template" => Self::ChatTemplate,
            "baseten" => Self::Baseten,
            "string-thinking" => Self::StringThinking,
            "ant-ling" => Self::AntLing,
            _ => return None,
        })
    }
}

/// OpenAI's own chat completions API, without differences.
const OPENAI: CompletionsDifferences = CompletionsDifferences {
    supports_store: true,
    developer_role: SupportedModels::All,
    supports_reasoning_effort: true,
    supports_max_completion_tokens: true,
    supports_long_cache_retention: true,
    requires_reasoning_content: false,
    thinking_format: ThinkingFormat::OpenAi,
    anthropic_cache_control: SupportedModels::None,
    reports_cost: false,
};

/// The usual imitation of the chat completions API, which lacks these fields.
const IMITATION: CompletionsDifferences =
    CompletionsDifferences { supports_store: false, developer_role: SupportedModels::None, ..OPENAI };

/// An imitation that limits answers by the older field, too.
const OLDER_IMITATION: CompletionsDifferences =
    CompletionsDifferences { supports_max_completion_tokens: false, ..IMITATION };

/// A vendor of which nothing is known.
const UNKNOWN: Vendor = Vendor {
    providers: &[],
    hosts: &[],
    identity_headers: &[],
    session_header: None,
    session_affinity_format: None,
    completions: OPENAI,
};

/// All vendors that differ. A model may be of several (a gateway whose address names another vendor): it then has the differences of all,
/// and the thinking format of the first.
const VENDORS: &[Vendor] = &[
    Vendor {
        providers: &["deepseek"],
        hosts: &["deepseek.com"],
        completions: CompletionsDifferences {
            requires_reasoning_content: true,
            thinking_format: ThinkingFormat::DeepSeek,
            ..OLDER_IMITATION
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["zai", "zai-coding-cn"],
        hosts: &["api.z.ai", "open.bigmodel.cn"],
        completions: CompletionsDifferences {
            supports_reasoning_effort: false,
            thinking_format: ThinkingFormat::Zai,
            ..OLDER_IMITATION
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["together"],
        hosts: &["api.together.ai", "api.together.xyz"],
        completions: CompletionsDifferences {
            supports_reasoning_effort: false,
            supports_long_cache_retention: false,
            thinking_format: ThinkingFormat::Together,
            ..OLDER_IMITATION
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["ant-ling"],
        hosts: &["api.ant-ling.com"],
        completions: CompletionsDifferences {
            supports_reasoning_effort: false,
            supports_long_cache_retention: false,
            thinking_format: ThinkingFormat::AntLing,
            ..OLDER_IMITATION
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["openrouter"],
        hosts: &["openrouter.ai"],
        identity_headers: &[("x-openrouter-title", AGENT_NAME), ("x-openrouter-categories", "cli-agent")],
        session_affinity_format: Some("openrouter"),
        completions: CompletionsDifferences {
            developer_role: SupportedModels::WithPrefix(&["anthropic/", "openai/"]),
            thinking_format: ThinkingFormat::OpenRouter,
            anthropic_cache_control: SupportedModels::WithPrefix(&["anthropic/"]),
            reports_cost: true,
            ..OPENAI
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["nvidia"],
        hosts: &["integrate.api.nvidia.com"],
        identity_headers: &[("x-billing-invoke-origin", AGENT_NAME)],
        completions: CompletionsDifferences {
            supports_reasoning_effort: false,
            supports_long_cache_retention: false,
            ..OLDER_IMITATION
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["moonshotai", "moonshotai-cn"],
        hosts: &["api.moonshot."],
        completions: CompletionsDifferences { supports_reasoning_effort: false, ..OLDER_IMITATION },
        ..UNKNOWN
    },
    Vendor {
        providers: &["cloudflare-ai-gateway"],
        hosts: &["gateway.ai.cloudflare.com"],
        completions: CompletionsDifferences {
            supports_reasoning_effort: false,
            supports_long_cache_retention: false,
            ..OLDER_IMITATION
        },
        ..UNKNOWN
    },
    Vendor {
        providers: &["cloudflare-workers-ai"],
        hosts: &["api.cloudflare.com"],
        completions: CompletionsDifferences { supports_long_cache_retention: false, ..IMITATION },
        ..UNKNOWN
    },
    Vendor { providers: &["chutes"], hosts: &["chutes.ai"], completions: OLDER_IMITATION, ..UNKNOWN },
    Vendor {
        providers: &["xai"],
        hosts: &["api.x.ai"],
        completions: CompletionsDifferences { supports_reasoning_effort: false, ..IMITATION },
        ..UNKNOWN
    },
    Vendor { providers: &["cerebras"], hosts: &["cerebras.ai"], completions: IMITATION, ..UNKNOWN },
    Vendor {
        providers: &["opencode", "opencode-go"],
        hosts: &["opencode.ai"],
        identity_headers: &[("x-opencode-client", AGENT_NAME)],
        session_header: Some("x-opencode-session"),
        completions: IMITATION,
        ..UNKNOWN
    },
];

/// The vendors that a model is of, in the order of the table; none for OpenAI itself and for servers without differences.
pub(crate) fn of(model: &Model) -> impl Iterator<Item = &'static Vendor> {
    VENDORS.iter().filter(|vendor| {
        vendor.providers.contains(&model.provider.as_str())
            || vendor.hosts.iter().any(|host| model.base_url.contains(host))
    })
}

/// The form of the session affinity headers that a model's vendor wants, where it is not OpenAI's.
pub(crate) fn session_affinity_format(model: &Model) -> Option<&'static str> {
    of(model).find_map(|vendor| vendor.session_affinity_format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_is_recognised_by_provider_or_address() {
        let found = |provider: &str, base_url: &str| {
            let model =
                Model { provider: provider.into(), base_url: base_url.into(), ..Model::placeholder() };
            of(&model).map(|vendor| vendor.providers[0]).collect::<Vec<_>>()
        };
        assert_eq!(found("deepseek", ""), ["deepseek"]);
        assert_eq!(found("mine", "https://api.deepseek.com/v1"), ["deepseek"]);
        assert_eq!(found("xai", "https://openrouter.ai/api/v1"), ["openrouter", "xai"]);
        assert!(found("mine", "http://127.0.0.1:8080/v1").is_empty());
    }

    #[test]
    fn every_row_can_be_recognised() {
        for vendor in VENDORS {
            assert!(!vendor.providers.is_empty() && !vendor.hosts.is_empty(), "{vendor:?}");
        }
    }
}
