//! What is received. Odd values read as absent.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::lenient::{nullable, number, text};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(rename = "type", deserialize_with = "text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "number")]
    pub(super) content_index: Option<u64>,
    #[serde(deserialize_with = "text")]
    pub(super) delta: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) content: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) content_signature: Option<String>,
    pub(super) redacted: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) tool_name: Option<String>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) tool_call: Call<'a>,
    #[serde(deserialize_with = "text")]
    pub(super) reason: Option<String>,
    pub(super) usage: Option<Value>,
    #[serde(deserialize_with = "text")]
    pub(super) response_id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) response_model: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) error_message: Option<String>,
    /// Ours: `model_refused` where the model refused.
    #[serde(deserialize_with = "text")]
    pub(super) code: Option<String>,
    pub(super) error: Option<Value>,
}

/// A finished call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(deserialize_with = "text")]
    pub(super) thought_signature: Option<String>,
}
