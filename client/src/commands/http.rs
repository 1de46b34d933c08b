//! `agentctl http`: prompts over HTTP, answered by server-sent events.

mod prompt_request;
mod refusal;
mod run;
mod token;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use agentd_protocol::lines::DEFAULT_MAX_LINE_BYTES;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, ORIGIN},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{prompt_request::PromptRequest, refusal::Refusal, run::Run, token::Token};
use crate::{
    cli::{DaemonChoice, HttpOptions},
    exit::{Exit, Fault, Signals, conclude, print_stderr},
    output::{Output, OutputChunk},
    shared_daemon::Endpoint,
};

/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the runs of open requests may take to stop at the end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How many connections there may be beside those of prompts at work.
const MORE_CONNECTIONS: usize = 32;

/// How long to wait after the system could not accept a connection, mostly for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until a signal.
pub(crate) fn run(options: &HttpOptions) -> Exit {
    conclude(serve(options))
}

fn serve(options: &HttpOptions) -> Result<Exit, Fault> {
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let served = runtime.block_on(async {
        let signals = Signals::listen().map_err(broken)?;
        let output = Output::start().map_err(broken)?;
        let token_file = match &options.token_file {
            Some(file) => file.clone(),
            None => Endpoint::find()?.agent_dir.join("http-token"),
        };
        let token = Token::of_file(&token_file)?;
        let listener = TcpListener::bind(options.listen).await.map_err(|error| {
            Fault::new(Exit::Failed, format!("agentctl: cannot listen on {}: {error}", options.listen))
        })?;
        let address = listener.local_addr().map_err(broken)?;
        if !address.ip().is_loopback() {
            print_stderr(
                "Warning: others can reach this address, and what they send and get is not encrypted.",
            );
        }
        let listening =
            json!({"type": "listening", "url": format!("http://{address}"), "tokenFile": token_file});
        // Nobody has to read it.
        let _ = output.sender().send(OutputChunk::Out(format!("{listening}\n").into_bytes())).await;
        let front = Front {
            token,
            address,
            choice: options.choice,
            notices: output.sender(),
            permits: Arc::new(Semaphore::new(options.max_requests.into())),
            runs: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let connections = usize::from(options.max_requests) + MORE_CONNECTIONS;
        accept(listener, Arc::new(front), connections, signals).await;
        Ok(Exit::Answered)
    });
    // The thread of the output may wait for others.
    runtime.shutdown_background();
    served
}

/// Takes connections until a signal, and then waits for the runs to stop.
async fn accept(listener: TcpListener, front: Arc<Front>, connections: usize, mut signals: Signals) {
    let room = Arc::new(Semaphore::new(connections));
    loop {
        let next = async {
            // Waiting connections stay in the queue of the system.
            let permit = room.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            biased;
            _ = signals.next() => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let front = front.clone();
                tokio::spawn(async move {
                    front.talk(stream).await;
                    drop(permit);
                });
            }
            Err(error) => {
                print_stderr(&format!("agentctl: cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    front.stop.cancel();
    front.runs.close();
    tokio::select! {
        _ = timeout(STOP_TIMEOUT, front.runs.wait()) => {}
        // A second signal does not wait.
        _ = signals.next() => {}
    }
}

/// What all connections share.
struct Front {
    token: Token,
    address: SocketAddr,
    choice: DaemonChoice,
    /// Where warnings go, and what an agentd of our own says.
    notices: mpsc::Sender<OutputChunk>,
    permits: Arc<Semaphore>,
    runs: TaskTracker,
    stop: CancellationToken,
}

type Events = mpsc::Receiver<Bytes>;

impl Front {
    async fn talk(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request| {
            let front = self.clone();
            async move {
                let response = match front.answer(request).await {
                    Ok(Answer::Healthy) => healthy().map(Either::Left),
                    Ok(Answer::Events(events)) => stream_of(events).map(Either::Right),
                    Err(refusal) => refusal.response().map(Either::Left),
                };
                Ok::<_, Infallible>(response)
            }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        // A connection that breaks has nobody to tell. Its run hears of it by the end of its events.
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Refusal> {
        match (request.uri().path(), request.method()) {
            ("/health", &Method::GET) => return Ok(Answer::Healthy),
            ("/health", _) => return Err(Refusal::method_not_allowed("GET")),
            ("/prompt", &Method::POST) => {}
            ("/prompt", _) => return Err(Refusal::method_not_allowed("POST")),
            _ => return Err(Refusal::not_found()),
        }
        self.check_origin(&request)?;
        let authorization = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        if !authorization.is_some_and(|value| self.token.is_in(value)) {
            return Err(Refusal::unauthorized());
        }
        let body = Limited::new(request.into_body(), DEFAULT_MAX_LINE_BYTES).collect();
        let body = timeout(BODY_TIMEOUT, body).await.map_err(|_| Refusal::too_slow())?;
        let body = body.map_err(|_| Refusal::unreadable_body(DEFAULT_MAX_LINE_BYTES))?.to_bytes();
        let prompt = PromptRequest::parse(&body).map_err(Refusal::bad_request)?;
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| Refusal::busy())?;
        let (reply, begun) = oneshot::channel();
        let front = self.clone();
        // A task of its own: the answer may be dropped at any time, and what has begun still has to be stopped then.
        self.runs.spawn(async move {
            match Run::begin(prompt, front.choice, &front.notices).await {
                Ok(run) => {
                    let (sender, events) = run::channel();
                    // A client that has left is seen by its events, which nobody takes then.
                    let _ = reply.send(Ok(events));
                    run.follow(sender, front.stop.clone()).await;
                }
                Err(refusal) => drop(reply.send(Err(refusal))),
            }
            drop(permit);
        });
        begun.await.map_err(|_| Refusal::broken("The run broke down"))?.map(Answer::Events)
    }

    /// Refuses what pages in a browser can send: they name their origin, or reach a loopback address by another name.
    fn check_origin(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        if request.headers().contains_key(ORIGIN) {
            return Err(Refusal::forbidden("Pages in browsers are not served"));
        }
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if self.address.ip().is_loopback() && !is_loopback_name(host) {
            return Err(Refusal::forbidden("The header Host names another machine"));
        }
        Ok(())
    }
}

enum Answer {
    Healthy,
    Events(Events),
}

/// Whether the value of a header `Host` is this machine, with or without a port.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "[::1]") || name.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
}

fn healthy() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("{\"status\":\"ok\"}"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn stream_of(events: Events) -> Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>> {
    let mut response = Response::new(run::body(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine() {
        for host in ["localhost", "localhost:80", "127.0.0.1:8091", "127.1.2.3", "[::1]", "[::1]:80"] {
            assert!(is_loopback_name(host), "{host}");
        }
        for host in
            ["", "example.com", "localhost.example.com", "127.0.0.1.example.com:80", "10.0.0.1", "::1"]
        {
            assert!(!is_loopback_name(host), "{host}");
        }
    }
}
