//! `list_processes`: what runs for sessions.

use agentd_process::{ProcessTable, RunningProcess};
use agentd_protocol::{
    command::WorkKind,
    daemon::{ListProcessesParams, ProcessInfo, ProcessList},
    error::{ErrorCode, Failure},
};
use agentd_session::SessionHandle;
use agentd_store::iso_timestamp;
use serde_json::Value;

use super::reader::Reader;

impl Reader {
    /// Answers from a blocking thread, beside all others: the whole of `/proc` is read.
    pub(super) async fn list_processes(&mut self, params: ListProcessesParams, id: Option<Value>) {
        const NAME: &str = "list_processes";
        let sessions: Vec<SessionHandle> = match &params.session_id {
            Some(session_id) => match self.known(session_id).await {
                // One that is not in memory has none: it would not have left it otherwise.
                Ok(known) => known.loaded().into_iter().collect(),
                Err(failure) => return self.fail(id, Some(NAME), failure).await,
            },
            None => self.visible().iter().filter_map(|known| known.loaded()).collect(),
        };
        self.beside(id, NAME, async move {
            let listed = tokio::task::spawn_blocking(move || list(sessions)).await;
            listed.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?.map(Some)
        })
        .await;
    }
}

/// The processes of sessions: by session, then oldest first. Blocks.
fn list(mut sessions: Vec<SessionHandle>) -> Result<ProcessList, Failure> {
    sessions.sort_by(|one, other| one.id().cmp(other.id()));
    let table = ProcessTable::read().map_err(|error| {
        Failure::new(ErrorCode::Io, format!("The processes of the system cannot be read: {error}"))
    })?;
    let of = |session: &SessionHandle| {
        let id = session.id().to_owned();
        session.processes().list(&table).into_iter().map(move |process| info(id.clone(), process))
    };
    Ok(ProcessList { processes: sessions.iter().flat_map(of).collect() })
}

fn info(session_id: String, process: RunningProcess) -> ProcessInfo {
    let RunningProcess { pid, parent, work, background, command, started_ms, cpu_time, memory_bytes } =
        process;
    let (kind, id) = work.map_or((WorkKind::Tool, None), |work| (work.kind, work.id));
    ProcessInfo {
        session_id,
        pid,
        parent_pid: parent,
        kind: if background { WorkKind::Background } else { kind },
        id,
        command,
        started: started_ms.map(iso_timestamp),
        cpu_ms: cpu_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        memory_bytes,
    }
}
