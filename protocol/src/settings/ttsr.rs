//! The setting `ttsr`: rules on the stream.

use serde::{Deserialize, Serialize};

/// Rules that watch what the model writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct StreamRuleSettings {
    /// Whether rules with conditions watch what the model writes; default true. Without, they are rules like others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// What becomes of the part of an answer that was interrupted; default `discard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "discard")))]
    pub context_mode: Option<RuleContextMode>,
    /// Which matches interrupt the model, where a rule itself says nothing; default `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "always")))]
    pub interrupt_mode: Option<RuleInterruptMode>,
    /// Whether a rule that has matched can match again in the session; default `once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "once")))]
    pub repeat_mode: Option<RuleRepeatMode>,
    /// With `after-gap`: answers of the model after which a rule can match again; default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10)))]
    pub repeat_gap: Option<u64>,
    /// Names of rules that are not used at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub disabled_rules: Option<Vec<String>>,
}

/// What becomes of an interrupted part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RuleContextMode {
    /// The model does not see it again.
    #[default]
    Discard,
    /// The model is shown the end of it.
    Keep,
}

/// Which matches interrupt the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RuleInterruptMode {
    /// All.
    #[default]
    Always,
    /// Those in text and thinking.
    ProseOnly,
    /// Those in the arguments of tools.
    ToolOnly,
    /// None: the model is told with the result of the call, or after its answer.
    Never,
}

/// Whether a rule matches again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RuleRepeatMode {
    /// Once in a session.
    #[default]
    Once,
    /// Again after a number of answers.
    AfterGap,
}
