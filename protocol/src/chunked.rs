//! The first line of a host that asked for it, and long lines in parts: for clients that read lines of at most 1 MiB.
//!
//! Frames, chunks and their limits are those of omp's RPC mode, so that its client libraries rejoin them.

use serde::{Deserialize, Serialize};

/// The longest line after `negotiate_protocol` with version 2, in bytes with its LF.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// The longest line that is sent in parts, in bytes without its LF.
pub const MAX_REASSEMBLED_FRAME_BYTES: usize = 64 << 20;

/// The bytes of a line that one part holds; fewer in the last.
pub const CHUNK_BYTES: usize = 256 << 10;

/// The daemon takes commands. Sent only with `--ready`; earlier commands are queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Ready {
    /// The version that counts until another is negotiated: 1.
    pub protocol_version: u32,
    /// The versions that `negotiate_protocol` takes.
    pub supported_protocol_versions: Vec<u32>,
    /// The longest line in version 2, in bytes with its LF: a longer one comes as `rpc_chunk` lines.
    pub max_frame_bytes: u64,
    /// The longest line that is sent in such parts, in bytes.
    pub max_reassembled_frame_bytes: u64,
}

impl Default for Ready {
    fn default() -> Self {
        Self {
            protocol_version: FrameVersion::Whole.number(),
            supported_protocol_versions: FrameVersion::ALL.map(FrameVersion::number).to_vec(),
            max_frame_bytes: MAX_FRAME_BYTES as u64,
            max_reassembled_frame_bytes: MAX_REASSEMBLED_FRAME_BYTES as u64,
        }
    }
}

/// The form of long lines on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameVersion {
    /// Version 1: every line is whole, whatever its length.
    #[default]
    Whole,
    /// Version 2: a line longer than [`MAX_FRAME_BYTES`] comes in parts.
    Chunked,
}

impl FrameVersion {
    /// Every version, the oldest first.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Chunked];

    /// Its number on the wire.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Whole => 1,
            Self::Chunked => 2,
        }
    }

    /// The version of that number; `None` for one that this agentd does not speak.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }
}

/// The fields of `negotiate_protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NegotiateProtocolParams {
    /// The wanted version: 1 for whole lines, 2 for long lines in parts (`rpc_chunk`).
    pub protocol_version: u32,
}

/// The answer to `negotiate_protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NegotiatedProtocol {
    /// The version from the next line on.
    pub protocol_version: u32,
}

/// A part of a line that is longer than 1 MiB. The parts of a line follow each other, with nothing between them: decode `data` of
/// each, join the bytes, and read them as the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RpcChunk {
    /// Names the line on this connection.
    pub chunk_id: String,
    /// The part's place, from 0.
    pub index: u64,
    /// The number of parts.
    pub count: u64,
    /// The length of the whole line in bytes, without its LF.
    pub byte_length: u64,
    /// The part's bytes, base64 with padding.
    pub data: String,
}

/// Stands in place of an event that is too long even for parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RpcFrameError {
    /// The `type` of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_type: Option<String>,
    /// The reason.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_one_that_clients_of_omp_look_for() {
        assert_eq!(
            serde_json::to_string(&crate::event::Event::from(Ready::default())).unwrap(),
            r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#
        );
    }

    #[test]
    fn versions_are_known_by_their_numbers() {
        assert_eq!(
            (FrameVersion::of(1), FrameVersion::of(2)),
            (Some(FrameVersion::Whole), Some(FrameVersion::Chunked))
        );
        assert_eq!((FrameVersion::of(0), FrameVersion::of(3)), (None, None));
    }
}
