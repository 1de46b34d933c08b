//! The connection of verbs about what lives in the daemon.

use agentd_protocol::daemon::{ClientCapabilities, ClientInfo, HelloParams, PROTOCOL, Role};

use super::one_call;
use crate::{
    connect::socket::{Connection, Endpoint},
    exit::{Exit, Fault},
    rpc::Hello,
};

/// Connects to the daemon and says who we are; `None` when none runs.
///
/// # Errors
/// When something is there that is no daemon of ours.
pub(crate) async fn connect(role: Role) -> Result<Option<Connection>, Fault> {
    connect_as(role, false).await
}

/// As [`require`], for a verb with somebody at the keyboard who answers questions; an observer is not asked.
///
/// # Errors
/// As [`require`].
pub(crate) async fn require_answering(role: Role) -> Result<Connection, Fault> {
    match connect_as(role, role == Role::Control).await? {
        Some(connection) => Ok(connection),
        None => Err(not_running(&Endpoint::find()?)),
    }
}

async fn connect_as(role: Role, ui: bool) -> Result<Option<Connection>, Fault> {
    let Some(connection) = Endpoint::find()?.connect().await? else { return Ok(None) };
    let hello = HelloParams {
        protocol: PROTOCOL,
        client: Some(ClientInfo { name: "agentctl".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
        capabilities: ClientCapabilities { sessions: true, ui, ..ClientCapabilities::default() },
        role,
    };
    connection.client.call::<Hello>(&hello).await.map_err(|error| one_call::fault(&error))?;
    Ok(Some(connection))
}

/// The same, for verbs that make no sense without a daemon.
///
/// # Errors
/// As [`connect`], and when none runs.
pub(crate) async fn require(role: Role) -> Result<Connection, Fault> {
    match connect(role).await? {
        Some(connection) => Ok(connection),
        None => Err(not_running(&Endpoint::find()?)),
    }
}

fn not_running(endpoint: &Endpoint) -> Fault {
    let text = format!(
        "agentctl: agentd is not running (socket {}), so nothing is in its memory. `agentctl up` starts it.",
        endpoint.socket.display()
    );
    Fault::new(Exit::NoDaemon, text)
}
