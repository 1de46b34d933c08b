//! The tool `process_list`.

use std::sync::{Arc, LazyLock};

use agentd_agent::{Invocation, Tool, ToolFuture};
use agentd_process::BackgroundProcesses;
use agentd_protocol::tool::{ConstrainedSampling, ToolResult, ToolSpec};
use serde_json::{Value, json};

use super::show::{COMES_WITH, facts, status};

static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: "process_list".into(),
        description:
            "Lists the background processes of this session: those that run, and the last that have ended."
                .into(),
        parameters: json!({ "type": "object", "properties": {}, "required": [] }),
        constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
    })
});

/// Lists background processes.
pub(super) struct ProcessList {
    list: BackgroundProcesses,
}

impl ProcessList {
    pub(super) fn new(list: BackgroundProcesses) -> Self {
        Self { list }
    }

    fn show(&self) -> ToolResult {
        let processes = self.list.list();
        let line = |process: &Arc<_>| {
            let process: &agentd_process::BackgroundProcess = process;
            let command = process.label().lines().next().unwrap_or_default();
            let more = if process.label().lines().nth(1).is_some() { " …" } else { "" };
            format!(
                "{} {}, {} bytes of output: {command}{more}",
                process.id(),
                status(process),
                process.total_bytes()
            )
        };
        let text: Vec<String> = processes.iter().map(line).collect();
        let text = if text.is_empty() { "No background processes".to_owned() } else { text.join("\n") };
        let all: Vec<Value> = processes.iter().map(|process| Value::Object(facts(process))).collect();
        ToolResult { structured_content: Some(json!({ "processes": all })), ..ToolResult::text(text) }
    }
}

impl Tool for ProcessList {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("List background processes")
    }

    fn comes_with(&self) -> Option<&str> {
        Some(COMES_WITH)
    }

    fn execute(&self, _: Invocation) -> ToolFuture<'_> {
        Box::pin(async { Ok(self.show()) })
    }
}
