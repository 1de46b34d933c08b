//! The servers themselves: how they are, starting them anew, what they can do, and questions of any kind.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::{Value, json};

use super::{Call, document};
use crate::{
    client::Client,
    slot::{ServerSlot, SlotPhase},
};

impl Call<'_> {
    /// The slots of servers that this session could have: those that work in its folders, with its rights.
    fn slots_here(&self) -> Vec<Arc<ServerSlot>> {
        let place = &self.servers.place;
        let is_here = |slot: &Arc<ServerSlot>| {
            let root = &slot.plan.root;
            let workspace = &self.servers.workspace;
            slot.was_started()
                && slot.plan.sandbox == place.sandbox
                && workspace.iter().any(|folder| root.starts_with(folder) || folder.starts_with(root))
        };
        self.servers.parts.shared.slots().into_iter().filter(is_here).collect()
    }

    /// The running servers among them.
    pub(super) fn running_here(&self) -> Vec<Arc<Client>> {
        self.slots_here().iter().filter_map(|slot| slot.running()).collect()
    }

    pub(super) async fn status(&self) -> Result<String, String> {
        let mut lines = Vec::new();
        for slot in self.slots_here() {
            let root = self.servers.shown(&slot.plan.root);
            let root = if root.is_empty() { "." } else { &root };
            let mut line = format!("{} in {root}: ", slot.plan.name);
            match slot.phase() {
                SlotPhase::Stopped => line.push_str("ended; it starts when it is used"),
                SlotPhase::Starting => line.push_str("starting"),
                SlotPhase::Failed(why) => line.push_str(&format!("failed: {why}")),
                SlotPhase::Running => line.push_str("running"),
            }
            if let Some(client) = slot.running() {
                let pid = client.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
                let files = client.open_files().await.len();
                line.push_str(&format!("{pid}, {files} file(s), used {} s ago", client.idle_for().as_secs()));
                let progress = client.progress();
                if !progress.is_empty() {
                    line.push_str(&format!(", at work: {}", progress.join("; ")));
                }
                if let Some(why) = client.complaint() {
                    line.push_str(&format!(", it says: {why}"));
                }
                if client.left_out() > 0 {
                    line.push_str(&format!(", {} diagnostics or messages left out", client.left_out()));
                }
            }
            lines.push(line);
        }
        if lines.is_empty() {
            lines.push("No language server was started here so far.".to_owned());
        }
        lines.push(self.available().await);
        Ok(lines.join("\n"))
    }

    /// The servers that a file of the session's folder could have.
    async fn available(&self) -> String {
        let servers = Arc::clone(self.servers);
        let looking = tokio::task::spawn_blocking(move || {
            let (search, root) = (servers.search(), servers.place.cwd.clone());
            let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for server in servers.parts.config.servers.iter().filter(|server| !server.disabled) {
                if search.find(&server.command, &root).is_some() {
                    found.entry(server.group.clone()).or_default().push(server.name.clone());
                }
            }
            found
        });
        match looking.await {
            Ok(found) if found.is_empty() => "No program of a language server is on PATH.".to_owned(),
            Ok(found) => {
                let named = found.into_iter().map(|(group, names)| match names.as_slice() {
                    [name] if *name == group => name.clone(),
                    names => format!("{group} ({})", names.join(", ")),
                });
                format!("Programs found: {}.", named.collect::<Vec<_>>().join(", "))
            }
            Err(error) => format!("Programs could not be looked for: {error}."),
        }
    }

    pub(super) async fn reload(&self) -> Result<String, String> {
        let slots = match self.arguments.file {
            Some(_) => self.file().await?.targets.iter().map(|target| self.servers.slot(target)).collect(),
            None => self.slots_here(),
        };
        if slots.is_empty() {
            return Ok("No language server runs.".to_owned());
        }
        join_all(slots.iter().map(|slot| slot.stop())).await;
        let names: Vec<&str> = slots.iter().map(|slot| slot.plan.name.as_str()).collect();
        let again = match self.arguments.file {
            // The call says for which file.
            Some(_) => {
                let file = self.file().await?;
                let started = join_all(file.targets.iter().map(|target| self.client(target))).await;
                started.into_iter().collect::<Result<Vec<_>, _>>()?;
                "started anew"
            }
            None => "ended; it starts when it is used",
        };
        Ok(format!("{}: {again}.", names.join(", ")))
    }

    pub(super) async fn show_capabilities(&self) -> Result<String, String> {
        let file = self.file().await?;
        let (client, _) = self.main_client(&file).await?;
        let text = serde_json::to_string_pretty(&client.capabilities()).map_err(|error| error.to_string())?;
        Ok(format!("{} in {}:\n{text}", client.name, client.root.display()))
    }

    /// Any method, with what the call says of file and position where the parameters have neither.
    pub(super) async fn any_request(&self) -> Result<String, String> {
        let method =
            self.need(self.arguments.query.as_ref(), "query", "the method, such as textDocument/hover")?;
        if matches!(method, "initialize" | "shutdown" | "exit" | "initialized") {
            return Err(format!("{method} is agentd's own affair: use reload"));
        }
        let file = self.file().await?;
        let (client, text) = self.main_client(&file).await?;
        let mut params = match &self.arguments.payload {
            None => json!({}),
            Some(Value::String(text)) => {
                serde_json::from_str(text).map_err(|error| format!("payload is no JSON: {error}"))?
            }
            Some(payload) => payload.clone(),
        };
        if let Value::Object(params) = &mut params
            && method.starts_with("textDocument/")
        {
            params.entry("textDocument").or_insert_with(|| document(&file.path));
            if !params.contains_key("position")
                && (self.arguments.line.is_some() || self.arguments.symbol.is_some())
            {
                params.insert("position".to_owned(), self.position(&text, &client)?.to_json());
            }
        }
        let answer = self.ask(&client, method, &params).await?;
        serde_json::to_string_pretty(&answer).map_err(|error| error.to_string())
    }
}

/// Time that a server has to say what a change broke, after an edit of its own.
pub(super) const AFTER_CHANGE: Duration = Duration::from_secs(2);
