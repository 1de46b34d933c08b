//! Pure. The options that a client's user chooses for a session: model, thinking level, and mode, which is plan mode or the preset of its
//! permissions.

use std::sync::Arc;

use agentd_protocol::{
    agent_mode::AgentMode,
    model::{Model, ThinkingLevel},
    session::{PermissionState, SessionState},
    settings::PermissionPreset,
};

use crate::updates::{ConfigOption, ConfigValue, Mode, ModeState};

/// The ids of the options.
pub(crate) const MODEL: &str = "model";
pub(crate) const THINKING: &str = "thinking";
pub(crate) const MODE: &str = "mode";

/// The provider of the model that stands where none is configured.
const NO_MODEL: &str = "unknown";

/// A model to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub(crate) provider: String,
    pub(crate) id: String,
    name: String,
}

impl ModelChoice {
    pub(crate) fn of(model: &Model) -> Self {
        Self { provider: model.provider.clone(), id: model.id.clone(), name: model.name.clone() }
    }

    /// The value of the option.
    pub(crate) fn value(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

/// What is chosen, and what can be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) model: ModelChoice,
    /// The size of its context window in tokens; 0 if unknown.
    pub(crate) window: u64,
    pub(crate) models: Arc<[ModelChoice]>,
    pub(crate) level: ThinkingLevel,
    pub(crate) levels: Vec<ThinkingLevel>,
    pub(crate) preset: PermissionPreset,
    /// Whether plan mode is on, whatever the preset is.
    pub(crate) is_planning: bool,
}

/// The preset in force.
pub(crate) fn preset(permissions: Option<&PermissionState>) -> PermissionPreset {
    permissions.map_or(PermissionPreset::Full, |permissions| permissions.preset)
}

impl Options {
    /// The options of a session, before models and levels are known.
    pub(crate) fn of(state: &SessionState) -> Self {
        Self {
            model: ModelChoice::of(&state.model),
            window: state.model.context_window,
            models: Arc::default(),
            level: state.thinking_level,
            levels: Vec::new(),
            preset: preset(state.permissions.as_ref()),
            is_planning: state.mode == AgentMode::Plan,
        }
    }

    /// Whether there is a model at all.
    pub(crate) fn has_model(&self) -> bool {
        self.model.provider != NO_MODEL
    }

    /// All options.
    pub(crate) fn all(&self) -> Vec<ConfigOption> {
        let modes = MODES.iter().map(|mode| ConfigValue {
            value: mode.id.to_owned(),
            name: mode.name.to_owned(),
            description: Some(mode.description),
        });
        let mut options = vec![ConfigOption {
            kind: "select",
            id: MODE,
            name: "Mode",
            category: "mode",
            current_value: self.mode().to_owned(),
            options: modes.collect(),
        }];
        let plain = |value: String, name: &str| {
            let name = if name.is_empty() { value.clone() } else { name.to_owned() };
            ConfigValue { value, name, description: None }
        };
        let mut models: Vec<ConfigValue> =
            self.models.iter().map(|model| plain(model.value(), &model.name)).collect();
        let current = self.model.value();
        if !models.iter().any(|model| model.value == current) {
            models.insert(0, plain(current.clone(), &self.model.name));
        }
        options.push(ConfigOption {
            kind: "select",
            id: MODEL,
            name: "Model",
            category: "model",
            current_value: current,
            options: models,
        });
        if self.levels.len() > 1 {
            let levels = self.levels.iter().map(|level| plain(level.as_str().to_owned(), ""));
            options.push(ConfigOption {
                kind: "select",
                id: THINKING,
                name: "Thinking",
                category: "thought_level",
                current_value: self.level.as_str().to_owned(),
                options: levels.collect(),
            });
        }
        options
    }

    /// The id of the current mode.
    pub(crate) fn mode(&self) -> &'static str {
        if self.is_planning { PLAN } else { self.preset.as_str() }
    }

    /// The modes.
    pub(crate) fn modes(&self) -> ModeState {
        ModeState { current_mode_id: self.mode(), available_modes: MODES.to_vec() }
    }

    /// The model of a value.
    pub(crate) fn model_of(&self, value: &str) -> Option<&ModelChoice> {
        self.models.iter().chain([&self.model]).find(|model| model.value() == value)
    }
}

/// The mode in which the model changes nothing before the user has approved its plan.
pub(crate) const PLAN: &str = AgentMode::Plan.as_str();

/// The presets as modes, from the widest, and plan mode.
const MODES: [Mode; 5] = [
    Mode { id: PermissionPreset::Full.as_str(), name: "Full access", description: "Everything is allowed" },
    Mode {
        id: PermissionPreset::Workspace.as_str(),
        name: "Workspace",
        description: "Reads, changes below the folder and commands that only look are allowed; the rest is asked",
    },
    Mode {
        id: PermissionPreset::Ask.as_str(),
        name: "Ask",
        description: "Reads are allowed; everything else is asked",
    },
    Mode {
        id: PermissionPreset::ReadOnly.as_str(),
        name: "Read only",
        description: "Reads are allowed; everything else is refused",
    },
    Mode { id: PLAN, name: "Plan", description: "Nothing is changed before you have approved a plan" },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let model = |id: &str| ModelChoice { provider: "p".into(), id: id.into(), name: id.to_uppercase() };
        Options {
            model: model("a"),
            window: 1000,
            models: [model("b")].into(),
            level: ThinkingLevel::Off,
            levels: vec![ThinkingLevel::Off, ThinkingLevel::High],
            preset: PermissionPreset::Ask,
            is_planning: false,
        }
    }

    #[test]
    fn the_current_value_is_always_one_of_the_values() {
        for option in options().all() {
            assert!(
                option.options.iter().any(|value| value.value == option.current_value),
                "{}: {:?}",
                option.id,
                option.options
            );
        }
    }

    #[test]
    fn a_model_that_cannot_think_has_no_levels_to_choose() {
        let options = Options { levels: vec![ThinkingLevel::Off], ..options() };
        assert_eq!(options.all().iter().map(|option| option.id).collect::<Vec<_>>(), [MODE, MODEL]);
    }

    #[test]
    fn every_preset_is_a_mode() {
        let modes = options().modes();
        for preset in PermissionPreset::ALL {
            assert!(modes.available_modes.iter().any(|mode| mode.id == preset.as_str()));
        }
        assert_eq!(modes.current_mode_id, "ask");
        assert_eq!(Options { is_planning: true, ..options() }.modes().current_mode_id, "plan");
        assert_eq!(options().model_of("p/b").map(|model| model.id.as_str()), Some("b"));
    }
}
