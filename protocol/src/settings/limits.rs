//! What one session may take.

use serde::{Deserialize, Serialize};

/// What one session may take; 0 in any of them: no limit. Only read from the user's settings, at the daemon's
/// start. Each limit that is reached is an
/// error with the code `limit_reached` to whoever reached it, and leaves others alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LimitSettings {
    /// The longest message that is taken (`prompt`, `steer`, `follow_up`, `abort_and_prompt`), in bytes of its text and of its
    /// images' base64 together. Default 33554432 (32 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 33_554_432)))]
    pub max_message_bytes: Option<u64>,
    /// How many messages may wait in a session; default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1000)))]
    pub max_queued_messages: Option<u64>,
    /// How large the messages may be together that wait in a session, in bytes of their texts and of their images' base64.
    /// Default 67108864 (64 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 67_108_864)))]
    pub max_queued_bytes: Option<u64>,
    /// How large a session may grow, in bytes of its entries, all branches together: at that size it takes no more messages, and
    /// a file of more than twice that size is not opened. Default 536870912 (512 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 536_870_912)))]
    pub max_session_bytes: Option<u64>,
}
