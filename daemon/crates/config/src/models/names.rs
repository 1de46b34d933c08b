//! Names of models: their levels, aliases, how alike two are, and why a text names none.

use agentd_protocol::model::ThinkingLevel;

/// The number of letters per allowed slip.
const LETTERS_PER_SLIP: usize = 5;

/// More slips make another word.
pub(crate) const MAX_SLIPS: usize = 3;

/// Longer texts are no names of anything, in letters; they are compared with thousands of names, letter by letter.
pub(super) const LONGEST: usize = 200;

/// The number of letters that have to be changed, left out, added or swapped with their neighbour to find `text` somewhere in
/// `within`; `None` when they are too many for its length.
pub(crate) fn slips(text: &str, within: &str) -> Option<usize> {
    let (text, within): (Vec<char>, Vec<char>) = (text.chars().collect(), within.chars().collect());
    let most = (text.len() / LETTERS_PER_SLIP).min(MAX_SLIPS);
    if most == 0 || text.len() > LONGEST {
        return None;
    }
    // One column for each place in `within`: the slips of each beginning of `text` that ends there.
    let mut columns: [Vec<usize>; 3] = [Vec::new(), (0..=text.len()).collect(), vec![0; text.len() + 1]];
    let mut fewest = text.len();
    for (at, letter) in within.iter().enumerate() {
        let [before, last, column] = &mut columns;
        // The match may begin anywhere.
        column[0] = 0;
        for row in 1..=text.len() {
            let changed = last[row - 1] + usize::from(text[row - 1] != *letter);
            let mut cheapest = changed.min(last[row] + 1).min(column[row - 1] + 1);
            if row > 1 && at > 0 && text[row - 1] == within[at - 1] && text[row - 2] == *letter {
                cheapest = cheapest.min(before[row - 2] + 1);
            }
            column[row] = cheapest;
        }
        fewest = fewest.min(column[text.len()]);
        columns.rotate_left(1);
        columns[2].resize(text.len() + 1, 0);
    }
    (fewest <= most).then_some(fewest)
}

/// A question to put behind an error, with a blank before it; nothing where there is nothing to propose.
pub(super) fn did_you_mean(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => format!(" Did you mean {one}?"),
        [others @ .., last] => format!(" Did you mean {} or {last}?", others.join(", ")),
    }
}

/// Splits at the last colon when a level stands behind it.
pub(super) fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (before, level) = text.rsplit_once(':')?;
    Some((before, ThinkingLevel::from_name(&level.to_lowercase())?))
}

/// Returns whether an id names the newest of a family: `-latest`, or not ending in a date (`-20250101`).
pub(super) fn is_alias(id: &str) -> bool {
    let dated = id
        .rsplit_once('-')
        .is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit()));
    id.ends_with("-latest") || !dated
}

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
