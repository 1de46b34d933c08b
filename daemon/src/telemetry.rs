//! Telemetry of this process, where the user's settings turn it on.

use std::{path::Path, sync::Arc, time::Duration};

use agentd_agent::observer::Observers;
use agentd_config::{AgentDir, Environment, settings::load_user};
use agentd_session::network;
use agentd_telemetry::{ObservedNumber, Telemetry, TelemetryConfig};

use crate::{hub::DaemonContext, logging::complain};

/// The telemetry of a daemon; nothing at all while it is off.
pub(crate) struct DaemonTelemetry(Option<Telemetry>);

impl DaemonTelemetry {
    /// Reads the user's settings, and starts to send where they say so. A set-up that cannot be used is told on stderr, and nothing
    /// is sent. Must be called within the runtime.
    pub(crate) fn start(environment: &Environment, compat: bool, cwd: &Path) -> Self {
        let Ok(agent_dir) = AgentDir::find(environment, compat, cwd) else { return Self(None) };
        let settings = load_user(&agent_dir);
        let Some(telemetry) = &settings.telemetry else { return Self(None) };
        let variable = |name: &str| environment.get(name).map(str::to_owned);
        match TelemetryConfig::of(telemetry, variable) {
            Ok(None) => Self(None),
            Ok(Some(config)) => {
                let network = network(&settings, environment, agent_dir.path());
                Self(Some(Telemetry::start(config, &network, &agentd_store::new_session_id())))
            }
            Err(error) => {
                complain(&format!("Warning: no telemetry is sent: {error}"));
                Self(None)
            }
        }
    }

    /// Makes the observers of sessions, if telemetry is on.
    pub(crate) fn observers(&self) -> Option<Arc<dyn Observers>> {
        self.0.clone().map(|telemetry| Arc::new(telemetry) as _)
    }

    /// Adds the numbers of the daemon's connections.
    pub(crate) fn watch(&self, daemon: &DaemonContext) {
        let Some(telemetry) = &self.0 else { return };
        let (open, lagged) = (Arc::clone(&daemon.connections), Arc::clone(&daemon.connections));
        telemetry.observe(ObservedNumber {
            name: "agentd.clients.connected",
            description: "Open connections of clients.",
            unit: "{client}",
            is_monotonic: false,
            read: Box::new(move || open.open().into()),
        });
        telemetry.observe(ObservedNumber {
            name: "agentd.clients.lagged",
            description: "Clients that were cut off from a session's events because they did not keep up.",
            unit: "{client}",
            is_monotonic: true,
            read: Box::new(move || lagged.lagged()),
        });
    }

    /// Sends what waits, for at most `deadline`. Later calls do nothing.
    pub(crate) async fn shut_down(&self, deadline: Duration) {
        if let Some(telemetry) = &self.0 {
            telemetry.shut_down(deadline).await;
        }
    }
}
