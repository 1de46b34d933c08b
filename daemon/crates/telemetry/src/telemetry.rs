//! The telemetry of a daemon: what sessions report, and the tasks that send it.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use agentd_agent::observer::{Observers, SessionObserver};
use agentd_http::Network;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::TelemetryConfig,
    data::{Attributes, PointTimes, Resource, Span},
    encode,
    hub::{Hub, now_ns},
    metrics::{Metrics, ObservedNumber},
    queue::SpanQueue,
    record::SessionSpans,
    send::Sender,
};

/// Sends traces and metrics while it lives. Cheap to clone.
#[derive(Clone)]
pub struct Telemetry {
    hub: Arc<Hub>,
    stop: CancellationToken,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Telemetry {
    /// Starts to send. `instance` names this life of the daemon. Must be called within the runtime.
    #[must_use]
    pub fn start(config: TelemetryConfig, network: &Network, instance: &str) -> Self {
        let stop = CancellationToken::new();
        let (loaded, running, queue) = (Arc::default(), Arc::default(), Arc::new(SpanQueue::default()));
        let resource = Arc::new(resource(&config, instance));
        let hub = Arc::new(Hub { metrics: Metrics::default(), loaded, running, queue, config });
        observe_own(&hub);
        let sender =
            |url: &reqwest::Url| Sender::new(url.clone(), hub.config.clone(), network.clone(), stop.clone());
        let mut tasks = Vec::new();
        if let Some(sender) = hub.config.traces.as_ref().map(sender) {
            tasks.push(tokio::spawn(send_spans(
                Arc::clone(&hub),
                Arc::clone(&resource),
                sender,
                stop.clone(),
            )));
        }
        if let Some(sender) = hub.config.metrics.as_ref().map(sender) {
            tasks.push(tokio::spawn(send_metrics(Arc::clone(&hub), resource, sender, stop.clone())));
        }
        Self { hub, stop, tasks: Arc::new(Mutex::new(tasks)) }
    }

    /// Adds a number that is read with every export of metrics.
    pub fn observe(&self, number: ObservedNumber) {
        self.hub.metrics.observe(number);
    }

    /// Sends what waits, for at most `deadline`, and ends.
    pub async fn shut_down(&self, deadline: Duration) {
        self.stop.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let ends: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        if timeout(deadline, all).await.is_err() {
            ends.iter().for_each(tokio::task::AbortHandle::abort);
            tracing::warn!("the collector did not take the last telemetry in time");
        }
    }
}

impl Observers for Telemetry {
    fn session(&self, id: &str) -> Arc<dyn SessionObserver> {
        Arc::new(SessionSpans::new(Arc::clone(&self.hub), id))
    }
}

/// The metrics of telemetry itself, and those that are states.
fn observe_own(hub: &Arc<Hub>) {
    let (loaded, running, queue) =
        (Arc::clone(&hub.loaded), Arc::clone(&hub.running), Arc::clone(&hub.queue));
    hub.metrics.observe(ObservedNumber {
        name: "agentd.sessions.loaded",
        description: "Sessions in memory.",
        unit: "{session}",
        is_monotonic: false,
        read: Box::new(move || loaded.load(Ordering::Relaxed)),
    });
    hub.metrics.observe(ObservedNumber {
        name: "agentd.runs.active",
        description: "Runs that work.",
        unit: "{run}",
        is_monotonic: false,
        read: Box::new(move || running.load(Ordering::Relaxed)),
    });
    hub.metrics.observe(ObservedNumber {
        name: "agentd.telemetry.dropped_spans",
        description: "Spans that the collector did not take.",
        unit: "{span}",
        is_monotonic: true,
        read: Box::new(move || queue.dropped()),
    });
}

async fn send_spans(hub: Arc<Hub>, resource: Arc<Resource>, sender: Sender, stop: CancellationToken) {
    let queue = &hub.queue;
    loop {
        tokio::select! {
            () = queue.arrived() => {}
            () = stop.cancelled() => {}
        }
        tokio::select! {
            () = sleep(hub.config.span_delay) => {}
            () = queue.full() => {}
            () = stop.cancelled() => {}
        }
        // Before the queue is emptied: what was queued before the end is sent.
        let is_last = stop.is_cancelled();
        loop {
            let mut batch = queue.take();
            if batch.is_empty() {
                break;
            }
            batch.iter_mut().for_each(Span::scrub);
            if !sender.send(encode::traces(hub.config.protocol, &resource, &batch)).await {
                queue.count_dropped(batch.len());
            }
        }
        if is_last {
            return;
        }
    }
}

async fn send_metrics(hub: Arc<Hub>, resource: Arc<Resource>, sender: Sender, stop: CancellationToken) {
    let start_ns = now_ns();
    loop {
        tokio::select! {
            () = sleep(hub.config.metric_interval) => {}
            () = stop.cancelled() => {}
        }
        let is_last = stop.is_cancelled();
        let times = PointTimes { start_ns, now_ns: now_ns() };
        // What is not taken is part of the next export: all sums count from the start.
        sender.send(encode::metrics(hub.config.protocol, &resource, &hub.metrics.collect(), times)).await;
        if is_last {
            return;
        }
    }
}

fn resource(config: &TelemetryConfig, instance: &str) -> Resource {
    let mut attributes: Attributes = vec![
        ("service.name".into(), config.service_name.clone().into()),
        ("service.version".into(), env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id".into(), instance.to_owned().into()),
        ("process.pid".into(), u64::from(std::process::id()).into()),
        ("telemetry.sdk.name".into(), "agentd".into()),
        ("telemetry.sdk.language".into(), "rust".into()),
        ("telemetry.sdk.version".into(), env!("CARGO_PKG_VERSION").into()),
    ];
    for (name, value) in &config.attributes {
        attributes.retain(|(other, _)| other != name);
        attributes.push((name.clone(), value.clone().into()));
    }
    crate::data::scrub_attributes(&mut attributes);
    Resource { attributes }
}
