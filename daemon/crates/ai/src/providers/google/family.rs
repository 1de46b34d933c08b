//! The differences between Google's models, told by their ids.

use agentd_protocol::model::Model;
use serde_json::Value;

/// The lowest generation of Gemini that accepts call ids, images in results and constrained arguments, and that requires its signatures
/// back.
const MODERN: u64 = 3;

/// The traits of a model by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GeminiFamily {
    /// The id in lower case.
    id: String,
    /// The generation of a Gemini.
    gemini: Option<u64>,
}

impl GeminiFamily {
    pub(super) fn of(model: &Model) -> Self {
        let id = model.id.to_ascii_lowercase();
        // Some hosts put a publisher before the name.
        let id = id.rsplit('/').next().unwrap_or_default().to_owned();
        let gemini = id.strip_prefix("gemini-").map(|rest| rest.strip_prefix("live-").unwrap_or(rest));
        let gemini = gemini.and_then(|rest| {
            // Aliases such as `gemini-pro-latest` name the newest model.
            leading_number(rest).or_else(|| rest.ends_with("latest").then_some(MODERN))
        });
        Self { id, gemini }
    }

    /// Whether this is a Gemini from the third generation on.
    pub(super) fn is_modern_gemini(&self) -> bool {
        self.gemini.is_some_and(|generation| generation >= MODERN)
    }

    /// Whether calls and results carry ids.
    pub(super) fn has_call_ids(&self) -> bool {
        self.is_modern_gemini() || self.id.starts_with("claude-") || self.id.starts_with("gpt-oss-")
    }

    /// Whether images go inside of results.
    pub(super) fn has_images_in_results(&self) -> bool {
        self.gemini.is_none_or(|generation| generation >= MODERN)
    }

    /// Whether thinking is requested by level instead of by a token budget.
    pub(super) fn has_thinking_levels(&self, model: &Model) -> bool {
        if self.gemini.is_some() {
            return self.is_modern_gemini();
        }
        if self.id.starts_with("gemma-4") || self.id.starts_with("gemma4") {
            return true;
        }
        // Models with other names: the catalogue maps levels only for models that have them.
        let levels = ["minimal", "low", "medium", "high"];
        let map = model.thinking_level_map.as_ref();
        map.is_some_and(|map| levels.iter().any(|level| map.get(*level).is_some_and(Value::is_string)))
    }

    /// The budgets for `minimal`, `low`, `medium` and `high`, in tokens; `None` where the model decides.
    pub(super) fn budgets(&self) -> Option<[u64; 4]> {
        if self.id.contains("2.5-pro") {
            Some([128, 2048, 8192, 32_768])
        } else if self.id.contains("2.5-flash-lite") {
            Some([512, 2048, 8192, 24_576])
        } else if self.id.contains("2.5-flash") {
            Some([128, 2048, 8192, 24_576])
        } else {
            None
        }
    }

    /// The least budget that the model accepts for no thinking: some models cannot turn it off.
    pub(super) fn least_budget(&self) -> u64 {
        if self.id.contains("2.5-pro") { 128 } else { 0 }
    }
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(id: &str, map: Value) -> Model {
        Model { id: id.into(), thinking_level_map: map.as_object().cloned(), ..Model::placeholder() }
    }

    #[test]
    fn ids_tell_what_a_model_can_do() {
        // (id, levels, ids of calls, images in results)
        for (id, levels, ids, images) in [
            ("gemini-2.5-pro", false, false, false),
            ("gemini-2.5-flash-lite", false, false, false),
            ("gemini-2.0-flash", false, false, false),
            ("gemini-3-flash-preview", true, true, true),
            ("gemini-3.1-pro-preview-customtools", true, true, true),
            ("gemini-4-argon", true, true, true),
            ("gemini-12-pro", true, true, true),
            ("Gemini-Live-3-flash", true, true, true),
            ("google/gemini-3-flash", true, true, true),
            ("gemma-4-31b-it", true, false, true),
            ("gemma-3-27b-it", false, false, true),
            ("claude-opus-5", false, true, true),
            ("gpt-oss-120b", false, true, true),
            ("deep-research-preview-04-2026", false, false, true),
        ] {
            let model = model(id, Value::Null);
            let family = GeminiFamily::of(&model);
            let found =
                (family.has_thinking_levels(&model), family.has_call_ids(), family.has_images_in_results());
            assert_eq!(found, (levels, ids, images), "{id}");
        }
    }

    #[test]
    fn other_names_have_levels_where_these_are_mapped() {
        let check = |id: &str, map: Value, expected: bool| {
            let model = model(id, map);
            assert_eq!(GeminiFamily::of(&model).has_thinking_levels(&model), expected, "{id}");
        };
        check("gemini-robotics-er-preview", json!({"off": null, "low": "low", "high": "high"}), true);
        check("gemini-robotics-er-preview", json!({"off": null}), false);
        check("gemini-flash-latest", Value::Null, true);
        check("gemini-2.5-flash", json!({"high": "high"}), false);
    }
}
