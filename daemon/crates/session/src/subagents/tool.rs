//! The tool `task`, which starts subagents and waits for them.

use std::{
    pin::pin,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    jobs::JOB_MESSAGE,
    message::{ContentBlock, CustomMessage, MessageContent},
    settings::TaskSettings,
    subagent::{SubagentStatus, TASK_TOOL},
    tool::{ToolResult, ToolSpec},
};
use futures::{StreamExt as _, stream::FuturesUnordered};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    arguments::{MAX_ITEMS, TaskCall},
    outcome::{finished, refused, running, spawned},
    plan::Plan,
    run::{Runner, millis},
    table::Subagents,
};
use crate::clock::now_ms;

/// The time between two partial results.
const PARTIAL_INTERVAL: Duration = Duration::from_millis(250);

/// The tool's description for models; the same in all sessions. Which agents there are stands in the system prompt.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: TASK_TOOL.to_owned(),
        description: "Give pieces of work to subagents, which work side by side, each in a session of its own, and wait for their results. \
                      A subagent knows nothing of this conversation: say in its task all that it needs. Use it for work that can be \
                      described on its own, such as looking into several parts of a project, or reviews; not for what you can do with a \
                      few calls yourself. Tasks of one call must not depend on each other or change the same files."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "context": {"type": "string", "description": "What all subagents of this call have to know"},
                "tasks": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_ITEMS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "task": {"type": "string", "description": "What is to be done, in full, and what to hand in"},
                            "name": {"type": "string", "description": "A short name for it: letters, digits, _ and -"},
                            "agent": {"type": "string", "description": "The agent that does it; default task"},
                            "outputSchema": {"type": "object", "description": "A JSON Schema that the result has to fit"},
                            "schemaMode": {"type": "string", "enum": ["permissive", "strict"]},
                            "isolated": {"type": "boolean", "description": "Whether it works in a copy of the repository; its changes come back when it is done"},
                        },
                        "required": ["task"],
                    },
                },
            },
            "required": ["tasks"],
        }),
        constrained_sampling: None,
    })
});

/// The same with `background`.
static SPEC_WITH_BACKGROUND: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    let mut spec = (**SPEC).clone();
    spec.description.push_str(
        " background: do not wait; you are told when they have ended, and wait waits for them. Go on with other work meanwhile.",
    );
    spec.parameters["properties"]["background"] =
        json!({"type": "boolean", "description": "Whether the call returns at once"});
    Arc::new(spec)
});

/// The tool.
pub(crate) struct TaskTool {
    subagents: Subagents,
    /// The setting `task.background`.
    permits_background: bool,
}

impl TaskTool {
    /// The tool of a session with these subagents and this setting.
    pub(crate) fn new(subagents: Subagents, settings: Option<&TaskSettings>) -> Self {
        let permits_background = settings.and_then(|settings| settings.background).unwrap_or(false);
        Self { subagents, permits_background }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let call = match TaskCall::read(&invocation.arguments) {
            Ok(call) => call,
            Err(error) => return Ok(refused(error)),
        };
        let gone = || ToolError("The session has ended.".to_owned());
        let facts = self.subagents.facts().await.ok_or_else(gone)?;
        let Some(host) = facts.hosting.get().cloned() else {
            return Err(ToolError("This program opens no sessions for subagents.".to_owned()));
        };
        let in_background = call.background && self.permits_background;
        // What outlasts the call is stopped with the session, or by name.
        let cancel = if in_background { CancellationToken::new() } else { invocation.cancel.clone() };
        let plans = match self.subagents.plan(&call, &facts, &cancel).await {
            Ok(plans) => plans,
            Err(error) => return Ok(refused(error)),
        };
        let runner = Runner {
            subagents: self.subagents.clone(),
            host,
            settings: facts.settings.clone(),
            call_id: invocation.call_id.clone(),
            in_background,
            isolation: facts.isolation.clone(),
        };
        drop(facts);
        let begun = Instant::now();
        let ids: Vec<String> = plans.iter().map(|plan| plan.id.clone()).collect();
        let announced = plans.iter().map(|plan| runner.announce(plan)).collect();
        // All are on record before one begins.
        self.subagents.record(announced).await.map_err(ToolError)?;
        if in_background {
            self.subagents.spawn(run_in_background(runner, plans)).await;
            return Ok(spawned(&ids));
        }
        let running_now = || {
            let shown = ids.iter().filter_map(|id| self.subagents.find(id));
            let progress: Vec<_> =
                shown.map(|it| (it.id, word(it.status), it.progress.unwrap_or_default())).collect();
            running(&progress)
        };
        invocation.progress.report(running_now());
        let working: FuturesUnordered<_> =
            plans.into_iter().zip(0_u64..).map(|(plan, index)| runner.run(plan, index)).collect();
        let mut results = Vec::with_capacity(ids.len());
        {
            let mut working = pin!(working);
            loop {
                tokio::select! {
                    biased;
                    result = working.next() => match result {
                        Some(result) => results.push(result),
                        None => break,
                    },
                    () = sleep(PARTIAL_INTERVAL) => invocation.progress.report(running_now()),
                }
            }
        }
        results.sort_by_key(|result| result.index);
        let result = finished(&results, millis(begun.elapsed()));
        if invocation.cancel.is_cancelled() {
            return Ok(ToolResult { is_error: Some(true), ..result });
        }
        Ok(result)
    }
}

/// Runs subagents whose call does not wait, and tells of their ends, one by one.
async fn run_in_background(runner: Runner, plans: Vec<Plan>) {
    let working: FuturesUnordered<_> =
        plans.into_iter().zip(0_u64..).map(|(plan, index)| runner.run(plan, index)).collect();
    let mut working = pin!(working);
    while let Some(result) = working.next().await {
        let ToolResult { content, details, .. } = finished(std::slice::from_ref(&result), result.duration_ms);
        let text: String = content.iter().filter_map(ContentBlock::as_text).collect();
        let message = CustomMessage {
            custom_type: JOB_MESSAGE.to_owned(),
            content: MessageContent::Text(format!("A background subagent has ended.\n\n{text}")),
            display: true,
            details,
            timestamp: now_ms(),
        };
        runner.subagents.tell_end(message).await;
    }
}

fn word(status: SubagentStatus) -> &'static str {
    match status {
        SubagentStatus::Pending => "pending",
        SubagentStatus::Running => "running",
        SubagentStatus::Completed => "completed",
        SubagentStatus::Failed => "failed",
        SubagentStatus::Aborted => "aborted",
        SubagentStatus::Interrupted => "interrupted",
    }
}

impl Tool for TaskTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        if self.permits_background { &SPEC_WITH_BACKGROUND } else { &SPEC }
    }

    fn snippet(&self) -> Option<&str> {
        Some("Give pieces of work to subagents, which work side by side")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
