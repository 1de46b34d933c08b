//! Edits that servers propose: asked about as edits, made as one change, told to the servers, and their diagnostics told.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_protocol::tool::ToolResult;
use agentd_tools::explain_gap;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{Call, LSP_TOOL, control::AFTER_CHANGE, document};
use crate::{
    client::Client,
    diagnostics::{LineShift, Severity, new_ones},
    edit_diagnostics::{EditReport, settle, with_report},
    session::{ProposedChange, Snapshot},
    table::language_of,
    uri::file_uri,
    workspace_edit::{Draft, EditPlan, Operation, PlannedFile, operations},
};

/// Files that a result names.
const MAX_NAMED: usize = 50;

/// The longest patch in the details of a result, in bytes.
const MAX_PATCH_BYTES: usize = 256 << 10;

impl Call<'_> {
    pub(super) async fn rename(&self) -> Result<ToolResult, String> {
        let new_name =
            self.need(self.arguments.new_name.as_ref(), "new_name", "the new name of the symbol")?;
        if self.arguments.symbol.is_none() {
            return Err("symbol is missing: the name to change, as it stands in the line".to_owned());
        }
        let file = self.file().await?;
        let place = self.place(&file).await?;
        self.check(&place.client, "renameProvider", "textDocument/rename")?;
        let params = json!({
            "textDocument": document(&file.path),
            "position": place.position.to_json(),
            "newName": new_name,
        });
        let edit = self.ask(&place.client, "textDocument/rename", &params).await?;
        let steps = operations(&edit)?;
        if steps.is_empty() {
            let at = crate::position::Lines::of(&place.text);
            let line = usize::try_from(place.position.line)
                .ok()
                .and_then(|index| at.line(index))
                .unwrap_or_default();
            return Err(format!("{} renames nothing there: {}", place.client.name, line.trim()));
        }
        let plan = self.plan(&place.client, steps).await?;
        self.carry_out(&place.client, plan, "Renamed").await
    }

    pub(super) async fn rename_file(&self) -> Result<ToolResult, String> {
        let given = self.need(self.arguments.new_name.as_ref(), "new_name", "the new path of the file")?;
        let file = self.file().await?;
        let to = self.servers.real_path(self.absolute(given)?).await?;
        let (client, _) = self.main_client(&file).await?;
        let files = json!({"files": [{"oldUri": file_uri(&file.path), "newUri": file_uri(&to)}]});
        let mut steps = match client.capability("/workspace/fileOperations/willRename") {
            Some(filters) if !filters.is_null() => {
                operations(&self.ask(&client, "workspace/willRenameFiles", &files).await?)?
            }
            _ => Vec::new(),
        };
        let had_edits = !steps.is_empty();
        steps.push(Operation::Move { from: file.path.clone(), to });
        let plan = self.plan(&client, steps).await?;
        let result = self.carry_out(&client, plan, "Renamed the file").await?;
        if self.arguments.apply.unwrap_or(true) {
            if client.capability("/workspace/fileOperations/didRename").is_some_and(|it| !it.is_null()) {
                let told = client.connection.notify("workspace/didRenameFiles", &files).await;
                told.map_err(|error| format!("the file is renamed, but {}: {error}", client.name))?;
            }
            if !had_edits {
                let note = format!("[{} changed no imports: look for uses of the old path]", client.name);
                return Ok(with_note(result, &note));
            }
        }
        Ok(result)
    }

    /// What the steps come to.
    pub(super) async fn plan(&self, client: &Client, steps: Vec<Operation>) -> Result<EditPlan, String> {
        // The server's edits are of the texts on disk; one that an editor has not saved stops the change.
        let mut draft = Draft::new(&self.servers.place.host, client.encoding(), &self.cancel);
        draft.versions = client.versions().await;
        let plan = draft.plan(steps).await?;
        for path in plan.changes.iter().flat_map(|change| change.paths()) {
            let real = self.servers.real_path(path.to_owned()).await?;
            if !self.servers.is_inside(&real) && !self.servers.parts.options.edits_outside {
                return Err(format!(
                    "{} would change {}, which is outside of the working folder: nothing was changed. The setting \
                     lsp.editsOutside allows it",
                    client.name,
                    path.display()
                ));
            }
        }
        Ok(plan)
    }

    /// Asks about each file, and makes the change. Returns what was shown, where the call only wants to see it.
    pub(super) async fn carry_out(
        &self,
        client: &Arc<Client>,
        plan: EditPlan,
        done: &str,
    ) -> Result<ToolResult, String> {
        let summary = self.summary(&plan.files);
        let details = self.details(&plan.files);
        if plan.changes.is_empty() {
            return Err(format!("{} proposes no change.", client.name));
        }
        if self.arguments.apply == Some(false) {
            let text = format!("Nothing was changed. This would be:\n{summary}");
            return Ok(ToolResult { details: Some(details), ..ToolResult::text(text) });
        }
        let before = self.servers.take_unsettled(client).unwrap_or_else(|| client.all_diagnostics());
        let gap = self.make(client, plan.clone_for_change()).await?;
        let report = self.report(client, &plan, before).await;
        let result = ToolResult { details: Some(details), ..ToolResult::text(format!("{done}:\n{summary}")) };
        let result = explain_gap(Ok(with_report(self.servers, result, &report)), gap);
        result.map_err(|error| error.0)
    }

    /// Asks about each file, makes the change, and tells the server.
    pub(super) async fn make(
        &self,
        client: &Arc<Client>,
        plan: EditPlan,
    ) -> Result<Option<agentd_checkpoints::Gap>, String> {
        for file in &plan.files {
            for change in proposed(file) {
                let path = change.path.to_owned();
                let asked =
                    self.servers.parts.permissions.may_change(&self.call_id, change, &self.cancel).await;
                asked.map_err(|why| format!("{}: {why} Nothing was changed.", self.servers.shown(&path)))?;
            }
        }
        let made =
            self.servers.place.changes.apply(plan.changes, (&self.call_id, LSP_TOOL), &self.cancel).await;
        let gap = made.map_err(|error| error.0)?;
        let mut told: Vec<(PathBuf, u8)> = Vec::new();
        for file in &plan.files {
            match (&file.from, file.is_removed, &file.old) {
                (Some(from), ..) => told.extend([(from.clone(), 3), (file.path.clone(), 1)]),
                (None, true, _) => told.push((file.path.clone(), 3)),
                (None, false, None) => told.push((file.path.clone(), 1)),
                (None, false, Some(_)) => told.push((file.path.clone(), 2)),
            }
        }
        client.files_changed(&told).await;
        client.refresh().await;
        Ok(gap)
    }

    /// What the server says of the changed files.
    async fn report(&self, client: &Client, plan: &EditPlan, before: Snapshot) -> EditReport {
        let began = Instant::now();
        let until = (began + AFTER_CHANGE.min(self.servers.parts.options.wait)).min(self.until);
        let changed: BTreeSet<&Path> =
            plan.files.iter().filter(|file| !file.is_removed).map(|file| file.path.as_path()).collect();
        let mut report = EditReport { servers: vec![client.name.clone()], ..EditReport::default() };
        let settled = async {
            for path in &changed {
                let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                let Ok(synced) = client.sync(path, &language_of(&name)).await else { continue };
                settle(client, path, (synced.reports, synced.version), until, &self.cancel).await;
            }
        };
        report.is_complete = timeout_at(until, settled).await.is_ok() && !client.is_busy();
        let (now, none) = (client.all_diagnostics(), Vec::new());
        let moved_from = |path: &Path| plan.files.iter().find(|file| file.path == path)?.from.clone();
        for (path, after) in &now {
            let known = before.get(path).or_else(|| before.get(&moved_from(path)?)).unwrap_or(&none);
            let new = new_ones(known, after, LineShift::default()).into_iter();
            let new = new.filter(|it| it.severity == Severity::Error);
            report.new.extend(new.map(|it| (path.clone(), it)));
        }
        report.waited = began.elapsed();
        if !report.is_complete {
            self.servers.keep_unsettled(client, now);
        }
        report
    }

    fn summary(&self, files: &[PlannedFile]) -> String {
        let mut lines: Vec<String> = files.iter().take(MAX_NAMED).map(|file| self.line(file)).collect();
        if files.len() > MAX_NAMED {
            lines.push(format!("[{} more files]", files.len() - MAX_NAMED));
        }
        let edits: usize = files.iter().map(|file| file.edits).sum();
        format!("{} file(s), {edits} replacement(s)\n{}", files.len(), lines.join("\n"))
    }

    fn line(&self, file: &PlannedFile) -> String {
        let path = self.servers.shown(&file.path);
        let edits = match file.edits {
            0 => String::new(),
            edits => format!(" ({edits})"),
        };
        match (&file.from, file.is_removed, &file.old) {
            (Some(from), ..) => format!("{} -> {path}{edits}", self.servers.shown(from)),
            (None, true, _) => format!("{path} removed"),
            (None, false, None) => format!("{path} made"),
            (None, false, Some(_)) => format!("{path}{edits}"),
        }
    }

    fn details(&self, files: &[PlannedFile]) -> Value {
        let one = |file: &PlannedFile| {
            let mut value = json!({"path": self.servers.shown(&file.path), "edits": file.edits});
            if let Some(from) = &file.from {
                value["from"] = self.servers.shown(from).into();
            }
            if file.is_removed {
                value["removed"] = true.into();
            }
            value
        };
        let mut patch = String::new();
        for file in files {
            let (old, new) =
                (file.old.as_deref().unwrap_or_default(), file.new.as_deref().unwrap_or_default());
            if old == new || patch.len() > MAX_PATCH_BYTES {
                continue;
            }
            let path = self.servers.shown(&file.path);
            let diff = similar::TextDiff::from_lines(old, new);
            patch.push_str(&diff.unified_diff().context_radius(2).header(&path, &path).to_string());
        }
        let mut details = json!({"files": files.iter().map(one).collect::<Vec<_>>()});
        if !patch.is_empty() && patch.len() <= MAX_PATCH_BYTES {
            details["patch"] = patch.into();
        }
        details
    }
}

impl EditPlan {
    /// The plan for [`Call::make`], which takes it.
    fn clone_for_change(&self) -> Self {
        Self { files: self.files.clone(), changes: self.changes.clone() }
    }
}

/// What is asked about one file: its path before, and that afterwards.
fn proposed(file: &PlannedFile) -> Vec<ProposedChange<'_>> {
    let (old, new) = (file.old.as_deref(), file.new.as_deref());
    match &file.from {
        Some(from) => vec![
            ProposedChange { path: from, old, new: None },
            ProposedChange { path: &file.path, old: None, new },
        ],
        None => vec![ProposedChange { path: &file.path, old, new }],
    }
}

/// A result with one more line.
pub(super) fn with_note(mut result: ToolResult, note: &str) -> ToolResult {
    match result.content.last_mut() {
        Some(agentd_protocol::message::ContentBlock::Text { text, .. }) => {
            text.push('\n');
            text.push_str(note);
        }
        _ => result.content.extend(ToolResult::text(note).content),
    }
    result
}
