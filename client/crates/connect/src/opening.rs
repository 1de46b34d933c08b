//! The two commands that introduce us and open a session, before the connection is handed on.

use std::{collections::BTreeMap, env, time::Duration};

use agentd_protocol::{
    command::Command,
    daemon::{ClientCapabilities, ClientInfo, HelloParams, OpenSessionParams, PROTOCOL, Role},
    error::{ErrorCode, Failure},
    lines::{DEFAULT_MAX_LINE_BYTES, write_line},
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use crate::{ConnectError, Endpoint};

/// How long a daemon may take to answer `hello`. A service manager may have to start it first.
const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// How much is read at once, in bytes.
const READ_BYTES: usize = 4 << 10;

/// The ids of our two commands. The next user of the connection has sent nothing yet, so it cannot use them.
const HELLO_ID: &str = "hello";
const OPEN_ID: &str = "open";

/// A session to be opened on a connection that then carries its commands and events. Not `Debug`: a key can be among
/// the arguments and in the environment.
#[derive(Clone)]
pub struct SessionOpening {
    /// The client's name and version.
    pub client: ClientInfo,
    /// What the client understands beside the events of the session.
    pub capabilities: ClientCapabilities,
    /// The session and its flags.
    pub params: OpenSessionParams,
}

/// A connection with an open session.
#[derive(Debug)]
pub struct OpenedSession {
    /// The connection.
    pub stream: UnixStream,
    /// The bytes that came after the answer.
    pub rest: Vec<u8>,
    /// Warnings for the user, a sentence each.
    pub warnings: Vec<String>,
}

/// The environment of this process for `open_session`, without variables that are not UTF-8.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

impl SessionOpening {
    /// Opens the session. Takes both answers off the stream; every later line belongs to the session.
    ///
    /// # Errors
    /// [`ConnectError::Refused`] with the daemon's words; another version; a daemon that does not answer or hangs up.
    pub async fn open(&self, endpoint: &Endpoint, stream: UnixStream) -> Result<OpenedSession, ConnectError> {
        let mut talk = OpeningExchange { endpoint, stream, buffer: Vec::new() };
        let hello = HelloParams {
            protocol: PROTOCOL,
            client: Some(self.client.clone()),
            capabilities: self.capabilities,
            role: Role::Control,
        };
        let greeted = timeout(HELLO_TIMEOUT, talk.ask(HELLO_ID, "hello", &hello)).await;
        let greeted = greeted.map_err(|_| {
            endpoint.unusable(format!("agentd did not answer within {} s", HELLO_TIMEOUT.as_secs()))
        })??;
        if let Err(failure) = greeted.result() {
            return Err(ConnectError::OtherVersion(failure.error));
        }
        let opened = talk.ask(OPEN_ID, "open_session", &self.params).await?;
        let data = opened.result().map_err(|mut failure| {
            // The user typed flags and knows nothing of protocol fields.
            for prefix in ["Invalid field \"args\": ", "Error: "] {
                if let Some(rest) = failure.error.strip_prefix(prefix) {
                    failure.error = rest.to_owned();
                }
            }
            match failure.code {
                ErrorCode::UnknownCommand => ConnectError::OtherVersion(failure.error),
                _ => ConnectError::Refused(failure),
            }
        })?;
        Ok(OpenedSession { stream: talk.stream, rest: talk.buffer, warnings: data.warnings })
    }
}

/// The parts of a response that matter here.
#[derive(Deserialize)]
struct OpeningAnswer {
    #[serde(default)]
    id: Option<serde_json::Value>,
    success: bool,
    #[serde(default)]
    data: AnswerData,
    #[serde(flatten)]
    failure: Option<Failure>,
}

#[derive(Deserialize, Default)]
struct AnswerData {
    #[serde(default)]
    warnings: Vec<String>,
}

impl OpeningAnswer {
    fn result(self) -> Result<AnswerData, Failure> {
        match self {
            Self { success: true, data, .. } => Ok(data),
            Self { failure, .. } => Err(failure
                .unwrap_or_else(|| Failure::new(ErrorCode::Internal, "agentd refused, and did not say why"))),
        }
    }
}

/// Questions and answers on one connection, one after the other.
struct OpeningExchange<'a> {
    endpoint: &'a Endpoint,
    stream: UnixStream,
    /// The bytes that were read and not used yet.
    buffer: Vec<u8>,
}

impl OpeningExchange<'_> {
    async fn ask<P: Serialize>(
        &mut self,
        id: &str,
        name: &str,
        params: &P,
    ) -> Result<OpeningAnswer, ConnectError> {
        debug_assert!(Command::NAMES.contains(&name));
        #[derive(Serialize)]
        struct Request<'a, P> {
            id: &'a str,
            #[serde(rename = "type")]
            name: &'a str,
            #[serde(flatten)]
            params: &'a P,
        }
        let unreadable = |error: serde_json::Error| self.endpoint.unusable(format!("`{name}`: {error}"));
        let line = serde_json::to_vec(&Request { id, name, params }).map_err(unreadable)?;
        let mut bytes = Vec::with_capacity(line.len() + 1);
        write_line(&line, &mut bytes);
        let written = self.stream.write_all(&bytes).await;
        let lost = |error: std::io::Error| self.endpoint.unusable(format!("`{name}`: {error}"));
        let line = match (written, self.line(name).await) {
            // A daemon that hangs up at once may have sent its reason.
            (_, Ok(line)) => line,
            (Err(error), Err(_)) => return Err(lost(error)),
            (Ok(()), Err(error)) => return Err(error),
        };
        let answer: OpeningAnswer = serde_json::from_slice(&line).map_err(|error| {
            self.endpoint.unusable(format!("the answer to `{name}` cannot be read: {error}"))
        })?;
        if let OpeningAnswer { id: None, success: false, failure: Some(failure), .. } = &answer
            && failure.code == ErrorCode::LimitReached
        {
            return Err(ConnectError::Refused(failure.clone()));
        }
        if answer.id.as_ref().and_then(serde_json::Value::as_str) != Some(id) {
            return Err(self.endpoint.unusable(format!("what answers `{name}` is not agentd")));
        }
        Ok(answer)
    }

    /// The next line, without its LF.
    async fn line(&mut self, name: &str) -> Result<Vec<u8>, ConnectError> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let rest = self.buffer.split_off(searched + end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                return Ok(line);
            }
            searched = self.buffer.len();
            if searched > DEFAULT_MAX_LINE_BYTES {
                return Err(self.endpoint.unusable(format!("the answer to `{name}` has no end")));
            }
            self.buffer.reserve(READ_BYTES);
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| self.endpoint.unusable(format!("`{name}`: {error}")))? == 0 {
                return Err(self.endpoint.unusable(format!("agentd ended before it answered `{name}`")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a session against a daemon that writes these pieces.
    async fn open(said: &[&str]) -> Result<OpenedSession, ConnectError> {
        let endpoint = Endpoint { agent_dir: "/a".into(), socket: "/a/s".into() };
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let client = ClientInfo { name: "test".into(), version: None };
        let opening = SessionOpening {
            client,
            capabilities: ClientCapabilities::default(),
            params: OpenSessionParams::default(),
        };
        let talking = async {
            for piece in said {
                theirs.write_all(piece.as_bytes()).await.unwrap();
            }
            // Unread commands would make the end of the connection an error.
            theirs.shutdown().await.unwrap();
            let mut asked = Vec::new();
            let _ = theirs.read_to_end(&mut asked).await;
        };
        let (opened, ()) = tokio::join!(async { opening.open(&endpoint, ours).await }, async {
            // Ends when the stream is dropped, or at once when it is kept.
            let _ = timeout(Duration::from_millis(200), talking).await;
        });
        opened
    }

    const HELLO: &str =
        "{\"id\":\"hello\",\"type\":\"response\",\"command\":\"hello\",\"success\":true,\"data\":{}}\n";

    #[tokio::test]
    async fn answers_are_taken_off_and_nothing_else() {
        let answer =
            "{\"id\":\"open\",\"type\":\"response\",\"success\":true,\"data\":{\"warnings\":[\"w\"]}}\n{\"ty";
        let opened = open(&[&HELLO[..9], &HELLO[9..], answer]).await.unwrap();
        assert_eq!(
            (opened.rest.as_slice(), opened.warnings.as_slice()),
            (&b"{\"ty"[..], &["w".to_owned()][..])
        );
    }

    #[tokio::test]
    async fn refusals_keep_their_words() {
        let refusal = |code: &str, error: &str| {
            format!(
                "{{\"id\":\"open\",\"type\":\"response\",\"success\":false,\"error\":{error:?},\"code\":\"{code}\",\"hint\":\"h\"}}\n"
            )
        };
        let error = open(&[HELLO, &refusal("session_locked", "locked")]).await.unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.kind()),
            ("locked\nh", crate::ConnectErrorKind::Refused)
        );
        let error =
            open(&[HELLO, &refusal("invalid_field", "Invalid field \"args\": Error: bad flag")]).await;
        assert_eq!(error.unwrap_err().to_string(), "bad flag\nh");
        let error = open(&[HELLO, &refusal("unknown_command", "what?")]).await.unwrap_err();
        assert!(matches!(error, ConnectError::OtherVersion(_)), "{error}");
        let other = HELLO.replace("true", "false,\"error\":\"protocol 2\",\"code\":\"unsupported\"");
        let error = open(&[&other]).await.unwrap_err();
        assert!(
            error.to_string().contains("protocol 2") && error.to_string().contains("agentctl up"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn what_is_no_daemon_is_told() {
        for (said, expected) in [
            (&["hi\n"][..], "cannot be read"),
            (&[], "ended before"),
            (&["{\"success\":true}\n"], "not agentd"),
        ] {
            let error = open(said).await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
