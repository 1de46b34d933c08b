//! Makes a [`Provider`] of an [`Adapter`]: sends the request, feeds the body to the decoder, streams the deltas.

use std::sync::Arc;

use agentd_memory::{MemoryAccount, MemoryPurpose, MemoryRefused, MemoryReservation};
use agentd_protocol::model::Model;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;

use super::{
    BodyDecoder, HttpExchange, Redactor, Server,
    adapter::{Adapter, OutgoingRequest, unwritable},
    answer::HttpAnswer,
    decoder::AFTER_CONTENT_TIMEOUT,
};
use crate::{
    BlockKind, CredentialRenewer, Delta, DeltaStream, ExchangeHook, ExchangeStage, Provider,
    RenewedCredentials, Request, Stall,
    failure::{Failure, FailureKind},
    record_replay::{ExchangeInfo, Transport},
};

/// One byte of this many received counts as kept by the decoder, besides the deltas.
const KEPT_PART: usize = 8;

/// The memory of a block without its text, in bytes.
const BLOCK_BYTES: usize = 256;

/// A [`Provider`] over an [`Adapter`].
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
            let watched = request.hooks.as_ref().map(|hook| (hook.clone(), Arc::clone(&request.model)));
            let mut asking = Box::pin(ask(&*adapter, request, &transport, stalls, cancel.clone()));
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
            let (mut answer, decoder) = match asked {
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
            let mut decoder = BodyDecoder::new(answer.server().clone(), decoder);
            let watched = watched.filter(|(hook, _)| hook.wanting(ExchangeStage::StreamEvent).is_some());
            if watched.is_some() {
                decoder.keep_events();
            }
            let mut deltas = Vec::new();
            let mut taken = MemoryCharge::new(&transport.memory);
            while !decoder.is_finished() {
                let timeout = decoder.has_all_content().then_some(AFTER_CONTENT_TIMEOUT);
                match answer.chunk(timeout).await {
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
                if let Some((hook, model)) = &watched {
                    for event in decoder.take_events() {
                        let Ok(data) = serde_json::from_str(&event) else { continue };
                        // An aborted exchange says so by itself.
                        let _ = cancel.run_until_cancelled(hook.0.stream_event(model, data)).await;
                    }
                }
                if decoder.is_finished() {
                    // Before the last delta: its receiver may not poll the stream again.
                    answer.was_read().await;
                    if let Some(Delta::Done { .. }) = deltas.last() {
                        answer.finish();
                    }
                }
                for delta in deltas.drain(..) {
                    if let Delta::Failed { failure, .. } = &delta && let Some(stall) = failure.stall {
                        yield Delta::Stalled(stall);
                    }
                    yield delta;
                }
            }
        })
    }
}

/// The memory that is charged to an answer while it runs.
struct MemoryCharge {
    reservation: MemoryReservation,
    bytes: u64,
}

impl MemoryCharge {
    fn new(memory: &MemoryAccount) -> Self {
        Self { reservation: memory.open(MemoryPurpose::Answers), bytes: 0 }
    }

    /// Charges `received` bytes, which were decoded as `deltas`, and of which `held` are kept until more has come.
    fn add(&mut self, received: usize, deltas: &[Delta], held: usize) -> Result<(), MemoryRefused> {
        let of_deltas: usize = deltas.iter().map(size).sum();
        // Decoders keep a part of what they read, too: most of it is names and brackets, which they drop.
        self.bytes += (of_deltas + received / KEPT_PART) as u64;
        self.reservation.grow_to(self.bytes + held as u64)
    }
}

/// The memory that a delta adds to an answer, in bytes.
fn size(delta: &Delta) -> usize {
    match delta {
        Delta::Extend { delta, .. } => delta.len(),
        Delta::Open { .. } => BLOCK_BYTES,
        Delta::Seal { seal, .. } => seal.signature.as_ref().map_or(0, String::len),
        _ => 0,
    }
}

/// The failure of an answer that gets no more memory. Fatal, since the same answer would come again.
fn no_memory(answer: &HttpAnswer, refused: MemoryRefused) -> Failure {
    let message =
        format!("The answer of {} was given up: {refused}. {}", answer.server().host, refused.hint());
    Failure::new(FailureKind::Fatal, message)
}

/// Whether a delta carries content of the model, and not only keeps the connection alive or counts tokens.
fn is_content(delta: &Delta) -> bool {
    match delta {
        Delta::Extend { delta, .. } => !delta.is_empty(),
        // Some APIs open a text block with its first, perhaps empty, piece.
        Delta::Open { kind, .. } => matches!(kind, BlockKind::ToolCall { .. }),
        Delta::Seal { .. } | Delta::Done { .. } => true,
        _ => false,
    }
}

/// Sends a request until an answer begins. Refused credentials are renewed once, if possible: a provider does nothing for a request with a
/// bad key, so it may be sent again.
async fn ask<A: Adapter>(
    adapter: &A,
    mut request: Request,
    transport: &Transport,
    stalls: UnboundedSender<Stall>,
    cancel: CancellationToken,
) -> Result<(HttpAnswer, A::Decoder), Failure> {
    let hook = request.hooks.take();
    // What the provider refuses is renewed without what the hooks made of it.
    let credentials = request.renew.as_ref().map(|_| request.credentials.clone());
    unless_aborted(&cancel, hook_headers(hook.as_ref(), &mut request)).await?;
    let (post, decoder) = prepare(adapter, &request, stalls.clone(), cancel.clone())?;
    let Some(CredentialRenewer(renew)) = request.renew.take() else {
        // The body holds the transcript now: free the transcript before the answer comes.
        drop(request);
        return Ok((send(post, hook.as_ref(), transport, &cancel).await?, decoder));
    };
    let refused = match send(post, hook.as_ref(), transport, &cancel).await {
        Ok(answer) => return Ok((answer, decoder)),
        Err(failure) if failure.kind == FailureKind::Auth => failure,
        Err(failure) => return Err(failure),
    };
    let renewed = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Failure::aborted()),
        renewed = renew.renew(credentials.as_ref().unwrap_or(&request.credentials)) => renewed,
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
            unless_aborted(&cancel, hook_headers(hook.as_ref(), &mut request)).await?;
            let (post, decoder) = prepare(adapter, &request, stalls, cancel.clone())?;
            drop(request);
            let answer =
                send(post, hook.as_ref(), transport, &cancel).await.map_err(|failure| {
                    match failure.kind {
                        FailureKind::Auth => {
                            Failure { message: format!("{} {advice}", failure.message), ..failure }
                        }
                        _ => failure,
                    }
                })?;
            Ok((answer, decoder))
        }
    }
}

async fn hook_headers(hook: Option<&ExchangeHook>, request: &mut Request) {
    if let Some(hooks) = hook.and_then(|hook| hook.wanting(ExchangeStage::Headers)) {
        let headers = std::mem::take(&mut request.credentials.headers);
        request.credentials.headers = hooks.headers(headers).await;
    }
}

/// Sends a request, which the hooks see before and after.
async fn send(
    mut post: Box<HttpExchange>,
    hook: Option<&ExchangeHook>,
    transport: &Transport,
    cancel: &CancellationToken,
) -> Result<HttpAnswer, Failure> {
    if let Some(hooks) = hook.and_then(|hook| hook.wanting(ExchangeStage::Payload))
        && let Ok(payload) = serde_json::from_slice(&post.body)
        && let Some(payload) = unless_aborted(cancel, hooks.payload(payload)).await?
    {
        post.body = serde_json::to_vec(&payload).map_err(|error| unwritable(&error))?.into();
    }
    let answer = post.send(transport).await?;
    if let Some(hooks) = hook.and_then(|hook| hook.wanting(ExchangeStage::Response)) {
        let headers = answer.headers.iter();
        let shown =
            headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()));
        let told = hooks.response(answer.status.as_u16(), shown.collect());
        unless_aborted(cancel, told).await?;
    }
    Ok(answer)
}

async fn unless_aborted<T>(cancel: &CancellationToken, asked: impl Future<Output = T>) -> Result<T, Failure> {
    cancel.run_until_cancelled(asked).await.ok_or_else(Failure::aborted)
}

fn prepare<A: Adapter>(
    adapter: &A,
    request: &Request,
    stalls: UnboundedSender<Stall>,
    cancel: CancellationToken,
) -> Result<(Box<HttpExchange>, A::Decoder), Failure> {
    let OutgoingRequest { url, headers, body, sign } = adapter.outgoing(request)?;
    let network = request.network.iter().flat_map(|network| network.secrets());
    let redactor = Redactor::new(&request.credentials, &url).and(network);
    let server = Server::new(&url, request.model.provider.clone(), redactor);
    let about = ExchangeInfo {
        api: request.model.api.clone(),
        provider: request.model.provider.clone(),
        model: request.model.id.clone(),
        base_url: request.model.base_url.clone(),
        account: request.credentials.account.clone(),
        session: request.session_id.clone(),
        definition: Some(Arc::clone(&request.model)),
    };
    let decoder = adapter.decoder(request, server.clone());
    // Boxed, since each future on its way would hold it.
    let post = Box::new(HttpExchange {
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
    });
    Ok((post, decoder))
}
