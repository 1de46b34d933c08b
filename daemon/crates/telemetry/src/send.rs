//! Requests to the collector, by the rules of OTLP over HTTP: what is sent again, and when.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use agentd_http::{HttpClients, Network, deepest_cause, scrub};
use agentd_protocol::settings::TelemetryProtocol;
use bytes::Bytes;
use reqwest::{
    Response, StatusCode, Url,
    header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    config::TelemetryConfig,
    encode::{content_type, rejected},
};

/// The pause before the second attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause, of those that a collector asks for, too.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The time after which data is given up.
const MAX_RETRY_TIME: Duration = Duration::from_secs(60);

/// The bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends to one address of the collector.
pub(crate) struct Sender {
    url: Url,
    config: TelemetryConfig,
    clients: HttpClients,
    /// Fires when the process ends: then nothing is sent again.
    stop: CancellationToken,
    /// Whether the last data was not taken. Only the first failure in a row is logged.
    is_failing: AtomicBool,
}

/// Data that was not taken.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("{0}")]
    Unreachable(String),
    #[error("the collector answers {status}{}", hint(*.status))]
    Refused { status: StatusCode, retry_after: Option<Duration> },
}

fn hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => {
            ": there is nothing at that path (telemetry.traces and telemetry.metrics turn one of them off)"
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ": see telemetry.headers",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ": see telemetry.protocol",
        _ => "",
    }
}

impl SendError {
    /// Whether the same may be taken later. Other answers than these must not be tried again.
    fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }
}

impl Sender {
    pub(crate) fn new(url: Url, config: TelemetryConfig, network: Network, stop: CancellationToken) -> Self {
        let is_failing = AtomicBool::new(false);
        Self { url, config, clients: HttpClients::new(network), stop, is_failing }
    }

    /// Sends a body; false when it was given up. Waits up to a minute where it may be taken later.
    ///
    /// Cancel safety: dropped, it is not known whether the collector has the data.
    pub(crate) async fn send(&self, body: Vec<u8>) -> bool {
        let (body, begun, mut pause) = (Bytes::from(body), Instant::now(), FIRST_PAUSE);
        let error = loop {
            let error = match self.attempt(body.clone()).await {
                Ok(()) => {
                    if self.is_failing.swap(false, Ordering::Relaxed) {
                        tracing::info!(address = self.shown(), "telemetry is taken again");
                    }
                    return true;
                }
                Err(error) => error,
            };
            let asked = match &error {
                SendError::Refused { retry_after, .. } => *retry_after,
                SendError::Unreachable(_) => None,
            };
            // Daemons that were refused together must not come back together.
            let wait = asked.unwrap_or_else(|| pause.mul_f64(jitter())).min(MAX_PAUSE);
            if !error.may_pass() || self.stop.is_cancelled() || begun.elapsed() + wait > MAX_RETRY_TIME {
                break error;
            }
            self.complain(&error, "telemetry is not taken; trying again");
            pause *= 2;
            let _ = self.stop.run_until_cancelled(sleep(wait)).await;
        };
        self.complain(&error, "telemetry is not taken; it is dropped until it is");
        false
    }

    fn complain(&self, error: &SendError, text: &'static str) {
        if self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(address = self.shown(), %error, "{text}");
        } else {
            tracing::warn!(address = self.shown(), %error, "{text}");
        }
    }

    async fn attempt(&self, body: Bytes) -> Result<(), SendError> {
        let client =
            self.clients.get(&self.url).map_err(|error| SendError::Unreachable(error.to_string()))?;
        let mut request = client
            .post(self.url.clone())
            .timeout(self.config.timeout)
            .header(CONTENT_TYPE, content_type(self.config.protocol))
            .header(USER_AGENT, concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .body(body);
        for (name, value) in &self.config.headers {
            request = request.header(name.as_str(), value.expose());
        }
        let unreachable = |error: reqwest::Error| {
            SendError::Unreachable(scrub(&deepest_cause(&error.without_url())).into_owned())
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(SendError::Refused { status, retry_after: retry_after(&response) });
        }
        let answer = read(response).await.map_err(unreachable)?;
        self.note_rejected(self.config.protocol, &answer);
        Ok(())
    }

    fn note_rejected(&self, protocol: TelemetryProtocol, answer: &[u8]) {
        if let Some(rejected) = rejected(protocol, answer) {
            let message = scrub(&rejected.message);
            tracing::warn!(address = self.shown(), rejected = rejected.count, %message, "the collector took only a part");
        }
    }

    fn shown(&self) -> String {
        format!("{}{}", self.config.shown().trim_end_matches('/'), self.url.path())
    }
}

/// Between a half and one and a half.
fn jitter() -> f64 {
    let [byte, ..] = uuid::Uuid::new_v4().into_bytes();
    0.5 + f64::from(byte) / 255.0
}

/// The pause that an answer asks for: seconds or a date.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

async fn read(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut answer = Vec::new();
    while let Some(piece) = response.chunk().await? {
        answer.extend_from_slice(&piece);
        if answer.len() > MAX_ANSWER_BYTES {
            // Nothing that collectors say is so long.
            return Ok(Vec::new());
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use agentd_protocol::settings::TelemetrySettings;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Answers one connection after the other with these status lines and headers; gives the number of requests.
    async fn answers(listener: TcpListener, answers: &'static [&'static str]) -> usize {
        for (served, answer) in answers.iter().enumerate() {
            let Ok((mut stream, _)) = listener.accept().await else { return served };
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"body") {
                let count = stream.read(&mut piece).await.unwrap();
                assert_ne!(count, 0, "the request ends with its body");
                request.extend_from_slice(&piece[..count]);
            }
            let answer = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        answers.len()
    }

    async fn check(given: &'static [&'static str], is_stopping: bool, is_taken: bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let settings = TelemetrySettings { endpoint: Some(endpoint), ..TelemetrySettings::default() };
        let config = TelemetryConfig::of(&settings, |_| None).unwrap().unwrap();
        let stop = CancellationToken::new();
        if is_stopping {
            stop.cancel();
        }
        let url = config.traces.clone().unwrap();
        let sender = Sender::new(url, config, Network::default(), stop);
        let serving = tokio::spawn(answers(listener, given));
        assert_eq!(sender.send(b"body".to_vec()).await, is_taken, "{given:?}");
        assert_eq!(serving.await.unwrap(), given.len());
    }

    #[tokio::test]
    async fn only_what_may_pass_is_sent_again() {
        check(&["200 OK"], false, true).await;
        check(&["503 Busy\r\nretry-after: 0", "429 Slow down\r\nretry-after: 0", "200 OK"], false, true)
            .await;
        const DATE: &str = "502 Bad\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT";
        check(&[DATE, "504 Late\r\nretry-after: 0", "400 Bad Request"], false, false).await;
        check(&["401 Unauthorized"], false, false).await;
        check(&["307 Elsewhere\r\nlocation: /there"], false, false).await;
    }

    #[tokio::test]
    async fn a_process_that_ends_sends_nothing_again() {
        check(&["503 Busy\r\nretry-after: 0"], true, false).await;
    }
}
