//! Why a text means no model.

use super::names::did_you_mean;

/// Why a text means no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Several providers have that model, and nothing prefers one of them.
    #[error(
        "Model \"{text}\" is ambiguous across providers: {}. {} matching provider is authenticated. Use --provider or \
         provider/model.",
        candidates.join(", "),
        if *can_use_several { "More than one" } else { "No" }
    )]
    Ambiguous {
        /// The text.
        text: String,
        /// The models as `provider/id`.
        candidates: Vec<String>,
        /// True if several of them have credentials; else none has.
        can_use_several: bool,
    },
    /// The model is known, but not spoken to.
    #[error(
        "Model \"{model}\" speaks {api}, which this version of agentd does not; it speaks: {}.",
        spoken.join(", ")
    )]
    NotSpoken {
        /// The model as `provider/id`.
        model: String,
        /// Its API.
        api: String,
        /// The APIs of this build.
        spoken: Vec<String>,
    },
    /// The model is known, but the account may not use it.
    #[error(
        "Model \"{model}\" is not in the plan of the {provider} account, which {}. `agentctl login {provider} --force` reads \
         the plan anew.",
        offered(plan)
    )]
    NotInPlan {
        /// The model as `provider/id`.
        model: String,
        /// Its provider.
        provider: String,
        /// The ids that the account may use.
        plan: Vec<String>,
    },
    /// `--provider` names none.
    #[error(
        "Unknown provider \"{name}\". Use --list-models to see available providers/models.{}",
        did_you_mean(similar)
    )]
    UnknownProvider {
        /// The given name.
        name: String,
        /// Providers with nearly this name.
        similar: Vec<String>,
    },
    /// `--provider` without `--model`.
    #[error("--provider requires --model (for example: --provider {0} --model <pattern>)")]
    ProviderAlone(String),
    /// There is nothing like it.
    #[error(
        "Model \"{text}\" not found. Use --list-models to see available models.{}",
        did_you_mean(similar)
    )]
    NotFound {
        /// The text.
        text: String,
        /// Similar models, as `provider/id`.
        similar: Vec<String>,
    },
}

/// The models of a plan, in words; a long list is cut.
fn offered(plan: &[String]) -> String {
    const SHOWN: usize = 12;
    match plan {
        [] => "has no models".to_owned(),
        plan if plan.len() <= SHOWN => format!("has {}", plan.join(", ")),
        plan => format!("has {} and {} more", plan[..SHOWN].join(", "), plan.len() - SHOWN),
    }
}
