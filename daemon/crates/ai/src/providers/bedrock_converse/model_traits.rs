//! The traits of a model on Bedrock, told by its id and name: this API serves the models of many makers, each with fields of its own. The
//! model's `compat` overrides them.

use agentd_protocol::model::Model;
use serde_json::Value;

use crate::Request;

/// The traits of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelTraits {
    /// A Claude, which signs its reasoning and has its own rules for messages.
    pub(super) claude: bool,
    /// Takes an effort for its thinking instead of a budget.
    pub(super) adaptive: bool,
    /// Knows an effort above `high`, and binds thinking to the transcript before it.
    pub(super) latest: bool,
    pub(super) gpt_oss: bool,
    pub(super) gpt: bool,
    pub(super) nova: bool,
    pub(super) caching: bool,
    pub(super) strict_tools: bool,
    /// Runs in GovCloud, which refuses some of the newer fields.
    pub(super) gov_cloud: bool,
}

/// Claudes with adaptive thinking.
const ADAPTIVE: &[&str] = &["opus-4-6", "sonnet-4-6"];

/// Claudes with adaptive thinking and the newer fields.
const LATEST: &[&str] = &["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable-5"];

/// More Claudes whose prompts can be cached.
const CACHING: &[&str] = &["-4-", "claude-3-7-sonnet", "claude-3-5-haiku"];

impl ModelTraits {
    /// The traits of the model of `request`.
    pub(super) fn of(request: &Request) -> Self {
        let model = &*request.model;
        let names = names(model);
        let holds = |parts: &[&str]| parts.iter().any(|part| names.iter().any(|name| name.contains(part)));
        let claude = holds(&["claude"]);
        let latest = claude && holds(LATEST);
        let adaptive = latest || (claude && holds(ADAPTIVE));
        let gpt_oss = holds(&["gpt-oss"]);
        let account = &request.credentials.account;
        let id = model.id.to_lowercase();
        let region = account.region.as_deref().unwrap_or_default().to_lowercase();
        let mut traits = Self {
            claude,
            adaptive,
            latest,
            gpt_oss,
            gpt: !gpt_oss && holds(&["gpt-"]),
            nova: holds(&["nova-2"]),
            caching: if claude { latest || holds(CACHING) } else { account.force_cache },
            strict_tools: false,
            gov_cloud: region.starts_with("us-gov-")
                || id.starts_with("us-gov.")
                || id.starts_with("arn:aws-us-gov:"),
        };
        let switches = [
            ("supportsStrictMode", &mut traits.strict_tools),
            ("forceAdaptiveThinking", &mut traits.adaptive),
            ("supportsPromptCaching", &mut traits.caching),
        ];
        let overrides = model.compat.as_ref();
        for (name, switch) in switches {
            if let Some(value) = overrides.and_then(|compat| compat.get(name)).and_then(Value::as_bool) {
                *switch = value;
            }
        }
        traits
    }
}

/// The id and the name in lower case, unchanged and with dashes only: `Claude Opus 4.6` also as `claude-opus-4-6`.
fn names(model: &Model) -> Vec<String> {
    let mut names = Vec::with_capacity(4);
    for name in [&model.id, &model.name] {
        let name = name.to_lowercase();
        let mut dashed = String::with_capacity(name.len());
        for letter in name.chars() {
            let letter =
                if matches!(letter, '_' | '.' | ':') || letter.is_whitespace() { '-' } else { letter };
            if !(letter == '-' && dashed.ends_with('-')) {
                dashed.push(letter);
            }
        }
        names.extend([name, dashed]);
    }
    names
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn traits(id: &str, name: &str, compat: Value) -> ModelTraits {
        let model = Model {
            id: id.into(),
            name: name.into(),
            compat: compat.as_object().cloned(),
            ..Model::placeholder()
        };
        ModelTraits::of(&Request::new(Arc::new(model), Vec::new()))
    }

    #[test]
    fn models_are_known_by_id_or_name() {
        let check = |id: &str, name: &str, words: &str| {
            let traits = traits(id, name, Value::Null);
            let found = [
                (traits.claude, "claude"),
                (traits.adaptive, "adaptive"),
                (traits.latest, "latest"),
                (traits.gpt_oss, "oss"),
                (traits.gpt, "gpt"),
                (traits.nova, "nova"),
                (traits.caching, "caching"),
                (traits.gov_cloud, "gov"),
            ];
            let found: Vec<&str> = found.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
            assert_eq!(found.join(" "), words, "{id} {name}");
        };
        check("anthropic.claude-opus-4-1-20250805-v1:0", "", "claude caching");
        check("us.anthropic.claude-sonnet-4-6", "", "claude adaptive caching");
        check("global.anthropic.claude-opus-5-5", "", "claude adaptive latest caching");
        check("anthropic.claude-3-5-sonnet-20240620-v1:0", "", "claude");
        check("anthropic.claude-3-7-sonnet-20250219-v1:0", "", "claude caching");
        check(
            "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x",
            "Claude Opus 4.6",
            "claude adaptive caching",
        );
        check("openai.gpt-oss-120b-1:0", "", "oss");
        check("us-gov.openai.gpt-oss-20b-1:0", "", "oss gov");
        check("global.openai.gpt-6-sol", "", "gpt");
        check("eu.amazon.nova-2-lite-v1:0", "", "nova");
        check("amazon.nova-lite-v1:0", "", "");
        check("xai.grok-4.6", "", "");
    }

    #[test]
    fn configuration_wins() {
        let all =
            json!({"supportsStrictMode": true, "forceAdaptiveThinking": true, "supportsPromptCaching": true});
        let found = traits("mine", "", all);
        assert!(found.strict_tools && found.adaptive && found.caching);
        assert!(!traits("anthropic.claude-opus-5", "", json!({"supportsPromptCaching": false})).caching);
        let mut request = Request::new(Arc::new(Model::placeholder()), Vec::new());
        request.credentials.account.force_cache = true;
        assert!(ModelTraits::of(&request).caching);
    }
}
