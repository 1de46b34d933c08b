//! Reads a tool's arguments into its own type.

use agentd_agent::ToolError;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Converts checked arguments into a tool's type.
///
/// # Errors
/// When the caller did not check them against the tool's schema.
pub(crate) fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError(format!("The arguments do not fit: {error}")))
}
