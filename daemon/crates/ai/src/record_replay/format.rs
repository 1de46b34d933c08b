//! The lines of a recording.

use std::{sync::Arc, time::Duration};

use agentd_http::Account;
use agentd_protocol::model::Model;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{Failure, FailureKind};

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum RecordingLine {
    /// The request; the first line of an exchange.
    Request(Box<RecordedRequest>),
    /// The status and headers of the answer.
    Response { ms: u64, status: u16, headers: Vec<(String, String)> },
    /// Bytes of its body.
    Chunk {
        ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Instead of `text` for bytes that are not UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    /// The exchange failed; its last line.
    Failure(RecordedFailure),
    /// The exchange ended; its last line.
    End { ms: u64, reason: ExchangeEnd },
}

impl RecordingLine {
    /// Reads a line.
    ///
    /// # Errors
    /// Fails for one that is none of a recording.
    pub(super) fn parse(line: &str) -> serde_json::Result<Self> {
        // A body that is kept byte for byte cannot be read through the enum's buffer.
        if is_request(line) {
            serde_json::from_str(line).map(Self::Request)
        } else {
            serde_json::from_str(line)
        }
    }
}

/// Whether a line is the first of an exchange.
pub(super) fn is_request(line: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
    }
    serde_json::from_str(line).is_ok_and(|Kind { kind }| kind == "request")
}

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedRequest {
    pub(super) version: u32,
    /// The version of agentd.
    pub(super) agentd: String,
    /// Milliseconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) api: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) session: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) base_url: String,
    #[serde(default, skip_serializing_if = "RecordedAccount::is_empty")]
    pub(super) account: RecordedAccount,
    /// The configuration of the model, without address and headers. Recordings of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) definition: Option<Box<Model>>,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    /// The body, if it is JSON in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Box<RawValue>>,
    /// The body, if it is anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body_text: Option<String>,
}

impl RecordedRequest {
    /// The model, as far as the recording describes it.
    pub(super) fn model(&self) -> Model {
        let definition = self.definition.as_deref().cloned().unwrap_or_else(|| Model {
            name: self.model.clone(),
            input: vec!["text".into(), "image".into()],
            ..Model::placeholder()
        });
        Model {
            id: self.model.clone(),
            api: self.api.clone(),
            provider: self.provider.clone(),
            base_url: self.base_url.clone(),
            ..definition
        }
    }
}

/// An [`Account`] in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RecordedAccount {
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment: Option<String>,
}

impl RecordedAccount {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Account> for RecordedAccount {
    fn from(account: Account) -> Self {
        let Account { region, project, location, api_version, deployment, .. } = account;
        Self { region, project, location, api_version, deployment }
    }
}

impl From<RecordedAccount> for Account {
    fn from(place: RecordedAccount) -> Self {
        let RecordedAccount { region, project, location, api_version, deployment } = place;
        Self { region, project, location, api_version, deployment, ..Self::default() }
    }
}

/// The end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExchangeEnd {
    /// The answer was read as far as it matters.
    Complete,
    /// The reader of the answer went away.
    Aborted,
}

/// A failure of the connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedFailure {
    pub(super) ms: u64,
    kind: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// The names of failures in recordings.
const KINDS: [(FailureKind, &str); 7] = [
    (FailureKind::Aborted, "aborted"),
    (FailureKind::Retryable, "retryable"),
    (FailureKind::ContextOverflow, "overflow"),
    (FailureKind::Auth, "auth"),
    (FailureKind::InvalidRequest, "refused"),
    (FailureKind::ModelRefusal, "modelRefusal"),
    (FailureKind::Fatal, "fatal"),
];

impl RecordedFailure {
    pub(super) fn of(ms: u64, failure: &Failure) -> Self {
        let name = KINDS.iter().find(|(kind, _)| *kind == failure.kind).map_or("fatal", |(_, name)| name);
        let retry_after_ms = failure.retry_after.and_then(|delay| u64::try_from(delay.as_millis()).ok());
        Self { ms, kind: name.to_owned(), message: failure.message.clone(), retry_after_ms }
    }

    pub(super) fn failure(self) -> Failure {
        let kind =
            KINDS.iter().find(|(_, name)| *name == self.kind).map_or(FailureKind::Fatal, |(kind, _)| *kind);
        Failure::new(kind, self.message).after(self.retry_after_ms.map(Duration::from_millis))
    }
}

/// The line of a piece of a body.
pub(super) fn chunk(ms: u64, bytes: Vec<u8>) -> RecordingLine {
    match String::from_utf8(bytes) {
        Ok(text) => RecordingLine::Chunk { ms, text: Some(text), base64: None },
        Err(error) => {
            RecordingLine::Chunk { ms, text: None, base64: Some(STANDARD.encode(error.as_bytes())) }
        }
    }
}

/// The bytes of a piece of a body.
pub(super) fn bytes(text: Option<String>, base64: Option<String>) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64).map_err(|error| format!("bad base64 ({error})")),
        _ => Err("a chunk needs either text or base64".to_owned()),
    }
}

/// The facts about a request that a recording keeps.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExchangeInfo {
    pub(crate) api: String,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) base_url: String,
    pub(crate) account: Account,
    pub(crate) session: String,
    /// The model as it is configured.
    pub(crate) definition: Option<Arc<Model>>,
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The laws of the lines of recordings.

    use super::{RecordingLine, chunk as chunk_line};

    /// A readable line survives a round trip.
    pub(crate) fn line(text: &str) {
        let Ok(line) = RecordingLine::parse(text) else { return };
        let written = match serde_json::to_string(&line) {
            Ok(written) => written,
            Err(error) => panic!("{error}: {line:?}"),
        };
        let again = match RecordingLine::parse(&written) {
            Ok(again) => serde_json::to_string(&again).unwrap_or_default(),
            Err(error) => panic!("{error}: {written}"),
        };
        assert_eq!(again, written);
        match line {
            RecordingLine::Chunk { text, base64, .. } => drop(super::bytes(text, base64)),
            RecordingLine::Failure(failed) => drop(failed.failure()),
            RecordingLine::Request(_) | RecordingLine::Response { .. } | RecordingLine::End { .. } => {}
        }
    }

    /// The bytes of a body survive a round trip.
    pub(crate) fn chunk(bytes: &[u8]) {
        let line = chunk_line(1, bytes.to_vec());
        let read = serde_json::to_string(&line).and_then(|written| RecordingLine::parse(&written));
        match read {
            Ok(RecordingLine::Chunk { text, base64, .. }) => {
                assert_eq!(super::bytes(text, base64).as_deref(), Ok(bytes))
            }
            other => panic!("{other:?}"),
        }
    }
}
