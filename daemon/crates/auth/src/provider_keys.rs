//! The environment variables that hold a provider's key. From the providers' documentation, by way of pi's table.

use agentd_config::Environment;
use agentd_http::Account;

use crate::{Secret, aws, federation, google};

/// A key from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderKey {
    /// Sent as the API wants its keys.
    ApiKey(Secret),
    /// Sent as `Authorization: Bearer`.
    Bearer(Secret),
    /// A token of a cloud, with the account that requests belong to.
    Cloud(Secret, Account),
}

/// The variables of a provider.
struct ProviderVariables {
    provider: &'static str,
    /// The variables that hold the key, in order.
    keys: &'static [&'static str],
    /// Groups of which one variable each must be set too, or the key is of no use.
    with: &'static [&'static [&'static str]],
}

/// A bearer token in the place of a key.
const BEARER: &str = "ANTHROPIC_AUTH_TOKEN";

const fn row(provider: &'static str, keys: &'static [&'static str]) -> ProviderVariables {
    ProviderVariables { provider, keys, with: &[] }
}

/// Sources that need more than a key (cloud identities, federated tokens) are not in the table; [`cloud_variable_of`] knows
/// them.
const TABLE: &[ProviderVariables] = &[
    row("anthropic", &[BEARER, "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"]),
    row("openai", &["OPENAI_API_KEY"]),
    ProviderVariables {
        provider: "azure",
        keys: &["AZURE_OPENAI_API_KEY"],
        with: &[&["AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_RESOURCE_NAME"]],
    },
    row("google", &["GEMINI_API_KEY"]),
    row("google-vertex", &["GOOGLE_CLOUD_API_KEY"]),
    row("amazon-bedrock", &["AWS_BEARER_TOKEN_BEDROCK"]),
    row("github-copilot", &["COPILOT_GITHUB_TOKEN"]),
    row("ant-ling", &["ANT_LING_API_KEY"]),
    row("baseten", &["BASETEN_API_KEY"]),
    row("cerebras", &["CEREBRAS_API_KEY"]),
    row("deepseek", &["DEEPSEEK_API_KEY"]),
    row("fireworks", &["FIREWORKS_API_KEY"]),
    row("groq", &["GROQ_API_KEY"]),
    row("huggingface", &["HF_TOKEN"]),
    row("kimi-coding", &["KIMI_API_KEY"]),
    row("meta", &["META_API_KEY"]),
    row("minimax", &["MINIMAX_API_KEY"]),
    row("minimax-cn", &["MINIMAX_CN_API_KEY"]),
    row("mistral", &["MISTRAL_API_KEY"]),
    row("moonshotai", &["MOONSHOT_API_KEY"]),
    row("moonshotai-cn", &["MOONSHOT_API_KEY"]),
    row("nvidia", &["NVIDIA_API_KEY"]),
    row("opencode", &["OPENCODE_API_KEY"]),
    row("opencode-go", &["OPENCODE_API_KEY"]),
    row("openrouter", &["OPENROUTER_API_KEY"]),
    row("radius", &["RADIUS_API_KEY"]),
    row("together", &["TOGETHER_API_KEY"]),
    row("typesafe", &["TYPESAFE_API_KEY"]),
    row("vercel-ai-gateway", &["AI_GATEWAY_API_KEY"]),
    row("xai", &["XAI_API_KEY"]),
    row("zai", &["ZAI_API_KEY"]),
    row("zai-coding-cn", &["ZAI_CODING_CN_API_KEY"]),
    row("xiaomi", &["XIAOMI_API_KEY"]),
    row("xiaomi-token-plan-cn", &["XIAOMI_TOKEN_PLAN_CN_API_KEY"]),
    row("xiaomi-token-plan-ams", &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"]),
    row("xiaomi-token-plan-sgp", &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"]),
    row("qwen-token-plan", &["QWEN_TOKEN_PLAN_API_KEY"]),
    row("qwen-token-plan-individual", &["QWEN_TOKEN_PLAN_API_KEY"]),
    row("qwen-token-plan-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    row("qwen-token-plan-individual-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    ProviderVariables {
        provider: "cloudflare-workers-ai",
        keys: &["CLOUDFLARE_API_KEY"],
        with: &[&["CLOUDFLARE_ACCOUNT_ID"]],
    },
    ProviderVariables {
        provider: "cloudflare-ai-gateway",
        keys: &["CLOUDFLARE_API_KEY"],
        with: &[&["CLOUDFLARE_ACCOUNT_ID"], &["CLOUDFLARE_GATEWAY_ID"]],
    },
];

/// The key of a provider, if the environment has it with all that goes with it. An empty variable counts as not set.
pub(crate) fn key_of(provider: &str, environment: &Environment) -> Option<ProviderKey> {
    let name = key_variable_of(provider, environment)?;
    let secret = Secret::new(environment.non_empty(name)?);
    Some(if name == BEARER { ProviderKey::Bearer(secret) } else { ProviderKey::ApiKey(secret) })
}

/// The variable that stands for what a cloud's credentials are made of, where all that they take is there.
pub(crate) fn cloud_variable_of(provider: &str, environment: &Environment) -> Option<&'static str> {
    if google::has(provider) && google::is_configured(environment) {
        let named = ["GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"];
        let named = named.into_iter().find(|name| environment.non_empty(name).is_some());
        // The file that gcloud writes has no variable; this one is always set.
        return Some(named.unwrap_or("GOOGLE_CLOUD_LOCATION"));
    }
    federation::is_configured(provider, environment).then_some("ANTHROPIC_FEDERATION_RULE_ID")
}

/// The variable that says where the key comes from: the one that [`key_of`] takes it from, or one that names a source of AWS.
pub(crate) fn variable_of(provider: &str, environment: &Environment) -> Option<&'static str> {
    key_variable_of(provider, environment).or_else(|| aws::variable_of(provider, environment))
}

fn key_variable_of(provider: &str, environment: &Environment) -> Option<&'static str> {
    if !missing_beside_key(provider, environment).is_empty() {
        return None;
    }
    let is_set = |name: &&&str| environment.non_empty(name).is_some();
    row_of(provider)?.keys.iter().find(is_set).copied()
}

/// The variables that a provider needs beside its key and the environment lacks, each as `A or B`.
pub(crate) fn missing_beside_key(provider: &str, environment: &Environment) -> Vec<String> {
    let is_set = |name: &&str| environment.non_empty(name).is_some();
    let groups = row_of(provider).map_or(&[][..], |row| row.with);
    groups.iter().filter(|group| !group.iter().any(is_set)).map(|group| group.join(" or ")).collect()
}

/// All providers that read variables.
pub fn providers() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.provider)
}

/// Every variable that holds a key of some provider.
pub(crate) fn key_variables() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| row.keys.iter().copied())
}

/// The variables that a user would set for a provider, in words; `None` for a provider that reads none.
#[must_use]
pub fn advice_for(provider: &str) -> Option<String> {
    let row = row_of(provider)?;
    // The last is the plain API key; those before it are for special logins.
    let key = row.keys.last()?;
    let with = row.with.iter().map(|group| format!(" and {}", group.join(" or ")));
    if let Some(others) = aws::other_variables(provider) {
        return Some(format!("{key} (or {others})"));
    }
    Some(format!("{key}{}", with.collect::<String>()))
}

fn row_of(provider: &str) -> Option<&'static ProviderVariables> {
    TABLE.iter().find(|row| row.provider == provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(provider: &str, variables: &[(&str, &str)], expected: Option<ProviderKey>) {
        let environment: Environment = variables.iter().copied().collect();
        assert_eq!(key_of(provider, &environment), expected, "{provider} {variables:?}");
    }

    /// Every provider of the catalogue reads a variable, or is known not to.
    #[test]
    fn every_provider_has_a_row_or_a_reason() {
        // A login with an account is all that it knows.
        const WITHOUT: &[&str] = &["openai-codex"];
        let registry = agentd_config::models::ModelRegistry::builtin();
        let all: Vec<&str> = registry.providers().collect();
        assert!(all.len() > 40, "{all:?}");
        for provider in &all {
            let known = row_of(provider).is_some();
            assert_ne!(known, WITHOUT.contains(provider), "{provider}");
        }
        for provider in providers().filter(|provider| !all.contains(provider)) {
            // It has classifiers only, which are no chat models.
            assert_eq!(provider, "typesafe");
        }
    }

    fn key(text: &str) -> Option<ProviderKey> {
        Some(ProviderKey::ApiKey(Secret::new(text)))
    }

    #[test]
    fn every_row_is_found_by_each_of_its_variables() {
        for row in TABLE {
            for name in row.keys {
                let with = row.with.iter().map(|group| (group[0], "w"));
                let variables: Vec<(&str, &str)> = with.chain([(*name, "k")]).collect();
                let expected =
                    if *name == BEARER { Some(ProviderKey::Bearer(Secret::new("k"))) } else { key("k") };
                check(row.provider, &variables, expected);
            }
            check(row.provider, &[], None);
            assert_eq!(
                TABLE.iter().filter(|other| other.provider == row.provider).count(),
                1,
                "{}",
                row.provider
            );
        }
    }

    #[test]
    fn order_and_companions() {
        let all = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_OAUTH_TOKEN", "o"), (BEARER, "b")];
        check("anthropic", &all, Some(ProviderKey::Bearer(Secret::new("b"))));
        check("anthropic", &all[..2], key("o"));
        check("anthropic", &[("ANTHROPIC_API_KEY", "k"), (BEARER, "")], key("k"));
        check("azure", &[("AZURE_OPENAI_API_KEY", "k")], None);
        check("azure", &[("AZURE_OPENAI_API_KEY", "k"), ("AZURE_OPENAI_RESOURCE_NAME", "r")], key("k"));
        check("cloudflare-ai-gateway", &[("CLOUDFLARE_API_KEY", "k"), ("CLOUDFLARE_ACCOUNT_ID", "a")], None);
        check("unknown", &[("UNKNOWN_API_KEY", "k")], None);
    }

    #[test]
    fn advice() {
        assert_eq!(advice_for("openai").as_deref(), Some("OPENAI_API_KEY"));
        assert_eq!(advice_for("anthropic").as_deref(), Some("ANTHROPIC_API_KEY"));
        let azure = "AZURE_OPENAI_API_KEY and AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME";
        assert_eq!(advice_for("azure").as_deref(), Some(azure));
        assert_eq!(advice_for("local"), None);
    }
}
