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
    /// The cost of `input`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub input: f64,
    /// The cost of `output`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub output: f64,
    /// The cost of `cacheRead`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_read: f64,
    /// The cost of `cacheWrite`.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_write: f64,
    /// The total cost.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub total: f64,
    /// Whether `total` is what the provider reported, not what our prices give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}

impl Usage {
    /// Adds what another answer cost.
    pub fn add(&mut self, other: &Self) {
        let some = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0) + two.unwrap_or(0)),
        };
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cache_write1h = some(self.cache_write1h, other.cache_write1h);
        self.reasoning = some(self.reasoning, other.reasoning);
        self.total_tokens += other.total_tokens;
        self.cost.add(&other.cost);
    }
}

impl Cost {
    fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.total += other.total;
        // A sum is what a provider reported only if all of it is.
        self.total_from_provider =
            self.total_from_provider.zip(other.total_from_provider).map(|(one, two)| one && two);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_is_added() {
        let usage = |parts| serde_json::from_value::<Usage>(parts).unwrap();
        let mut sum =
            usage(json!({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10,
            "cost": {"input": 0.5, "output": 0.25, "cacheRead": 1, "cacheWrite": 2, "total": 3.75}}));
        sum.add(&usage(json!({"input": 10, "reasoning": 5, "totalTokens": 10, "cost": {"total": 1}})));
        assert_eq!(
            sum,
            usage(json!({"input": 11, "output": 2, "cacheRead": 3, "cacheWrite": 4, "reasoning": 5,
                "totalTokens": 20,
                "cost": {"input": 0.5, "output": 0.25, "cacheRead": 1, "cacheWrite": 2, "total": 4.75}}))
        );
    }
}
