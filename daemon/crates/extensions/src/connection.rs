//! Our side of the connection with a host: requests with their deadlines, and the order of everything that is sent.
//!
//! A [`HostConnection`] knows nothing of processes: lines go out through a queue and come in by [`HostConnection::settle`] and
//! [`HostConnection::partial`]. What is sent first is read first: a patch of a mirror before a hook is known to the hook. That holds for the
//! channels of a connection, too, which share its queue.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{Notify, mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    host_output::HostOutput,
    record::{self, HostCall, HostFailure},
};

/// Bytes that a host has not read, from which on new requests wait: 8 MiB.
const MAX_UNSENT: usize = 8 << 20;

/// Takes the results of a tool so far, while they are read: must not wait.
pub(crate) type PartialSink = Box<dyn Fn(Value) + Send + Sync>;

/// Takes the calls of a host about one of our requests, while they are read: must not wait.
pub(crate) type CallServer = Arc<dyn Fn(ServedCall) + Send + Sync>;

/// A call of a host about one of our requests. Dropped without an answer, it says that nobody answers.
pub(crate) struct ServedCall {
    pub(crate) method: String,
    pub(crate) params: Value,
    connection: HostConnection,
    id: u64,
    is_answered: bool,
    /// The clock of the request stands still until then.
    _within: CallWithin,
}

impl ServedCall {
    pub(crate) fn answer(mut self, outcome: &Result<Value, HostFailure>) {
        self.is_answered = true;
        self.connection.answer(self.id, outcome);
    }
}

impl Drop for ServedCall {
    fn drop(&mut self) {
        if !self.is_answered {
            let failure = HostFailure::new("gone", "Nobody answers this call any more.");
            self.connection.answer(self.id, &Err(failure));
        }
    }
}

/// Our side of a connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HostConnection(Arc<ConnectionState>);

struct ConnectionState {
    next_id: AtomicU64,
    open: Mutex<OpenRequests>,
    outgoing: Outgoing,
    /// Bytes that were not written yet.
    unsent: AtomicUsize,
    room: Notify,
    /// Who takes the records of each channel.
    channels: Mutex<HashMap<u64, Arc<dyn HostOutput>>>,
    /// Fires with the end of the connection.
    over: CancellationToken,
}

/// Where lines go.
enum Outgoing {
    /// To the process, in their turn.
    Queue(mpsc::UnboundedSender<Vec<u8>>),
    /// Into the queue of the connection that the channel is in.
    Channel { within: HostConnection, number: u64 },
}

#[derive(Default)]
struct OpenRequests {
    requests: HashMap<u64, OpenRequest>,
    /// Why the connection has ended, once it has.
    closed: Option<Arc<str>>,
}

struct OpenRequest {
    answer: oneshot::Sender<Result<Box<RawValue>, RequestError>>,
    partials: Option<PartialSink>,
    served: Option<CallServer>,
    is_stream: bool,
    clock: Arc<RequestClock>,
    command: Option<u64>,
}

/// Stops the clock of a request while the host waits for something of ours.
#[derive(Default)]
struct RequestClock {
    /// Calls of the host within the request that are not answered.
    calls: AtomicUsize,
    changed: Notify,
}

/// Why a request has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The extension failed.
    #[error("{0}")]
    Failed(HostFailure),
    /// The host is gone: why.
    #[error("{0}")]
    Gone(Arc<str>),
    /// The host has ended, and is started again.
    #[error("its extension host is restarting")]
    Restarting,
    /// The time was over.
    #[error("no answer in time")]
    Late,
}

/// The terms of a request.
#[derive(Default)]
pub(crate) struct RequestTerms<'a> {
    /// The time for an answer. It stands still while the host waits for a call of its own.
    pub(crate) limit: Option<Duration>,
    /// Asks the host to stop; the answer is waited for `grace` longer.
    pub(crate) cancel: Option<&'a CancellationToken>,
    /// See `cancel`.
    pub(crate) grace: Duration,
    /// Takes the results of a tool so far, or the events of a stream.
    pub(crate) partials: Option<PartialSink>,
    /// Serves calls of the host about this request.
    pub(crate) served: Option<CallServer>,
    /// The session's number of the command that runs, where it is one.
    pub(crate) command: Option<u64>,
}

/// Lines that are to be written.
pub(crate) struct OutgoingLines(mpsc::UnboundedReceiver<Vec<u8>>);

/// Takes back a request whose caller has left.
struct OpenGuard<'a> {
    connection: &'a HostConnection,
    id: u64,
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        if self.connection.lock().requests.remove(&self.id).is_some() {
            self.connection.cancel(self.id);
        }
    }
}

/// A call of the host within one of our requests, until it is answered.
pub(crate) struct CallWithin(Option<Arc<RequestClock>>);

impl Drop for CallWithin {
    fn drop(&mut self) {
        if let Some(clock) = &self.0 {
            clock.calls.fetch_sub(1, Ordering::Relaxed);
            clock.changed.notify_one();
        }
    }
}

impl HostConnection {
    /// A connection, and the lines that are to be written.
    pub(crate) fn new() -> (Self, OutgoingLines) {
        let (outgoing, lines) = mpsc::unbounded_channel();
        (Self::with(Outgoing::Queue(outgoing)), OutgoingLines(lines))
    }

    /// A connection within this one: its records travel as the `record` of `channel` records.
    pub(crate) fn channel(&self, number: u64) -> Self {
        Self::with(Outgoing::Channel { within: self.clone(), number })
    }

    fn with(outgoing: Outgoing) -> Self {
        Self(Arc::new(ConnectionState {
            next_id: AtomicU64::new(1),
            open: Mutex::default(),
            outgoing,
            unsent: AtomicUsize::new(0),
            room: Notify::new(),
            channels: Mutex::default(),
            over: CancellationToken::new(),
        }))
    }

    /// Leads the records of a channel there. False where another has that number, or the connection has ended.
    pub(crate) fn lead_channel(&self, number: u64, output: Arc<dyn HostOutput>) -> bool {
        // In this order: a connection that ends afterwards tells its channels.
        let mut channels = self.channels();
        if self.closed().is_some() || channels.contains_key(&number) {
            return false;
        }
        channels.insert(number, output);
        true
    }

    /// Nobody takes the records of a channel any more.
    pub(crate) fn forget_channel(&self, number: u64) {
        self.channels().remove(&number);
    }

    /// A record of a channel has come. One of a channel that nobody has is passed over: it has been closed.
    pub(crate) fn channel_record(&self, number: u64, record: &RawValue) {
        let output = self.channels().get(&number).cloned();
        if let Some(output) = output {
            output.record(record.get().to_owned());
        }
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<u64, Arc<dyn HostOutput>>> {
        // No method panics halfway.
        self.0.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its value. A caller that leaves takes the request back.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(crate) async fn request(
        &self,
        kind: &'static str,
        fields: &impl Serialize,
        terms: RequestTerms<'_>,
    ) -> Result<Box<RawValue>, RequestError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let line = record::request(id, kind, fields)
            .map_err(|error| RequestError::Failed(HostFailure::new("invalid", error.to_string())))?;
        self.room().await;
        let (answer, mut answered) = oneshot::channel();
        let clock = Arc::<RequestClock>::default();
        {
            let mut open = self.lock();
            if let Some(reason) = &open.closed {
                return Err(RequestError::Gone(Arc::clone(reason)));
            }
            let request = OpenRequest {
                answer,
                partials: terms.partials,
                served: terms.served,
                is_stream: kind == "provider.stream",
                clock: Arc::clone(&clock),
                command: terms.command,
            };
            open.requests.insert(id, request);
        }
        let _guard = OpenGuard { connection: self, id };
        self.send(line);
        let mut left = terms.limit;
        let mut cancel = terms.cancel;
        loop {
            let begun = Instant::now();
            // While the host waits for us, the time stands still.
            let deadline = left.filter(|_| clock.calls.load(Ordering::Relaxed) == 0).map(|left| begun + left);
            tokio::select! {
                biased;
                answer = &mut answered => {
                    return answer.unwrap_or_else(|_| Err(RequestError::Gone(self.closed_reason())));
                }
                () = cancelled(cancel) => {
                    self.cancel(id);
                    (cancel, left) = (None, Some(terms.grace));
                    continue;
                }
                () = clock.changed.notified() => {}
                () = until(deadline) => return Err(RequestError::Late),
            }
            if deadline.is_some() {
                left = left.map(|left| left.saturating_sub(begun.elapsed()));
            }
        }
    }

    /// Sends a note. It is written in its turn, however much waits.
    pub(crate) fn note(&self, kind: &str, fields: &impl Serialize) {
        match record::note(kind, fields) {
            Ok(line) => self.send(line),
            Err(error) => tracing::error!(%error, kind, "cannot write a record for extensions"),
        }
    }

    /// Answers a call of the host.
    pub(crate) fn answer(&self, id: u64, outcome: &Result<Value, HostFailure>) {
        match record::result(id, outcome) {
            Ok(line) => self.send(line),
            Err(error) => tracing::error!(%error, "cannot write an answer for extensions"),
        }
    }

    /// A call of the host within one of our requests: its clock stands still until the returned value is dropped. Tells the number of
    /// the command that the request runs, too.
    pub(crate) fn call_within(&self, request: Option<u64>) -> (CallWithin, Option<u64>) {
        let open = self.lock();
        let Some(request) = request.and_then(|id| open.requests.get(&id)) else {
            return (CallWithin(None), None);
        };
        request.clock.calls.fetch_add(1, Ordering::Relaxed);
        request.clock.changed.notify_one();
        (CallWithin(Some(Arc::clone(&request.clock))), request.command)
    }

    /// Whether an open request is one for a model's answer.
    pub(crate) fn is_stream(&self, request: Option<u64>) -> bool {
        let open = self.lock();
        request.and_then(|id| open.requests.get(&id)).is_some_and(|request| request.is_stream)
    }

    /// The result of a request has come.
    pub(crate) fn settle(&self, id: u64, outcome: Result<Box<RawValue>, HostFailure>) {
        let open = self.lock().requests.remove(&id);
        match open {
            // The caller may have left.
            Some(open) => drop(open.answer.send(outcome.map_err(RequestError::Failed))),
            None => tracing::debug!(id, "a host answered a request that is not open"),
        }
    }

    /// The result so far of a tool that a request runs has come.
    pub(crate) fn partial(&self, id: u64, partial: Value) {
        let open = self.lock();
        if let Some(sink) = open.requests.get(&id).and_then(|request| request.partials.as_ref()) {
            sink(partial);
        }
    }

    /// Lets a request serve a call about itself, which names it as `call`. Gives the call back where there is no such request.
    pub(crate) fn serve_within(&self, call: HostCall) -> Option<HostCall> {
        if !call.method.starts_with("provider.") && !call.method.starts_with("oauth.") {
            return Some(call);
        }
        let served = {
            let open = self.lock();
            let request = call.params["call"].as_u64().and_then(|id| open.requests.get(&id));
            request.and_then(|request| request.served.clone())
        };
        let Some(served) = served else { return Some(call) };
        let HostCall { id, method, params, within, .. } = call;
        let (within, _) = self.call_within(within);
        served(ServedCall {
            method,
            params,
            connection: self.clone(),
            id,
            is_answered: false,
            _within: within,
        });
        None
    }

    /// Ends every open request, and those to come. The first reason counts.
    pub(crate) fn close(&self, reason: &str) {
        let mut open = self.lock();
        let reason = Arc::clone(open.closed.get_or_insert_with(|| reason.into()));
        for (_, request) in open.requests.drain() {
            // The caller may have left.
            let _ = request.answer.send(Err(RequestError::Gone(Arc::clone(&reason))));
        }
        drop(open);
        self.0.room.notify_waiters();
        self.0.over.cancel();
    }

    /// Fires with the end of the connection.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.0.over
    }

    /// Why the connection has ended, if it has.
    pub(crate) fn closed(&self) -> Option<Arc<str>> {
        self.lock().closed.clone()
    }

    fn closed_reason(&self) -> Arc<str> {
        self.closed().unwrap_or_else(|| "the extension host has ended".into())
    }

    fn cancel(&self, id: u64) {
        self.note("cancel", &serde_json::json!({"id": id}));
    }

    fn send(&self, line: Vec<u8>) {
        match &self.0.outgoing {
            Outgoing::Queue(queue) => {
                self.0.unsent.fetch_add(line.len(), Ordering::Relaxed);
                // Without a writer the connection is closed, and nobody waits for this.
                let _ = queue.send(line);
            }
            Outgoing::Channel { within, number } => within.send(record::in_channel(*number, &line)),
        }
    }

    /// Waits until the host has read most of what was sent.
    pub(crate) async fn room(&self) {
        let process = self.of_process();
        loop {
            let mut room = pin!(process.0.room.notified());
            // Before the look, so that no notice is missed between the two.
            room.as_mut().enable();
            if process.0.unsent.load(Ordering::Relaxed) < MAX_UNSENT || process.closed().is_some() {
                return;
            }
            room.await;
        }
    }

    /// The connection with the process, of a channel too.
    fn of_process(&self) -> &Self {
        let mut connection = self;
        while let Outgoing::Channel { within, .. } = &connection.0.outgoing {
            connection = within;
        }
        connection
    }

    fn lock(&self) -> MutexGuard<'_, OpenRequests> {
        // No method panics halfway.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines until the connection is over or the host takes no more.
    pub(crate) async fn write(
        &self,
        mut lines: OutgoingLines,
        mut input: impl AsyncWrite + Unpin,
        over: &CancellationToken,
    ) {
        let writing = async {
            let mut batch = Vec::new();
            while let Some(line) = lines.0.recv().await {
                batch.extend(line);
                while batch.len() < MAX_BATCH {
                    let Ok(line) = lines.0.try_recv() else { break };
                    batch.extend(line);
                }
                let written = input.write_all(&batch).await;
                self.0.unsent.fetch_sub(batch.len(), Ordering::Relaxed);
                self.0.room.notify_waiters();
                batch.clear();
                batch.shrink_to(MAX_BATCH);
                if let Err(error) = written {
                    // A host that has ended is noticed by its end.
                    tracing::debug!(%error, "cannot write to an extension host");
                    return;
                }
            }
        };
        over.run_until_cancelled(writing).await;
    }
}

/// Bytes that are written at once.
const MAX_BATCH: usize = 64 << 10;

async fn cancelled(cancel: Option<&CancellationToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
