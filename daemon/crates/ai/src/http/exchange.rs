//! Sends a request, again when a retry may help, until its answer begins.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use agentd_http::{CONNECT_TIMEOUT, ClockSkew};
use bytes::Bytes;
use reqwest::{
    Response, StatusCode, Url,
    header::{DATE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::{sync::mpsc::UnboundedSender, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Deadlines, HttpRetries, Network, Stall, StallPhase,
    failure::{Failure, FailureKind, is_account_limit},
    http::{
        Server,
        adapter::{Explain, Signer},
        answer::{AnswerBody, HttpAnswer},
        is_loopback,
        retry::{RetryAdvice, RetryPause},
        timeouts::{AttemptTimeouts, Timeout, WaitPhase, stalled},
    },
    record_replay::{ExchangeInfo, ExchangeMode, ExchangeRecorder, Player, Transport},
};

/// A request that is ready to be sent, and everything about how it is sent.
pub(crate) struct HttpExchange {
    /// The address.
    pub(crate) url: Url,
    /// The server, as failures name it.
    pub(crate) server: Server,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// Signs each attempt.
    pub(crate) sign: Option<Signer>,
    /// Explains refusals in the provider's own terms.
    pub(crate) explain: Option<Explain>,
    /// The longest silence of the server.
    pub(crate) idle_timeout: Option<Duration>,
    /// The other timeouts.
    pub(crate) deadlines: Deadlines,
    /// Proxies, certificates and timeouts of connections; `None` for those of the environment.
    pub(crate) network: Option<Arc<Network>>,
    /// Receives the stall of each attempt that exceeded a timeout and is sent again.
    pub(crate) stalls: UnboundedSender<Stall>,
    /// The facts about the request that a recording keeps.
    pub(crate) about: ExchangeInfo,
    /// The retries that are allowed.
    pub(crate) retries: HttpRetries,
    /// Aborts the exchange.
    pub(crate) cancel: CancellationToken,
}

impl HttpExchange {
    /// Sends the request and waits for the headers of the answer. A request that fails before them is sent again as `retries` and the server
    /// allow; after a status of success it never is.
    ///
    /// # Errors
    /// Fails for anything but an answer with a status of success.
    pub(crate) async fn send(&self, transport: &Transport) -> Result<HttpAnswer, Failure> {
        let mut sent = 0;
        let mut is_corrected = false;
        loop {
            let refused = match self.attempt(transport).await {
                Ok(answer) => return Ok(answer),
                Err(refused) => refused,
            };
            // The server's time is known now, and it refused the request unread.
            if let Some(skew) = refused.skew {
                if is_corrected {
                    return Err(wrong_clock(refused.failure, skew));
                }
                is_corrected = true;
                tracing::warn!(host = self.server.host, %skew, "a signature was refused for its time, and is made again");
                continue;
            }
            let pause = match refused.advice.pause(sent, &self.retries) {
                RetryPause::For(pause) => pause,
                RetryPause::GiveUp => return Err(refused.failure.after(refused.advice.delay)),
                RetryPause::TooLong(asked) => {
                    return Err(too_long(refused.failure, asked, self.retries.max_delay));
                }
            };
            sent += 1;
            if let Some(stall) = refused.failure.stall {
                // The receiver is gone if the answer was given up.
                let _ = self.stalls.send(Stall { sent_again: true, ..stall });
            }
            tracing::debug!(failure = %refused.failure, ?pause, sent, "a request is sent again");
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Failure::aborted()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Sends the request once.
    async fn attempt(&self, transport: &Transport) -> Result<HttpAnswer, FailedAttempt> {
        let clocks = transport.clients.clocks();
        let mut headers = self.headers.clone();
        if let Some(sign) = &self.sign
            && let Err(failure) = sign(&self.url, &mut headers, &self.body, clocks.now(&self.url))
        {
            return Err(FailedAttempt::unanswered(failure));
        }
        let answer = match &transport.exchange_mode {
            ExchangeMode::Live => self.ask(transport, headers, None).await?,
            ExchangeMode::Recorded(folder) => {
                let sent = (&self.url, &headers, &*self.body);
                let recorder = folder.begin(&self.about, sent, &self.server.redactor).await;
                self.ask(transport, headers, Some(recorder)).await?
            }
            ExchangeMode::Replayed(player) => self.replay(player).await?,
        };
        let mut advice = RetryAdvice::of(answer.status, &answer.headers);
        if answer.status.is_success() {
            return Ok(answer);
        }
        let date = answer.headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let now = SystemTime::now();
        // On the heap: all who wait for an answer would have room for it.
        let (failure, is_of_time) = Box::pin(answer.into_failure(self.explain)).await;
        let date = date.filter(|_| is_of_time && self.sign.is_some());
        let skew = date.and_then(|date| clocks.learn(&self.url, &date, now));
        // An account limit and a transcript that is too long do not pass in a moment, whatever the status.
        if failure.kind == FailureKind::ContextOverflow || is_account_limit(&failure.message) {
            advice.retry = false;
        }
        Err(FailedAttempt { failure, advice, skew })
    }

    /// Sends the request and waits for the headers of an answer.
    async fn ask(
        &self,
        transport: &Transport,
        headers: HeaderMap,
        recorder: Option<ExchangeRecorder>,
    ) -> Result<HttpAnswer, FailedAttempt> {
        let mut timeouts = self.timeouts();
        match self.ask_within(&mut timeouts, transport, headers).await {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                if let Some(recorder) = &recorder {
                    recorder.response(status.as_u16(), &headers).await;
                }
                let (server, cancel) = (self.server.clone(), self.cancel.clone());
                Ok(HttpAnswer {
                    server,
                    status,
                    headers,
                    body: AnswerBody::Live(response),
                    recorder,
                    received: 0,
                    timeouts,
                    cancel,
                })
            }
            Err(failure) => {
                if let Some(recorder) = recorder {
                    recorder.end(Some(&failure)).await;
                }
                Err(FailedAttempt::unanswered(failure))
            }
        }
    }

    async fn ask_within(
        &self,
        timeouts: &mut AttemptTimeouts,
        transport: &Transport,
        headers: HeaderMap,
    ) -> Result<Response, Failure> {
        let Self { server, cancel, .. } = self;
        let client = match &self.network {
            Some(network) => transport.clients.get_by(&self.url, network),
            None => transport.clients.get(&self.url),
        };
        let client = client.map_err(|error| server.failure(FailureKind::Fatal, error.to_string()))?;
        let request = client.post(self.url.clone()).headers(headers).body(self.body.clone());
        let begun = Instant::now();
        match timeouts.wait(request.send(), WaitPhase::Headers, cancel, server).await? {
            Ok(response) => Ok(response),
            Err(error) => {
                let failure = self.slow_connection(&error, begun.elapsed());
                let proxy = || transport.clients.proxy(&self.url, self.network.as_deref());
                Err(failure.unwrap_or_else(|| server.unreachable(&error, proxy())))
            }
        }
    }

    /// Reads the answer from a recording.
    async fn replay(&self, player: &Arc<Player>) -> Result<HttpAnswer, FailedAttempt> {
        let (player, about) = (Arc::clone(player), self.about.clone());
        let (url, body) = (self.url.clone(), self.body.clone());
        let played = tokio::task::spawn_blocking(move || player.answer(&about, &url, &body));
        let played = played.await.unwrap_or_else(|error| {
            Err(Failure::new(FailureKind::Fatal, format!("The recording cannot be played: {error}")))
        });
        let played = played.map_err(FailedAttempt::unanswered)?;
        let status = StatusCode::from_u16(played.status).map_err(|_| {
            let message = format!("The recording has a status that is none: {}.", played.status);
            FailedAttempt::unanswered(Failure::new(FailureKind::Fatal, message))
        })?;
        let header = |(name, value): &(String, String)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        };
        let headers = played.headers.iter().filter_map(header).collect();
        let (server, cancel) = (self.server.clone(), self.cancel.clone());
        // The timeouts applied when the exchange was recorded.
        let timeouts = AttemptTimeouts {
            idle: None,
            progress: None,
            deadlines: Deadlines::default(),
            ..self.timeouts()
        };
        Ok(HttpAnswer {
            server,
            status,
            headers,
            body: AnswerBody::Replayed(played),
            recorder: None,
            received: 0,
            timeouts,
            cancel,
        })
    }

    fn timeouts(&self) -> AttemptTimeouts {
        AttemptTimeouts {
            idle: self.idle_timeout,
            headers: self.retries.first_byte_timeout,
            progress: self.deadlines.progress(is_loopback(&self.url)),
            deadlines: self.deadlines,
            waited: Duration::ZERO,
            without_content: Duration::ZERO,
        }
    }

    /// The failure of a connection that exceeded its timeout.
    fn slow_connection(&self, error: &reqwest::Error, waited: Duration) -> Option<Failure> {
        let limit = self.network.as_ref().map_or(Some(CONNECT_TIMEOUT), |network| network.connect_timeout)?;
        // The system has a timeout of its own, which may be shorter than the setting.
        if !error.is_connect() || !error.is_timeout() || waited < limit {
            return None;
        }
        let limit =
            Timeout { left: limit, total: limit, phase: StallPhase::Connect, setting: "deadlines.connectMs" };
        Some(stalled(&self.server, &limit, waited, &self.deadlines))
    }
}

/// A failed attempt, and its advice about the next one.
struct FailedAttempt {
    failure: Failure,
    advice: RetryAdvice,
    /// The error of our clock, if the signature was refused because of it.
    skew: Option<ClockSkew>,
}

impl FailedAttempt {
    /// An attempt without any answer: another one may help if the connection failed.
    fn unanswered(failure: Failure) -> Self {
        let advice = RetryAdvice { retry: failure.kind == FailureKind::Retryable, delay: None };
        Self { failure, advice, skew: None }
    }
}

/// The failure of a signature that was refused even with the server's own time.
fn wrong_clock(failure: Failure, skew: ClockSkew) -> Failure {
    let message = format!(
        "{} Requests are signed with the time, and {skew}: set it (`timedatectl` says whether it is synchronised).",
        failure.message
    );
    Failure::new(failure.kind, message)
}

/// The failure of a server that asks for a longer pause than the limit allows. It says so and is not retried.
fn too_long(failure: Failure, asked: Duration, limit: Duration) -> Failure {
    if matches!(failure.kind, FailureKind::Retryable) {
        let message = format!(
            "Server requested {}s retry delay (max: {}s). {}",
            asked.as_secs_f64().ceil(),
            limit.as_secs(),
            failure.message
        );
        return Failure::new(FailureKind::Fatal, message);
    }
    failure
}
