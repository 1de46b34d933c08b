//! The result of the tool `task`: what the model and the clients are told of its subagents. Pure.

use agentd_protocol::{
    isolation::IsolationMerge,
    message::{ContentBlock, Usage},
    subagent::{SubagentProgress, SubagentResult, SubagentStatus},
    text_bounds,
    tool::ToolResult,
};
use serde_json::{Value, json};

/// The characters of each result that the model is given at once.
const PREVIEW: usize = 5_000;

/// The bytes of a result that are kept.
const MAX_OUTPUT_BYTES: usize = 500_000;

/// The lines of a result that are kept.
const MAX_OUTPUT_LINES: usize = 5_000;

/// A text within the limits of results, and whether it was cut.
pub(super) fn within_limits(text: String) -> (String, bool) {
    let line_end = text.match_indices('\n').nth(MAX_OUTPUT_LINES - 1).map_or(text.len(), |(at, _)| at);
    let end = line_end.min(text_bounds::floor(&text, MAX_OUTPUT_BYTES));
    if end >= text.len() {
        return (text, false);
    }
    let mut text = text;
    text.truncate(end);
    (text, true)
}

/// The result of a call that started nothing.
pub(super) fn refused(text: String) -> ToolResult {
    ToolResult { details: Some(json!({"results": [], "totalDurationMs": 0})), ..ToolResult::text(text) }
}

/// The result of a call whose subagents have ended.
pub(super) fn finished(results: &[SubagentResult], duration_ms: u64) -> ToolResult {
    let text = results.iter().map(summary).collect::<Vec<_>>().join("\n\n");
    let mut usage = Usage::default();
    results.iter().filter_map(|result| result.usage.as_ref()).for_each(|of_one| usage.add(of_one));
    let details = json!({"results": results, "totalDurationMs": duration_ms, "usage": usage});
    ToolResult { details: Some(details), ..ToolResult::text(text) }
}

/// The result of a call that does not wait.
pub(super) fn spawned(ids: &[String]) -> ToolResult {
    let line = |id: &String| format!("Spawned agent `{id}` (job `{id}`).");
    let text = ids.iter().map(line).collect::<Vec<_>>().join("\n");
    let jobs: Vec<Value> =
        ids.iter().map(|id| json!({"state": "running", "jobId": id, "type": "task"})).collect();
    ToolResult { details: Some(json!({"results": [], "async": jobs})), ..ToolResult::text(text) }
}

/// The result of a call that waited for some subagents, and does not wait for others.
pub(super) fn finished_and_spawned(
    results: &[SubagentResult],
    duration_ms: u64,
    ids: &[String],
) -> ToolResult {
    let (ended, begun) = (finished(results, duration_ms), spawned(ids));
    let details = ended.details.zip(begun.details).map(|(mut details, of_others)| {
        details["async"] = of_others["async"].clone();
        details
    });
    let content = ended.content.into_iter().chain([ContentBlock::text("\n\n")]).chain(begun.content);
    let text: String = content.filter_map(|block| block.as_text().map(str::to_owned)).collect();
    ToolResult { details, ..ToolResult::text(text) }
}

/// The result so far, while subagents are at work.
pub(super) fn running(progress: &[(String, &'static str, SubagentProgress)]) -> ToolResult {
    let line = |(id, state, progress): &(String, &'static str, SubagentProgress)| {
        let tool = progress.last_tool.as_deref().map(|tool| format!(", {tool}")).unwrap_or_default();
        format!("{id}: {state}, {} requests{tool}", progress.requests)
    };
    let text = progress.iter().map(line).collect::<Vec<_>>().join("\n");
    let listed: Vec<Value> = progress
        .iter()
        .map(|(id, state, progress)| json!({"id": id, "status": state, "progress": progress}))
        .collect();
    ToolResult { details: Some(json!({"results": [], "progress": listed})), ..ToolResult::text(text) }
}

/// A state in a word.
pub(super) fn word(status: SubagentStatus) -> &'static str {
    match status {
        SubagentStatus::Pending => "pending",
        SubagentStatus::Running => "running",
        SubagentStatus::Completed => "completed",
        SubagentStatus::Failed => "failed",
        SubagentStatus::Aborted => "aborted",
        SubagentStatus::Interrupted => "interrupted",
    }
}

/// One subagent, for the model.
fn summary(result: &SubagentResult) -> String {
    let SubagentResult { id, agent, output, error, aborted, abort_reason, stderr, .. } = result;
    let state = match (error, aborted) {
        (Some(error), _) => format!("failed: {error}"),
        (None, true) => format!("stopped: {}", abort_reason.as_deref().unwrap_or("it gave up")),
        (None, false) => "completed".to_owned(),
    };
    let mut text = format!("## {id} ({agent}) {state}");
    let preview = preview(output);
    if !preview.is_empty() {
        text.push_str("\n\n");
        text.push_str(preview);
        if preview.len() < output.len() {
            text.push_str(&format!("\n\n[cut here; all of it: read agent://{id}]"));
        }
    }
    if !stderr.is_empty() {
        text.push_str(&format!("\n\n[{stderr}]"));
    }
    if let Some(merged) = &result.isolation {
        text.push_str(&format!("\n\n{}", merge_line(merged)));
    }
    text
}

/// What became of changes in a copy.
fn merge_line(merged: &IsolationMerge) -> String {
    let place = match (&merged.branch, &merged.patch_path) {
        (Some(branch), _) => format!("the branch {branch}"),
        (None, Some(path)) => format!("the patch {path}"),
        (None, None) => "nowhere".to_owned(),
    };
    let mut text = match (&merged.conflict, merged.changed, merged.applied) {
        (_, false, _) => "No changes to apply.".to_owned(),
        (_, _, true) => match &merged.branch {
            Some(branch) => format!("Merged branch: {branch}"),
            None => "Applied patches: yes".to_owned(),
        },
        (Some(conflict), ..) => format!(
            "Its changes were not applied, since they do not fit what was changed meanwhile ({}): they are in {place}. {}",
            conflict.files.join(", "),
            conflict.reason.trim()
        ),
        (None, ..) => format!("Its changes were not applied: they are in {place}."),
    };
    for notice in &merged.notices {
        text.push_str(&format!("\nNote: {notice}."));
    }
    text
}

fn preview(output: &str) -> &str {
    match output.char_indices().nth(PREVIEW) {
        Some((end, _)) => &output[..end],
        None => output,
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::subagent::AgentSource;

    use super::*;

    fn result(output: &str) -> SubagentResult {
        SubagentResult {
            index: 0,
            id: "A".into(),
            agent: "task".into(),
            agent_source: AgentSource::Bundled,
            task: "t".into(),
            exit_code: 0,
            output: output.into(),
            stderr: String::new(),
            truncated: false,
            duration_ms: 1,
            tokens: 2,
            requests: 1,
            usage: None,
            error: None,
            aborted: false,
            abort_reason: None,
            resolved_model: None,
            structured_output: None,
            session_id: None,
            isolation: None,
        }
    }

    #[test]
    fn outputs_are_cut_at_lines_and_bytes() {
        assert_eq!(within_limits("a\nb".into()), ("a\nb".into(), false));
        let (text, cut) = within_limits("x\n".repeat(MAX_OUTPUT_LINES + 1));
        assert_eq!((text.lines().count(), cut), (MAX_OUTPUT_LINES, true));
        let (text, cut) = within_limits("ä".repeat(MAX_OUTPUT_BYTES));
        assert!(cut && text.len() <= MAX_OUTPUT_BYTES);
    }

    #[test]
    fn summaries_say_how_each_ended() {
        assert_eq!(summary(&result("done")), "## A (task) completed\n\ndone");
        let failed = SubagentResult { error: Some("no key".into()), ..result("") };
        assert_eq!(summary(&failed), "## A (task) failed: no key");
        let stopped = SubagentResult { aborted: true, stderr: "w".into(), ..result("x") };
        assert_eq!(summary(&stopped), "## A (task) stopped: it gave up\n\nx\n\n[w]");
        let long = summary(&result(&"y".repeat(PREVIEW + 1)));
        assert!(long.ends_with("[cut here; all of it: read agent://A]"), "{long}");
    }
}
