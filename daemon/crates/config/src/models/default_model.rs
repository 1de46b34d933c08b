//! The model that the settings name to start with.

use agentd_protocol::settings::Settings;

use super::{DEMO_PROVIDER, UsableModels, names::did_you_mean};

/// The model of `defaultProvider` and `defaultModel`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefaultModel {
    /// Provider and id; `None` where they name no model.
    pub name: Option<(String, String)>,
    /// The fault in these settings.
    pub problem: Option<DefaultProblem>,
}

/// A fault in the default of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultProblem {
    /// The setting that it is about.
    pub key: &'static str,
    /// The fault, and its effect.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

const PROVIDER: &str = "defaultProvider";
const MODEL: &str = "defaultModel";

/// Reads `defaultModel` as an id of `defaultProvider`, or as `provider/id`. Ids can hold slashes, so the former takes
/// precedence where such a model exists. A key is not needed. Unpacks the provider, and on a fault possibly all providers.
#[must_use]
pub fn default_model(usable_models: &UsableModels<'_>, settings: &Settings) -> DefaultModel {
    let said = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match (said(&settings.default_provider), said(&settings.default_model)) {
        (None, None) => DefaultModel::default(),
        (Some(provider), None) => DefaultModel { name: None, problem: no_provider(usable_models, &provider) },
        (None, Some(model)) => match in_full(usable_models, &model) {
            Some((provider, id)) => named(usable_models, provider, id),
            None => DefaultModel { name: None, problem: Some(without_provider(usable_models, &model)) },
        },
        (Some(provider), Some(model)) => match in_full(usable_models, &model) {
            Some((other, id)) if !exists(usable_models, &provider, &model) => {
                if other == provider || !exists(usable_models, other, id) {
                    return if other == provider {
                        named(usable_models, other, id)
                    } else {
                        named(usable_models, &provider, &model)
                    };
                }
                let message = format!(
                    "\"{PROVIDER}\" says {provider}, and \"{MODEL}\" names a model of {other}: {other}/{id} is used"
                );
                let hint = Some(format!("take \"{PROVIDER}\" out, or correct one of them"));
                let problem = Some(DefaultProblem { key: MODEL, message, hint });
                DefaultModel { name: Some((other.to_owned(), id.to_owned())), problem }
            }
            _ => named(usable_models, &provider, &model),
        },
    }
}

/// The text as `provider/id`, where there is that provider.
fn in_full<'a>(usable_models: &UsableModels<'_>, text: &'a str) -> Option<(&'a str, &'a str)> {
    text.split_once('/').filter(|(provider, id)| !id.is_empty() && is_provider(usable_models, provider))
}

fn is_provider(usable_models: &UsableModels<'_>, id: &str) -> bool {
    id == DEMO_PROVIDER || usable_models.registry.providers().any(|known| known == id)
}

fn exists(usable_models: &UsableModels<'_>, provider: &str, id: &str) -> bool {
    let may_be = provider == DEMO_PROVIDER || usable_models.registry.may_have(provider, id);
    may_be && usable_models.registry.find(provider, id).is_some()
}

fn named(usable_models: &UsableModels<'_>, provider: &str, id: &str) -> DefaultModel {
    let name = Some((provider.to_owned(), id.to_owned()));
    if exists(usable_models, provider, id) {
        return DefaultModel { name, problem: None };
    }
    let problem = no_provider(usable_models, provider).unwrap_or_else(|| DefaultProblem {
        key: MODEL,
        message: format!("\"{MODEL}\": there is no model \"{provider}/{id}\""),
        hint: usable_models.why_not(provider, id),
    });
    DefaultModel { name, problem: Some(problem) }
}

fn no_provider(usable_models: &UsableModels<'_>, provider: &str) -> Option<DefaultProblem> {
    (!is_provider(usable_models, provider)).then(|| DefaultProblem {
        key: PROVIDER,
        message: format!("\"{PROVIDER}\": there is no provider \"{provider}\""),
        hint: question(&usable_models.similar_providers(provider)),
    })
}

fn without_provider(usable_models: &UsableModels<'_>, model: &str) -> DefaultProblem {
    DefaultProblem {
        key: MODEL,
        message: format!("\"{MODEL}\": \"{model}\" names no provider and is not used"),
        hint: question(&usable_models.similar(model))
            .or_else(|| Some(format!("write it as provider/id, or set \"{PROVIDER}\""))),
    }
}

fn question(names: &[String]) -> Option<String> {
    Some(did_you_mean(names).trim_start().to_owned()).filter(|question| !question.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::models::testing::TestModels;

    fn check(
        provider: Option<&str>,
        model: Option<&str>,
        name: Option<(&str, &str)>,
        told: Option<(&str, &str, &str)>,
    ) {
        let models =
            ["anthropic/claude-opus", "openai/gpt-large", "router/anthropic/claude-opus", "router/x/y"];
        let usable_models = TestModels::new(&models, &[]);
        let settings = json!({"defaultProvider": provider, "defaultModel": model});
        let found = default_model(&usable_models.offer(), &serde_json::from_value(settings).unwrap());
        let got = found.name.as_ref().map(|(provider, id)| (provider.as_str(), id.as_str()));
        assert_eq!(got, name, "{provider:?} {model:?}");
        match (told, found.problem) {
            (None, None) => {}
            (Some((key, message, hint)), Some(problem)) => {
                let problem_hint = problem.hint.unwrap_or_default();
                assert!(
                    problem.key == key && problem.message.contains(message) && problem_hint.contains(hint),
                    "{} {} {problem_hint}",
                    problem.key,
                    problem.message
                );
            }
            (told, problem) => panic!("{provider:?} {model:?}: {told:?} {problem:?}"),
        }
    }

    #[test]
    fn a_model_is_an_id_of_the_provider_or_stands_in_full() {
        let opus = Some(("anthropic", "claude-opus"));
        check(None, None, None, None);
        check(Some("anthropic"), Some("claude-opus"), opus, None);
        check(Some("anthropic"), Some("anthropic/claude-opus"), opus, None);
        check(None, Some("anthropic/claude-opus"), opus, None);
        check(None, Some(" anthropic/claude-opus "), opus, None);
        check(None, Some("router/x/y"), Some(("router", "x/y")), None);
        // Ids can hold slashes.
        check(Some("router"), Some("anthropic/claude-opus"), Some(("router", "anthropic/claude-opus")), None);
        check(Some("openai"), None, None, None);
        check(None, Some("demo/demo"), Some(("demo", "demo")), None);
    }

    #[test]
    fn what_does_not_go_together_or_does_not_exist_is_told() {
        let opus = Some(("anthropic", "claude-opus"));
        let both =
            "says openai, and \"defaultModel\" names a model of anthropic: anthropic/claude-opus is used";
        check(Some("openai"), Some("anthropic/claude-opus"), opus, Some(("defaultModel", both, "take")));
        let name = Some(("anthropic", "claude-opsu"));
        let none = "there is no model \"anthropic/claude-opsu\"";
        let meant = "Did you mean \"anthropic/claude-opus\"?";
        check(Some("anthropic"), Some("claude-opsu"), name, Some(("defaultModel", none, meant)));
        check(None, Some("anthropic/claude-opsu"), name, Some(("defaultModel", none, meant)));
        let name = Some(("antropic", "claude-opus"));
        let none = "there is no provider \"antropic\"";
        check(Some("antropic"), Some("claude-opus"), name, Some(("defaultProvider", none, "\"anthropic\"")));
        check(Some("antropic"), None, None, Some(("defaultProvider", none, "\"anthropic\"")));
        let alone = "\"gpt-large\" names no provider and is not used";
        check(None, Some("gpt-large"), None, Some(("defaultModel", alone, "\"openai/gpt-large\"")));
        check(None, Some("zzzzzzzz"), None, Some(("defaultModel", "names no provider", "provider/id")));
    }
}
