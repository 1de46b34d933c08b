//! The settings `compaction`, for one model. Pure.

use agentd_protocol::{model::Model, settings::Settings};

/// Tokens of the window that are kept free where the settings do not say.
const RESERVE: u64 = 16_384;

/// Tokens at the end of a context that stay as they are where the settings do not say.
const KEEP_RECENT: u64 = 20_000;

/// When one model's context is compacted, and how much of it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompactionPolicy {
    /// Whether that happens unasked.
    pub(crate) enabled: bool,
    /// The model's context window in tokens; 0: not known.
    pub(crate) window: u64,
    /// Tokens of the window that are kept free.
    pub(crate) reserve: u64,
    /// Tokens at the end of the context that stay, about.
    pub(crate) keep_recent: u64,
}

impl CompactionPolicy {
    /// The policy of the settings for `model`; `switch` is the setting `enabled` as it stands now.
    ///
    /// The defaults are made for large windows. In a small one they would fill the window or leave nothing to summarise, so
    /// they shrink with it; what the user set counts as it is.
    pub(crate) fn of(settings: &Settings, switch: bool, model: &Model) -> Self {
        let of_all = settings.compaction.as_ref();
        let name = format!("{}/{}", model.provider, model.id);
        let of_model = of_all.and_then(|all| all.model_overrides.as_ref()?.get(&name)).copied();
        let of_model = of_model.unwrap_or_default();
        let window = model.context_window;
        let at_most = |default: u64, part: u64| if window == 0 { default } else { default.min(part) };
        let reserve = of_model.reserve_tokens.or_else(|| of_all?.reserve_tokens);
        let reserve = reserve.unwrap_or_else(|| at_most(RESERVE, window / 2));
        let keep_recent = of_model.keep_recent_tokens.or_else(|| of_all?.keep_recent_tokens);
        let keep_recent =
            keep_recent.unwrap_or_else(|| at_most(KEEP_RECENT, window.saturating_sub(reserve) / 2));
        Self { enabled: of_model.enabled.unwrap_or(switch), window, reserve, keep_recent }
    }

    /// Whether a context of so many tokens leaves less of the window free than is to be.
    pub(crate) fn is_too_full(&self, tokens: u64) -> bool {
        self.window > 0 && tokens > self.window.saturating_sub(self.reserve)
    }
}

/// Tokens of a branch that are summarised when it is left: the newest (setting `branchSummary.reserveTokens`).
pub(crate) fn branch_budget(settings: &Settings, model: &Model) -> u64 {
    /// Where the model does not say.
    const WINDOW: u64 = 128_000;
    let window = if model.context_window == 0 { WINDOW } else { model.context_window };
    let reserve = settings.branch_summary.as_ref().and_then(|branch| branch.reserve_tokens);
    window.saturating_sub(reserve.unwrap_or_else(|| RESERVE.min(window / 2)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn model(window: u64) -> Model {
        Model { provider: "p".into(), id: "m/1".into(), context_window: window, ..Model::placeholder() }
    }

    fn policy(settings: Value, window: u64) -> CompactionPolicy {
        CompactionPolicy::of(&serde_json::from_value(settings).unwrap(), true, &model(window))
    }

    #[test]
    fn the_boundary_is_the_window_less_the_reserve() {
        let policy = policy(json!({}), 200_000);
        assert_eq!((policy.reserve, policy.keep_recent, policy.enabled), (16_384, 20_000, true));
        for (tokens, too_full) in [(183_615, false), (183_616, false), (183_617, true)] {
            assert_eq!(policy.is_too_full(tokens), too_full, "{tokens}");
        }
    }

    #[test]
    fn defaults_fit_into_small_windows_and_settings_are_law() {
        let values = |settings, window| {
            let CompactionPolicy { reserve, keep_recent, .. } = policy(settings, window);
            (reserve, keep_recent)
        };
        assert_eq!(values(json!({}), 32_768), (16_384, 8192));
        assert_eq!(values(json!({}), 8192), (4096, 2048));
        assert_eq!(values(json!({}), 0), (16_384, 20_000));
        let set = json!({"compaction": {"reserveTokens": 9000, "keepRecentTokens": 1}});
        assert_eq!(values(set, 8192), (9000, 1));
        assert!(!policy(json!({}), 0).is_too_full(u64::MAX));
    }

    #[test]
    fn a_model_can_have_values_of_its_own() {
        let settings = json!({"compaction": {"reserveTokens": 100, "keepRecentTokens": 50, "modelOverrides": {
            "p/m/1": {"enabled": false, "keepRecentTokens": 7}, "p/other": {"reserveTokens": 1}}}});
        let expected = CompactionPolicy { enabled: false, window: 1000, reserve: 100, keep_recent: 7 };
        assert_eq!(policy(settings, 1000), expected);
    }

    #[test]
    fn a_branch_may_fill_the_window_less_its_reserve() {
        let budget = |settings: Value, window| {
            branch_budget(&serde_json::from_value(settings).unwrap(), &model(window))
        };
        assert_eq!(budget(json!({}), 200_000), 183_616);
        assert_eq!(budget(json!({}), 0), 111_616);
        assert_eq!(budget(json!({"branchSummary": {"reserveTokens": 10}}), 100), 90);
    }
}
