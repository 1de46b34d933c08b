//! Tokens of an answer and what they cost.

use serde::{Deserialize, Serialize};

use crate::number;

/// Tokens of one answer and what they cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens that were not in the provider's cache.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub input: u64,
    /// Output tokens, reasoning included.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub output: u64,
    /// Input tokens read from the cache.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub cache_read: u64,
    /// Input tokens written to the cache.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub cache_write: u64,
    /// The part of `cacheWrite` that is kept for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write1h: Option<u64>,
    /// The part of `output` that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// All tokens.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub total_tokens: u64,
    /// US dollars.
    pub cost: Cost,
}

/// Cost in US dollars.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Of `input`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub input: f64,
    /// Of `output`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub output: f64,
    /// Of `cacheRead`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_read: f64,
    /// Of `cacheWrite`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_write: f64,
    /// Of everything.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total: f64,
    /// Whether `total` is what the provider reported, not what our prices give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}
