//! What an adapter of an HTTP API has to say of itself; the rest is the same for all of them.

use std::{sync::Arc, time::SystemTime};

use agentd_memory::{MemoryAccount, MemoryPurpose, MemoryRefused, MemoryReservation};
use agentd_protocol::{message::StopReason, model::Model};
use bytes::Bytes;
use reqwest::{Url, header::HeaderMap};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;

use crate::{
    BlockKind, CredentialRenewer, Delta, DeltaStream, Provider, RenewedCredentials, Request, Stall,
    failure::{Failure, FailureKind},
    http::{Decoder, Post, Redactor, Server, answer::Answer, decoder::PATIENCE},
    record_replay::{About, Transport},
};

/// What part of the bytes of an answer counts as kept by its adapter.
const KEPT_PART: usize = 8;

/// What a block of an answer takes without its text, in bytes.
const BLOCK_BYTES: usize = 256;

/// Speaks one HTTP API: writes requests, and knows what reads the answers.
pub(crate) trait Adapter: Send + Sync + 'static {
    /// Reads one answer.
    type Wire: Wire + Send;

    /// The HTTP request for `request`.
    ///
    /// # Errors
    /// Says what cannot be sent, without secrets.
    fn outgoing(&self, request: &Request) -> Result<Outgoing, Failure>;

    /// The reader for the answer of `server` to `request`.
    fn wire(&self, request: &Request, server: Server) -> Self::Wire;

    /// What says in the provider's own terms what a refusal means; `None` where the usual text always will do.
    fn explain(&self) -> Option<Explain> {
        None
    }
}

/// The failure's text for the status and the body of a refusal; `None` where the usual one will do.
pub(crate) type Explain = fn(status: u16, body: &str) -> Option<String>;

/// An HTTP request that is ready to be sent.
pub(crate) struct Outgoing {
    /// Where to.
    pub(crate) url: Url,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// Signs each attempt, where the API wants that.
    pub(crate) sign: Option<Signer>,
}

/// Adds the headers to an attempt that depend on its time and on all else of it, such as a signature. The time is the one
/// of the provider's clock, as far as that is known.
pub(crate) type Signer =
    Box<dyn Fn(&Url, &mut HeaderMap, &[u8], SystemTime) -> Result<(), Failure> + Send + Sync>;

/// Why there is no body.
pub(crate) fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::new(FailureKind::Fatal, format!("The request cannot be written as JSON: {error}"))
}

/// Reads the events of one answer: pure, no I/O. It never emits `Delta::Started`, `Done` or `Failed` itself.
pub(crate) trait Wire {
    /// How the events of an answer are told apart.
    const FRAMING: Framing = Framing::Text;

    /// Takes one event. `name` is empty unless the event has one; `data` is trimmed, not empty and not `[DONE]`.
    ///
    /// # Errors
    /// Fails when the data is not the JSON that it should be; the answer is given up then.
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error>;

    /// Takes a failure that the framing itself marks as one ([`Framing::AwsEventStream`] does): its name, and what it says,
    /// as JSON or as text.
    fn exception(&mut self, name: &str, data: &str, server: &Server) -> Step {
        let text = format!("{name}: {data}");
        Step::failed(server.failure(FailureKind::Fatal, text))
    }

    /// Takes an answer that came as one JSON value instead of a stream: everything that [`Wire::event`] and
    /// [`Wire::end`] would do for the streamed form, error bodies included.
    ///
    /// # Errors
    /// Fails when the value is no answer of this API.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error>;

    /// The stream has ended (or said `[DONE]`) and no event has ended the answer. Never [`Step::More`].
    fn end(&mut self, out: &mut Vec<Delta>) -> Step;

    /// Seals every block that is still open. `incomplete` says that the answer broke off.
    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>);

    /// Whether the model has ended its answer, and only what is not worth failing for may still come.
    fn has_all_content(&self) -> bool {
        false
    }
}

/// How the events of an answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Text,
    /// AWS's binary event streams.
    AwsEventStream,
}

/// What an event means for the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// It goes on.
    More,
    /// It is complete. Blocks that are still open are sealed after this, by [`Wire::seal`].
    Done {
        /// `Stop`, `Length` or `ToolUse`.
        stop_reason: StopReason,
        /// The same in the provider's words.
        raw_stop_reason: Option<String>,
    },
    /// It failed. Blocks that are still open are sealed after this.
    Failed {
        /// Why.
        failure: Failure,
        /// The stop reason in the provider's words, where there was one.
        raw_stop_reason: Option<String>,
    },
}

impl Step {
    /// A failure without a stop reason.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Failed { failure, raw_stop_reason: None }
    }
}

/// Makes a [`Provider`] of an [`Adapter`].
pub(crate) struct HttpProvider<A> {
    transport: Arc<Transport>,
    adapter: Arc<A>,
}

impl<A: Adapter> HttpProvider<A> {
    pub(crate) fn new(transport: Arc<Transport>, adapter: A) -> Self {
        Self { transport, adapter: Arc::new(adapter) }
    }
}

impl<A: Adapter> Provider for HttpProvider<A> {
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream {
        let transport = Arc::clone(&self.transport);
        let adapter = Arc::clone(&self.adapter);
        Box::pin(async_stream::stream! {
            let (stalls, mut stalled) = mpsc::unbounded_channel();
            let mut asking = Box::pin(ask(&*adapter, request, &transport, stalls, cancel));
            let asked = loop {
                let next = tokio::select! {
                    biased;
                    Some(stall) = stalled.recv() => Err(stall),
                    asked = &mut asking => Ok(asked),
                };
                match next {
                    Ok(asked) => break asked,
                    Err(stall) => yield Delta::Stalled(stall),
                }
            };
            drop(asking);
            while let Ok(stall) = stalled.try_recv() {
                yield Delta::Stalled(stall);
            }
            let (mut answer, wire) = match asked {
                Ok(asked) => asked,
                Err(failure) => {
                    if let Some(stall) = failure.stall {
                        yield Delta::Stalled(stall);
                    }
                    yield Delta::Failed { failure, raw_stop_reason: None };
                    return;
                }
            };
            yield Delta::Started;
            let mut decoder = Decoder::new(answer.server().clone(), wire);
            let mut deltas = Vec::new();
            let mut taken = Taken::new(&transport.memory);
            while !decoder.is_finished() {
                let patience = decoder.has_all_content().then_some(PATIENCE);
                match answer.chunk(patience).await {
                    Ok(Some(bytes)) => {
                        decoder.feed(&bytes, &mut deltas);
                        if let Err(refused) = taken.add(bytes.len(), &deltas, decoder.held_bytes()) {
                            decoder.fail(no_memory(&answer, refused), &mut deltas);
                        }
                        if decoder.is_whole() || deltas.iter().any(is_content) {
                            answer.progressed();
                        }
                    }
                    Ok(None) => decoder.end(&mut deltas),
                    Err(failure) => decoder.fail(failure, &mut deltas),
                }
                if decoder.is_finished() {
                    // Before the last delta: whoever gets it may look no further.
                    answer.was_read().await;
                }
                for delta in deltas.drain(..) {
                    if let Delta::Failed { failure, .. } = &delta && let Some(stall) = failure.stall {
                        yield Delta::Stalled(stall);
                    }
                    yield delta;
                }
            }
            answer.finish();
        })
    }
}

/// What an answer takes of memory while it runs.
struct Taken {
    reservation: MemoryReservation,
    bytes: u64,
}

impl Taken {
    fn new(memory: &MemoryAccount) -> Self {
        Self { reservation: memory.open(MemoryPurpose::Answers), bytes: 0 }
    }

    /// Charges what came: `received` bytes, which were read as `deltas`, and of which `held` are kept until more has come.
    fn add(&mut self, received: usize, deltas: &[Delta], held: usize) -> Result<(), MemoryRefused> {
        let of_deltas: usize = deltas.iter().map(size).sum();
        // Adapters keep some of what they read, too: less than all, as most of it is names and brackets.
        self.bytes += (of_deltas + received / KEPT_PART) as u64;
        self.reservation.grow_to(self.bytes + held as u64)
    }
}

/// What a delta adds to an answer, in bytes.
fn size(delta: &Delta) -> usize {
    match delta {
        Delta::Extend { delta, .. } => delta.len(),
        Delta::Open { .. } => BLOCK_BYTES,
        Delta::Seal { seal, .. } => seal.signature.as_ref().map_or(0, String::len),
        _ => 0,
    }
}

/// Why an answer is given up that gets no more memory. Asking again would bring it again.
fn no_memory(answer: &Answer, refused: MemoryRefused) -> Failure {
    let message =
        format!("The answer of {} was given up: {refused}. {}", answer.server().host, refused.hint());
    Failure::new(FailureKind::Fatal, message)
}

/// Whether the model said something: what only keeps a connection alive, or counts, is not that.
fn is_content(delta: &Delta) -> bool {
    match delta {
        Delta::Extend { delta, .. } => !delta.is_empty(),
        // Blocks of text are opened by the first, perhaps empty, piece on some wires.
        Delta::Open { kind, .. } => matches!(kind, BlockKind::ToolCall { .. }),
        Delta::Seal { .. } | Delta::Done { .. } => true,
        _ => false,
    }
}

/// Sends a request until an answer begins. Credentials that are refused are renewed once, where that is possible: the provider
/// has done nothing for a request that it refused for its key.
async fn ask<A: Adapter>(
    adapter: &A,
    mut request: Request,
    transport: &Transport,
    stalls: UnboundedSender<Stall>,
    cancel: CancellationToken,
) -> Result<(Answer, A::Wire), Failure> {
    let (post, wire) = prepare(adapter, &request, stalls.clone(), cancel.clone())?;
    let Some(CredentialRenewer(renew)) = request.renew.take() else {
        // The transcript is in the body now; its memory need not wait for the answer.
        drop(request);
        return Ok((post.send(transport).await?, wire));
    };
    let refused = match post.send(transport).await {
        Ok(answer) => return Ok((answer, wire)),
        Err(failure) if failure.kind == FailureKind::Auth => failure,
        Err(failure) => return Err(failure),
    };
    let renewed = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Failure::aborted()),
        renewed = renew.renew(&request.credentials) => renewed,
    };
    match renewed {
        None => Err(refused),
        Some(Err(problem)) => {
            let message = format!("{} The credentials could not be renewed: {problem}", refused.message);
            Err(Failure::new(FailureKind::Auth, message))
        }
        Some(Ok(RenewedCredentials { credentials, base_url, advice })) => {
            tracing::info!(provider = request.model.provider, "refused credentials were renewed");
            request.credentials = credentials;
            if let Some(base_url) = base_url {
                request.model = Arc::new(Model { base_url, ..(*request.model).clone() });
            }
            let (post, wire) = prepare(adapter, &request, stalls, cancel)?;
            drop(request);
            let answer = post.send(transport).await.map_err(|failure| match failure.kind {
                FailureKind::Auth => Failure { message: format!("{} {advice}", failure.message), ..failure },
                _ => failure,
            })?;
            Ok((answer, wire))
        }
    }
}

fn prepare<A: Adapter>(
    adapter: &A,
    request: &Request,
    stalls: UnboundedSender<Stall>,
    cancel: CancellationToken,
) -> Result<(Post, A::Wire), Failure> {
    let Outgoing { url, headers, body, sign } = adapter.outgoing(request)?;
    let network = request.network.iter().flat_map(|network| network.secrets());
    let redactor = Redactor::new(&request.credentials, &url).and(network);
    let server = Server::new(&url, request.model.provider.clone(), redactor);
    let about = About {
        api: request.model.api.clone(),
        provider: request.model.provider.clone(),
        model: request.model.id.clone(),
        base_url: request.model.base_url.clone(),
        account: request.credentials.account.clone(),
        session: request.session_id.clone(),
        definition: Some(Arc::clone(&request.model)),
    };
    let wire = adapter.wire(request, server.clone());
    let post = Post {
        url,
        server,
        headers,
        body,
        sign,
        explain: adapter.explain(),
        idle_timeout: request.idle_timeout,
        deadlines: request.deadlines,
        network: request.network.clone(),
        stalls,
        about,
        retries: request.retries,
        cancel,
    };
    Ok((post, wire))
}
