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
    subagent::{SubagentResult, TASK_TOOL},
    tool::{ToolResult, ToolSpec},
};
use futures::{StreamExt as _, stream::FuturesUnordered};
use serde_json::json;
use tokio::time::{Instant as Moment, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    arguments::{MAX_ITEMS, TaskCall},
    outcome::{finished, finished_and_spawned, refused, running, spawned, word},
    plan::Plan,
    run::{Runner, millis},
    table::Subagents,
};
use crate::clock::now_ms;

/// The least time between two partial results.
const PARTIAL_INTERVAL: Duration = Duration::from_millis(250);

/// The tool's description for models; the same in all sessions. Which agents there are stands in the system prompt.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: TASK_TOOL.to_owned(),
        description: "Give pieces of work to subagents, which work side by side, each in a session of its own, and wait for their results. \
                      A subagent knows nothing of this conversation: say in its task all that it needs. Use it for work that can be \
                      described on its own, such as looking into several parts of a project, or reviews; not for what you can do with a \
                      few calls yourself. Tasks of one call must not depend on each other or change the same files. A write to agent://ID sends \
                      a message to one, and has it go on if it has ended."
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

/// The same with `background` or `effort`, or both.
static SPECS: LazyLock<[Arc<ToolSpec>; 4]> = LazyLock::new(|| {
    [(false, false), (true, false), (false, true), (true, true)].map(|(background, effort)| {
        let mut spec = (**SPEC).clone();
        if background {
            spec.description.push_str(
                " background: do not wait; you are told when they have ended, and wait waits for them. Go on with other work meanwhile.",
            );
            spec.parameters["properties"]["background"] =
                json!({"type": "boolean", "description": "Whether the call returns at once"});
        }
        if effort {
            spec.parameters["properties"]["tasks"]["items"]["properties"]["effort"] =
                json!({"type": "string", "enum": ["lo", "med", "hi"], "description": "How much it should think"});
        }
        Arc::new(spec)
    })
});

/// The tool.
pub(crate) struct TaskTool {
    subagents: Subagents,
    /// The setting `task.background`.
    permits_background: bool,
    spec: &'static Arc<ToolSpec>,
}

impl TaskTool {
    /// The tool of a session with these subagents and this setting.
    pub(crate) fn new(subagents: Subagents, settings: Option<&TaskSettings>) -> Self {
        let permits_background = settings.and_then(|settings| settings.background).unwrap_or(false);
        let permits_effort = settings.and_then(|settings| settings.enable_effort).unwrap_or(false);
        let spec = &SPECS[usize::from(permits_background) + 2 * usize::from(permits_effort)];
        Self { subagents, permits_background, spec }
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
        let mut plans = match self.subagents.plan(&call, &facts, &cancel).await {
            Ok(plans) => plans,
            Err(error) => return Ok(refused(error)),
        };
        for plan in plans.iter_mut().filter(|plan| plan.is_blocking) {
            plan.cancel = invocation.cancel.child_token();
        }
        let runner = Runner {
            subagents: self.subagents.clone(),
            host,
            settings: facts.settings.clone(),
            call_id: invocation.call_id.clone(),
            in_background: false,
            isolation: facts.isolation.clone(),
        };
        let beside = Runner { in_background: true, ..runner.clone() };
        let of = |plan: &Plan| if in_background && !plan.is_blocking { &beside } else { &runner };
        drop(facts);
        let announced = plans.iter().map(|plan| of(plan).announce(plan)).collect();
        // All are on record before one begins.
        self.subagents.record(announced).await.map_err(ToolError)?;
        let (waits, goes_on): (Vec<Plan>, Vec<Plan>) =
            plans.into_iter().partition(|plan| !in_background || plan.is_blocking);
        let begun: Vec<String> = goes_on.iter().map(|plan| plan.id.clone()).collect();
        if !goes_on.is_empty() {
            self.subagents.spawn(run_in_background(beside, goes_on)).await;
        }
        if waits.is_empty() {
            return Ok(spawned(&begun));
        }
        let (results, duration_ms) = self.results(&runner, waits, &invocation).await;
        let result = match begun.as_slice() {
            [] => finished(&results, duration_ms),
            begun => finished_and_spawned(&results, duration_ms, begun),
        };
        if invocation.cancel.is_cancelled() {
            return Ok(ToolResult { is_error: Some(true), ..result });
        }
        Ok(result)
    }

    /// Runs subagents to their ends, and shows meanwhile how far they are: their results in order, and the time of all in milliseconds.
    async fn results(
        &self,
        runner: &Runner,
        plans: Vec<Plan>,
        invocation: &Invocation,
    ) -> (Vec<SubagentResult>, u64) {
        let begun = Instant::now();
        let ids: Vec<String> = plans.iter().map(|plan| plan.id.clone()).collect();
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
        let (mut working, mut news) = (pin!(working), self.subagents.news());
        let (mut told_at, mut is_untold) = (Moment::now(), false);
        loop {
            tokio::select! {
                biased;
                result = working.next() => match result {
                    Some(result) => results.push(result),
                    None => break,
                },
                Ok(()) = news.changed(), if !is_untold => is_untold = true,
                () = sleep_until(told_at + PARTIAL_INTERVAL), if is_untold => {
                    (told_at, is_untold) = (Moment::now(), false);
                    invocation.progress.report(running_now());
                }
            }
        }
        results.sort_by_key(|result| result.index);
        (results, millis(begun.elapsed()))
    }
}

/// Runs subagents whose call does not wait, and tells of their ends, one by one.
pub(super) async fn run_in_background(runner: Runner, plans: Vec<Plan>) {
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

impl Tool for TaskTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Give pieces of work to subagents, which work side by side")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
