//! The event about the work of a subagent, in our form and in omp's. Pure.

use agentd_protocol::subagent::{
    SubagentProgressPayload, SubagentProgressed, SubagentSnapshot, SubagentWork,
};

use crate::subagent_place::{ChildState, RecentWork};

/// The event; `detached` is whether the call does not wait for the subagent.
pub(super) fn progress_event(
    snapshot: SubagentSnapshot,
    detached: bool,
    state: &ChildState,
) -> SubagentProgressed {
    let progress = state.progress();
    let RecentWork { current, calls, output } = state.recent();
    let (current_tool, current_tool_args) = current.unzip();
    let task = snapshot.task.unwrap_or_default();
    let work = SubagentWork {
        index: snapshot.index,
        id: snapshot.id.clone(),
        agent: snapshot.agent.clone(),
        agent_source: snapshot.agent_source,
        status: snapshot.status,
        task: task.clone(),
        current_tool,
        current_tool_args,
        recent_tools: calls,
        recent_output: output,
        tool_count: progress.tool_calls,
        requests: progress.requests,
        tokens: progress.tokens,
        cost: progress.cost,
        duration_ms: progress.duration_ms,
        resolved_model: state.model(),
    };
    let payload = SubagentProgressPayload {
        index: snapshot.index,
        agent: snapshot.agent,
        agent_source: snapshot.agent_source,
        task,
        parent_tool_call_id: snapshot.parent_tool_call_id,
        session_file: snapshot.session_file,
        detached,
        progress: work,
    };
    SubagentProgressed { id: snapshot.id, progress, payload: Some(Box::new(payload)) }
}
