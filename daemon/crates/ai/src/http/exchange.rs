//! Sending a request, again where that helps, until its answer begins.

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
        Explain, Server, Signer,
        answer::{Answer, Body},
        is_loopback,
        patience::{Await, Limits},
        retry::{Advice, Pause},
        server::Limit,
    },
    record_replay::{About, ExchangeMode, Player, Tape, Transport},
};

/// A request to be made.
pub(crate) struct Post {
    /// Where to.
    pub(crate) url: Url,
    /// The same, for failures.
    pub(crate) server: Server,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// Signs each attempt.
    pub(crate) sign: Option<Signer>,
    /// Says what a refusal means.
    pub(crate) explain: Option<Explain>,
    /// How long the server may be silent.
    pub(crate) idle_timeout: Option<Duration>,
    /// The other limits of time.
    pub(crate) deadlines: Deadlines,
    /// How connections come about; `None` for what the environment says.
    pub(crate) network: Option<Arc<Network>>,
    /// Hears of each limit that an attempt exceeded before the request is sent again; at most as often as that.
    pub(crate) stalls: UnboundedSender<Stall>,
    /// What it is about.
    pub(crate) about: About,
    /// How often the request may be sent again.
    pub(crate) retries: HttpRetries,
    /// Stops everything.
    pub(crate) cancel: CancellationToken,
}

impl Post {
    /// Sends the request and waits for the headers of the answer. What fails before them is sent again as `retries` and
    /// the server allow; an answer with a good status never is.
    ///
    /// # Errors
    /// Fails for anything but an answer with a status of success.
    pub(crate) async fn send(self, transport: &Transport) -> Result<Answer, Failure> {
        let mut sent = 0;
        let mut is_corrected = false;
        loop {
            let refused = match self.attempt(transport).await {
                Ok(answer) => return Ok(answer),
                Err(refused) => refused,
            };
            // The server's time is known now, and the request was refused unread.
            if let Some(skew) = refused.skew {
                if is_corrected {
                    return Err(wrong_clock(refused.failure, skew));
                }
                is_corrected = true;
                tracing::warn!(host = self.server.host, %skew, "a signature was refused for its time, and is made again");
                continue;
            }
            let pause = match refused.advice.pause(sent, &self.retries) {
                Pause::For(pause) => pause,
                Pause::GiveUp => return Err(refused.failure.after(refused.advice.delay)),
                Pause::TooLong(asked) => {
                    return Err(too_long(refused.failure, asked, self.retries.max_delay));
                }
            };
            sent += 1;
            if let Some(stall) = refused.failure.stall {
                // Nobody listens any more where the answer was given up.
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
    async fn attempt(&self, transport: &Transport) -> Result<Answer, Refused> {
        let clocks = transport.clients.clocks();
        let mut headers = self.headers.clone();
        if let Some(sign) = &self.sign
            && let Err(failure) = sign(&self.url, &mut headers, &self.body, clocks.now(&self.url))
        {
            return Err(Refused::unanswered(failure));
        }
        let answer = match &transport.traffic {
            ExchangeMode::Live => self.ask(transport, headers, None).await?,
            ExchangeMode::Recorded(recorder) => {
                let sent = (&self.url, &headers, &*self.body);
                let tape = recorder.begin(&self.about, sent, &self.server.redactor).await;
                self.ask(transport, headers, Some(tape)).await?
            }
            ExchangeMode::Replayed(player) => self.replay(player).await?,
        };
        let mut advice = Advice::of(answer.status, &answer.headers);
        if answer.status.is_success() {
            return Ok(answer);
        }
        let date = answer.headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let now = SystemTime::now();
        let (failure, is_of_time) = answer.into_failure(self.explain).await;
        let date = date.filter(|_| is_of_time && self.sign.is_some());
        let skew = date.and_then(|date| clocks.learn(&self.url, &date, now));
        // Neither a limit of the account nor a transcript that is too long passes in a moment, whatever the status.
        if failure.kind == FailureKind::ContextOverflow || is_account_limit(&failure.message) {
            advice.retry = false;
        }
        Err(Refused { failure, advice, skew })
    }

    /// Sends the request and waits for the headers of an answer.
    async fn ask(
        &self,
        transport: &Transport,
        headers: HeaderMap,
        tape: Option<Tape>,
    ) -> Result<Answer, Refused> {
        let mut limits = self.limits();
        match self.ask_within(&mut limits, transport, headers).await {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                if let Some(tape) = &tape {
                    tape.response(status.as_u16(), &headers).await;
                }
                let (server, cancel) = (self.server.clone(), self.cancel.clone());
                Ok(Answer {
                    server,
                    status,
                    headers,
                    body: Body::Live(response),
                    tape,
                    received: 0,
                    limits,
                    cancel,
                })
            }
            Err(failure) => {
                if let Some(tape) = tape {
                    tape.end(Some(&failure)).await;
                }
                Err(Refused::unanswered(failure))
            }
        }
    }

    async fn ask_within(
        &self,
        limits: &mut Limits,
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
        match limits.wait(request.send(), Await::Headers, cancel, server).await? {
            Ok(response) => Ok(response),
            Err(error) => {
                let failure = self.slow_connection(&error, begun.elapsed());
                let proxy = || transport.clients.proxy(&self.url, self.network.as_deref());
                Err(failure.unwrap_or_else(|| server.unreachable(&error, proxy())))
            }
        }
    }

    /// Takes the answer from a recording.
    async fn replay(&self, player: &Arc<Player>) -> Result<Answer, Refused> {
        let (player, about) = (Arc::clone(player), self.about.clone());
        let (url, body) = (self.url.clone(), self.body.clone());
        let played = tokio::task::spawn_blocking(move || player.answer(&about, &url, &body));
        let played = played.await.unwrap_or_else(|error| {
            Err(Failure::new(FailureKind::Fatal, format!("The recording cannot be played: {error}")))
        });
        let played = played.map_err(Refused::unanswered)?;
        let status = StatusCode::from_u16(played.status).map_err(|_| {
            let message = format!("The recording has a status that is none: {}.", played.status);
            Refused::unanswered(Failure::new(FailureKind::Fatal, message))
        })?;
        let header = |(name, value): &(String, String)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        };
        let headers = played.headers.iter().filter_map(header).collect();
        let (server, cancel) = (self.server.clone(), self.cancel.clone());
        // What was recorded had its limits then.
        let limits = Limits { idle: None, progress: None, deadlines: Deadlines::default(), ..self.limits() };
        Ok(Answer {
            server,
            status,
            headers,
            body: Body::Replayed(played),
            tape: None,
            received: 0,
            limits,
            cancel,
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            idle: self.idle_timeout,
            headers: self.retries.first_byte_timeout,
            progress: self.deadlines.progress(is_loopback(&self.url)),
            deadlines: self.deadlines,
            waited: Duration::ZERO,
            without_content: Duration::ZERO,
        }
    }

    /// The failure of a connection that took longer than it may.
    fn slow_connection(&self, error: &reqwest::Error, waited: Duration) -> Option<Failure> {
        let limit = self.network.as_ref().map_or(Some(CONNECT_TIMEOUT), |network| network.connect_timeout)?;
        // The system has a limit of its own, which is not that of the setting.
        if !error.is_connect() || !error.is_timeout() || waited < limit {
            return None;
        }
        let limit =
            Limit { left: limit, total: limit, phase: StallPhase::Connect, setting: "deadlines.connectMs" };
        Some(self.server.stalled(&limit, waited, &self.deadlines))
    }
}

/// An attempt that came to nothing.
struct Refused {
    failure: Failure,
    advice: Advice,
    /// How far our clock is off, where the signature was refused for that.
    skew: Option<ClockSkew>,
}

impl Refused {
    /// Without any answer: it is sent again where the connection was the trouble.
    fn unanswered(failure: Failure) -> Self {
        let advice = Advice { retry: failure.kind == FailureKind::Retryable, delay: None };
        Self { failure, advice, skew: None }
    }
}

/// A signature with the server's own time was refused, too.
fn wrong_clock(failure: Failure, skew: ClockSkew) -> Failure {
    let message = format!(
        "{} Requests are signed with the time, and {skew}: set it (`timedatectl` says whether it is synchronised).",
        failure.message
    );
    Failure::new(failure.kind, message)
}

/// The server wants more patience than there is. The failure says so and is not worth another attempt.
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
