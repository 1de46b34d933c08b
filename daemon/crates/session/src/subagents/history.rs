//! `history://` in the tool `read`: what subagents did.

use std::path::Path;

use agentd_agent::ToolError;
use agentd_protocol::subagent::{HISTORY_URL, SubagentSnapshot};
use agentd_store::{Store, StoreOptions};
use agentd_tools::{UrlContent, UrlReader};
use tokio_util::sync::CancellationToken;

use super::{outcome::word, table::Subagents, transcript::Transcript};

/// The bytes of a session file that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The bytes of a transcript.
const MAX_TRANSCRIPT_BYTES: usize = 4 << 20;

/// Reads transcripts: `history://<id>` of one agent; `history://` lists those that there are: the session's subagents, and for a subagent those
/// beside it.
pub(crate) struct SubagentHistories(pub(crate) Subagents);

impl UrlReader for SubagentHistories {
    fn start(&self) -> &str {
        HISTORY_URL
    }

    fn read<'a>(&'a self, rest: &'a str, _: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move { self.content(rest).await.map(String::into_bytes).map_err(ToolError) })
    }
}

impl SubagentHistories {
    async fn content(&self, id: &str) -> Result<String, String> {
        self.0.restored().await;
        let mut known = self.0.list();
        if let Some(own) = self.0.own() {
            known.extend(own.parent.agents.list());
        }
        if id.is_empty() {
            return Ok(listed(&known));
        }
        let Some(found) = known.iter().find(|known| known.id == id) else {
            let ids: Vec<&str> = known.iter().map(|known| known.id.as_str()).collect();
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            return Err(format!("Not found: {id}. There are: {ids}"));
        };
        let Some(file) = found.session_file.clone() else {
            let why = if found.session_id.is_none() { "has not begun" } else { "is kept in no file" };
            return Err(format!("There is no history of {id}: its session {why}."));
        };
        let id = id.to_owned();
        let read = tokio::task::spawn_blocking(move || transcript(&id, Path::new(&file)));
        read.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// The agents in lines.
fn listed(known: &[SubagentSnapshot]) -> String {
    if known.is_empty() {
        return "There are no agents.".to_owned();
    }
    let line = |known: &SubagentSnapshot| {
        let SubagentSnapshot { id, agent, status, task, .. } = known;
        let task = task.as_deref().and_then(|task| task.lines().next()).unwrap_or_default();
        format!("- {HISTORY_URL}{id} ({agent}, {}): {task}", word(*status))
    };
    known.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The transcript of the branch that a session is on. Blocks.
fn transcript(id: &str, file: &Path) -> Result<String, String> {
    let failed = |problem: String| format!("The history of {id} cannot be read: {problem}");
    let bytes = match file.metadata() {
        Ok(about) => about.len(),
        // It appears with the first answer.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("There is no history of {id} yet: its model has not answered."));
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    if bytes > MAX_FILE_BYTES {
        return Err(failed(format!("{} has {bytes} bytes, more than {MAX_FILE_BYTES}", file.display())));
    }
    let read = Store::new(StoreOptions::default()).read(file);
    let (tree, _) = read.map_err(|error| failed(error.to_string()))?;
    let mut transcript = Transcript::default();
    for message in tree.branch().into_iter().filter_map(|entry| entry.message()) {
        if transcript.len() > MAX_TRANSCRIPT_BYTES {
            let all = format!("{}\n[cut here; all of it: {}]\n", transcript.into_text(), file.display());
            return Ok(all);
        }
        if let Some(message) = message.get() {
            transcript.add(message);
        }
    }
    Ok(transcript.into_text())
}
