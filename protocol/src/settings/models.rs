//! Settings of requests to models: compaction, retries, deadlines, thinking, images.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings of compaction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    /// Whether long contexts are compacted automatically; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// Tokens of the context window that are kept free: a context that leaves less is compacted. Default 16384, and at most
    /// half of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 16_384)))]
    pub reserve_tokens: Option<u64>,
    /// Tokens at the end of the context, about, that a compaction leaves as they are. Default 20000, and at most half of
    /// what is not kept free.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 20_000)))]
    pub keep_recent_tokens: Option<u64>,
    /// Other values for single models, by `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_overrides: Option<BTreeMap<String, CompactionOverride>>,
}

/// Settings of compaction for one model. Missing ones are those of `compaction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionOverride {
    /// Replaces `compaction.enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Replaces `compaction.reserveTokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_tokens: Option<u64>,
    /// Replaces `compaction.keepRecentTokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_recent_tokens: Option<u64>,
}

/// Settings of summaries of branches that the conversation leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummarySettings {
    /// Tokens of the context window that are kept free when a branch is summarised: what is older than fits is left out.
    /// Default 16384, and at most half of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 16_384)))]
    pub reserve_tokens: Option<u64>,
    /// Whether clients that ask before a summary is made do not ask; default false. The daemon itself never asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub skip_prompt: Option<bool>,
}

/// Settings of retries: a failed answer is left out of the context, and the request is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RetrySettings {
    /// Whether failed answers are retried; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: Option<bool>,
    /// The most retries in a row; default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 3)))]
    pub max_retries: Option<u32>,
    /// The pause before the first retry in milliseconds; it doubles with each; default 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2000)))]
    pub base_delay_ms: Option<u64>,
    /// The longest pause in milliseconds; default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub max_agent_delay_ms: Option<u64>,
    /// Repetitions of a single HTTP request, below the retries above and unseen by clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderRetrySettings>,
}

/// Settings of repetitions of an HTTP request. Only a request that failed before its answer began is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRetrySettings {
    /// The time until a provider's answer begins, in milliseconds; default `httpIdleTimeoutMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most repetitions of a request; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 0)))]
    pub max_retries: Option<u32>,
    /// The longest pause that a provider may ask for, in milliseconds; a longer one fails the request for good. 0 for no
    /// limit; default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub max_retry_delay_ms: Option<u64>,
}

/// Time limits of requests to providers. Only time spent waiting counts. Clients that said `hello` are informed of
/// an exceeded limit by `provider_stalled`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DeadlineSettings {
    /// Until the connection is established; default 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 30_000)))]
    pub connect_ms: Option<TimeLimit>,
    /// Until the first byte of an answer, counted from the sending of the request; default none (`httpIdleTimeoutMs` counts
    /// there, too).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "disabled")))]
    pub first_byte_ms: Option<TimeLimit>,
    /// Between two pieces of content. What only keeps the connection alive (comments, pings, empty pieces) is none, other
    /// than for `httpIdleTimeoutMs`. Default 1800000 (30 minutes), and none for servers on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1_800_000)))]
    pub progress_ms: Option<TimeLimit>,
    /// For a whole request, to the end of its answer; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "disabled")))]
    pub request_ms: Option<TimeLimit>,
    /// The effect of an exceeded limit, `httpIdleTimeoutMs` included: `retry` (the default) makes it a transient failure,
    /// which is retried as `retry` says; `fail` a final one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "retry")))]
    pub on_stall: Option<StallPolicy>,
}

/// The reaction to a provider that exceeds a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StallPolicy {
    /// The request is retried.
    Retry,
    /// The answer fails.
    Fail,
}

/// A limit in milliseconds; 0 or `"disabled"` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// This many milliseconds.
    Millis(u64),
    /// None.
    Disabled,
}

impl TimeLimit {
    /// The limit, if there is one.
    #[must_use]
    pub fn duration(self) -> Option<std::time::Duration> {
        match self {
            Self::Millis(millis) => Some(std::time::Duration::from_millis(millis)),
            Self::Disabled => None,
        }
    }
}

impl Serialize for TimeLimit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Millis(millis) => serializer.serialize_u64(*millis),
            Self::Disabled => serializer.serialize_str("disabled"),
        }
    }
}

impl<'de> Deserialize<'de> for TimeLimit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong =
            || serde::de::Error::custom("expected a number of milliseconds, 0 or more, or \"disabled\"");
        match Value::deserialize(deserializer)? {
            Value::Number(number) => {
                let millis = number.as_f64().filter(|millis| *millis >= 0.0).ok_or_else(wrong)?;
                // A fraction of a millisecond is a limit all the same, and a float that is too large the largest limit.
                let millis = millis.ceil() as u64;
                Ok(if millis == 0 { Self::Disabled } else { Self::Millis(millis) })
            }
            Value::String(text) if text == "disabled" => Ok(Self::Disabled),
            _ => Err(wrong()),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TimeLimit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeLimit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A limit in milliseconds; 0 or `\"disabled\"` for none.",
            "anyOf": [{ "type": "number", "minimum": 0 }, { "const": "disabled" }]
        })
    }
}

/// Tokens that each thinking level may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ThinkingBudgetSettings {
    /// For `minimal`; default 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1024)))]
    pub minimal: Option<u64>,
    /// For `low`; default 2048.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 2048)))]
    pub low: Option<u64>,
    /// For `medium`; default 8192.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 8192)))]
    pub medium: Option<u64>,
    /// For `high` and above; default 16384.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 16_384)))]
    pub high: Option<u64>,
}

/// Settings of images.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSettings {
    /// Whether images of prompts and tools are made smaller where they are larger than 2000 by 2000 pixels or 4.5 MiB of
    /// base64, and checked before a model gets them; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub auto_resize: Option<bool>,
    /// Whether images are kept from the model; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub block_images: Option<bool>,
}
