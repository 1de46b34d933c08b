//! Rules on the stream, on the wire and in session files.

use serde::{Deserialize, Serialize};

/// The `customType` of the entry that keeps which rules the model was told.
pub const RULES_ENTRY: &str = "agentd.ttsr-injection";

/// The `customType` of the hidden message that tells the model of a rule.
pub const RULES_MESSAGE: &str = "ttsr-injection";

/// What the model wrote has matched rules; only after `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TtsrTriggered {
    /// The names of the rules.
    pub rules: Vec<String>,
    /// Whether the answer was interrupted. The run goes on with another answer.
    pub interrupted: bool,
}
