//! One request and its answer: idle limit, abort, size limits, and failures in words.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use agentd_http::{CONNECT_TIMEOUT, Skew};
use bytes::Bytes;
use futures::FutureExt;
use reqwest::{
    Response, StatusCode, Url,
    header::{DATE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::{sync::mpsc::UnboundedSender, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Deadlines, HttpRetries, Network, Stall, StallPhase,
    failure::{Failure, FailureKind, classify_message, is_account_limit},
    http::{
        AwsError, ErrorBody, Explain, Server, Signer,
        aws_error::ERROR_TYPE,
        is_loopback,
        retry::{Advice, Pause},
        server::Limit,
    },
    traffic::{About, Played, Player, Tape, Traffic, Transport},
};

/// What one answer may have in all, in bytes.
const MAX_ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// How much of an error answer is read, in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// How many chunks behind the end of an answer are read to keep its connection.
const MAX_LEFT_CHUNKS: usize = 4;

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

/// An answer with a good status, whose body has still to be read.
pub(crate) struct Answer {
    server: Server,
    status: StatusCode,
    headers: HeaderMap,
    body: Body,
    /// Takes down what is read.
    tape: Option<Tape>,
    received: u64,
    limits: Limits,
    cancel: CancellationToken,
}

/// Where the bytes of an answer come from.
enum Body {
    Live(Response),
    Replayed(Played),
}

/// The limits of an attempt, and how much of them is used.
#[derive(Debug, Clone, Copy)]
struct Limits {
    idle: Option<Duration>,
    /// Until the headers.
    headers: Option<Duration>,
    progress: Option<Duration>,
    deadlines: Deadlines,
    /// How long the provider was waited for.
    waited: Duration,
    /// The same since the last content.
    without_content: Duration,
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
            Traffic::Live => self.ask(transport, headers, None).await?,
            Traffic::Recorded(recorder) => {
                let sent = (&self.url, &headers, &*self.body);
                let tape = recorder.begin(&self.about, sent, &self.server.redactor).await;
                self.ask(transport, headers, Some(tape)).await?
            }
            Traffic::Replayed(player) => self.replay(player).await?,
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
    skew: Option<Skew>,
}

impl Refused {
    /// Without any answer: it is sent again where the connection was the trouble.
    fn unanswered(failure: Failure) -> Self {
        let advice = Advice { retry: failure.kind == FailureKind::Retryable, delay: None };
        Self { failure, advice, skew: None }
    }
}

/// A signature with the server's own time was refused, too.
fn wrong_clock(failure: Failure, skew: Skew) -> Failure {
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

impl Answer {
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The next bytes of the body; `None` at its end. `patience` may shorten the idle limit.
    ///
    /// # Errors
    /// Fails when the connection breaks, when the server is silent for too long, when the answer is too large, and when
    /// the request was stopped.
    pub(crate) async fn chunk(&mut self, patience: Option<Duration>) -> Result<Option<Bytes>, Failure> {
        let wish = if self.received == 0 { Await::FirstByte } else { Await::More(patience) };
        let read = self.read(wish).await;
        match (&mut self.tape, &read) {
            (Some(tape), Ok(Some(chunk))) => tape.chunk(chunk).await,
            (tape @ Some(_), Err(failure)) => {
                if let Some(tape) = tape.take() {
                    tape.end(Some(failure)).await;
                }
            }
            _ => {}
        }
        let chunk = read?;
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.received > MAX_ANSWER_BYTES {
            let host = &self.server.host;
            let message =
                format!("The answer of {host} is larger than {MAX_ANSWER_BYTES} bytes; it was given up.");
            return Err(Failure::new(FailureKind::Fatal, message));
        }
        Ok(chunk)
    }

    async fn read(&mut self, wish: Await) -> Result<Option<Bytes>, Failure> {
        let Self { limits, body, cancel, server, .. } = self;
        match body {
            Body::Live(response) => {
                let read = limits.wait(response.chunk(), wish, cancel, server).await?;
                read.map_err(|error| server.lost(&error))
            }
            Body::Replayed(played) => limits.wait(played.chunk(), wish, cancel, server).await?,
        }
    }

    /// What came last had content.
    pub(crate) fn progressed(&mut self) {
        self.limits.without_content = Duration::ZERO;
    }

    /// Everything that matters was read: ends the recording, if there is one.
    pub(crate) async fn was_read(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.end(None).await;
        }
    }

    /// Reads the little that is left if it is here already, so that the connection can be used again.
    pub(crate) fn finish(mut self) {
        let Body::Live(response) = &mut self.body else { return };
        for _ in 0..MAX_LEFT_CHUNKS {
            if !matches!(response.chunk().now_or_never(), Some(Ok(Some(_)))) {
                break;
            }
        }
    }

    /// What an answer with a bad status says, and whether it refuses a signature for its time.
    async fn into_failure(mut self, explain: Option<Explain>) -> (Failure, bool) {
        let failure = self.read_failure(explain).await;
        self.was_read().await;
        failure
    }

    async fn read_failure(&mut self, explain: Option<Explain>) -> (Failure, bool) {
        let status = self.status;
        if status.is_redirection()
            && let Some(location) = self.headers.get(reqwest::header::LOCATION)
        {
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            let message = format!(
                "{}: {} redirects to {location}. Requests are not sent on to other addresses: set the baseUrl of \
                 provider \"{}\" to where the API is.",
                status.as_u16(),
                self.server.url,
                self.server.provider
            );
            return (Failure::new(FailureKind::Fatal, self.server.redactor.redact(message)), false);
        }
        let error_type = self.headers.get(ERROR_TYPE).and_then(|kind| kind.to_str().ok());
        let error_type = error_type.map(str::to_owned);
        let mut body = Vec::new();
        let mut broken = None;
        while body.len() < MAX_ERROR_BYTES {
            match self.chunk(None).await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(failure) if failure.kind == FailureKind::Aborted => return (failure, false),
                Err(failure) => {
                    broken = Some(failure);
                    break;
                }
            }
        }
        if let Some(failure) = broken.filter(|_| body.is_empty()) {
            tracing::debug!(%failure, "the body of an error answer could not be read");
        }
        let body = String::from_utf8_lossy(&body);
        if let Some(text) = explain.and_then(|explain| explain(status.as_u16(), &body)) {
            let kind = classify_message(&self.server.provider, &text);
            return (self.server.failure(kind, text), false);
        }
        if let Some(kind) = error_type {
            let error = AwsError::of(&kind, &body);
            return (self.server.aws_refusal(Some(status.as_u16()), &error), error.is_of_time());
        }
        (self.server.refusal(Some(status.as_u16()), &ErrorBody::read(&body)), false)
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Await {
    /// The headers of an answer.
    Headers,
    /// The first byte of its body.
    FirstByte,
    /// More of it. A patience may shorten the idle limit.
    More(Option<Duration>),
}

impl Limits {
    /// Waits for the network; the limit that is reached first, and the abort, end the wait.
    async fn wait<T>(
        &mut self,
        future: impl Future<Output = T>,
        wish: Await,
        cancel: &CancellationToken,
        server: &Server,
    ) -> Result<T, Failure> {
        let limit = self.limits(wish).into_iter().flatten().min_by_key(|limit| limit.left);
        let begun = Instant::now();
        let limited = async {
            match limit {
                Some(limit) => tokio::time::timeout(limit.left, future).await.map_err(|_| limit),
                None => Ok(future.await),
            }
        };
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::aborted()),
            done = limited => done,
        };
        self.waited += begun.elapsed();
        self.without_content += begun.elapsed();
        done.map_err(|limit| {
            // A wait that was short, at the end of a limit that was used up before, is no shorter stall.
            let waited = begun.elapsed() + limit.total.saturating_sub(limit.left);
            server.stalled(&limit, waited, &self.deadlines)
        })
    }

    fn limits(&self, wish: Await) -> [Option<Limit>; 5] {
        let Deadlines { first_byte, request, .. } = self.deadlines;
        let (headers, first_byte) = match wish {
            Await::Headers => (self.headers, first_byte),
            Await::FirstByte => (None, first_byte),
            Await::More(_) => (None, None),
        };
        let patience = if let Await::More(patience) = wish { patience } else { None };
        let idle = [self.idle, patience].into_iter().flatten().min();
        let none = Duration::ZERO;
        [
            Limit::of(idle, none, StallPhase::Idle, "httpIdleTimeoutMs"),
            Limit::of(headers, none, StallPhase::FirstByte, "retry.provider.timeoutMs"),
            Limit::of(first_byte, self.waited, StallPhase::FirstByte, "deadlines.firstByteMs"),
            Limit::of(self.progress, self.without_content, StallPhase::Progress, "deadlines.progressMs"),
            Limit::of(request, self.waited, StallPhase::Request, "deadlines.requestMs"),
        ]
    }
}
