//! Makes a [`Provider`] of an [`Adapter`]: sends the request, feeds the body to the decoder, streams the deltas.

use std::sync::Arc;

use agentd_memory::{MemoryAccount, MemoryPurpose, MemoryRefused, MemoryReservation};
use agentd_protocol::model::Model;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;

use super::{
    BodyDecoder, HttpExchange, Redactor, Server,
    adapter::{Adapter, OutgoingRequest},
    answer::HttpAnswer,
    decoder::AFTER_CONTENT_TIMEOUT,
};
use crate::{
    BlockKind, CredentialRenewer, Delta, DeltaStream, Provider, RenewedCredentials, Request, Stall,
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
    let (post, decoder) = prepare(adapter, &request, stalls.clone(), cancel.clone())?;
    let Some(CredentialRenewer(renew)) = request.renew.take() else {
        // The body holds the transcript now: free the transcript before the answer comes.
        drop(request);
        return Ok((post.send(transport).await?, decoder));
    };
    let refused = match post.send(transport).await {
        Ok(answer) => return Ok((answer, decoder)),
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
            let (post, decoder) = prepare(adapter, &request, stalls, cancel)?;
            drop(request);
            let answer = post.send(transport).await.map_err(|failure| match failure.kind {
                FailureKind::Auth => Failure { message: format!("{} {advice}", failure.message), ..failure },
                _ => failure,
            })?;
            Ok((answer, decoder))
        }
    }
}

fn prepare<A: Adapter>(
    adapter: &A,
    request: &Request,
    stalls: UnboundedSender<Stall>,
    cancel: CancellationToken,
) -> Result<(HttpExchange, A::Decoder), Failure> {
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
    let post = HttpExchange {
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
    Ok((post, decoder))
}
