//! What happens around a run, a line for each event.

use std::time::Duration;

use agentd_protocol::event::{
    AutoRetryStart, CompactionEnd, ExtensionError, FallbackPurpose, ModelFallback, ProcessEnd,
    ProcessEndedBy, ProviderStalled, StallAction, StallPhase,
};
use agentd_protocol::stream_rules::TtsrTriggered;
use agentd_protocol::subagent::{SubagentSnapshot, SubagentStatus};
use agentd_protocol::todo::TodoReminder;

use crate::{counted, one_line};

/// The line about a provider that takes too long.
pub fn slow_provider(stalled: &ProviderStalled) -> String {
    let what = match stalled.phase {
        StallPhase::Connect => "no connection",
        StallPhase::FirstByte => "no beginning of an answer",
        StallPhase::Idle => "nothing",
        StallPhase::Progress => "nothing of an answer",
        StallPhase::Request => "no whole answer",
    };
    let next = match stalled.action {
        StallAction::Retry => "It is asked again.",
        StallAction::Fail => "It is given up.",
    };
    let seconds = Duration::from_millis(stalled.waited_ms).as_secs_f64();
    let provider = one_line(&stalled.provider);
    format!("{provider} takes too long: {what} for {seconds} s. {next}")
}

/// The line about tasks that are open when the agent stops.
pub fn left_to_do(reminder: &TodoReminder) -> String {
    let next = reminder.todos.first().map(|task| format!("; next: {}", one_line(&task.content)));
    format!("{} of the todo list left{}", counted(reminder.todos.len(), "task"), next.unwrap_or_default())
}

/// The line about a subagent that begins or has ended; `None` while it waits for its turn.
pub fn subagent_news(subagent: &SubagentSnapshot) -> Option<String> {
    let what = match subagent.status {
        SubagentStatus::Pending => return None,
        SubagentStatus::Running => {
            let session = subagent.session_id.as_deref().unwrap_or_default();
            format!("begins: agentctl attach {session}")
        }
        SubagentStatus::Completed => "is done".to_owned(),
        SubagentStatus::Failed => "has failed".to_owned(),
        SubagentStatus::Aborted => "was stopped".to_owned(),
        SubagentStatus::Interrupted => "was interrupted".to_owned(),
    };
    let why = subagent.error.as_deref().map(|error| format!(": {}", one_line(error))).unwrap_or_default();
    let spent = subagent.progress.as_ref().filter(|_| !subagent.status.is_active()).map(|progress| {
        format!(
            " ({}, ${:.4})",
            counted(usize::try_from(progress.requests).unwrap_or(usize::MAX), "request"),
            progress.cost
        )
    });
    Some(format!(
        "Subagent {} ({}) {what}{why}{}",
        subagent.id,
        one_line(&subagent.agent),
        spent.unwrap_or_default()
    ))
}

/// The line about rules that what the model wrote has matched.
pub fn rules_matched(triggered: &TtsrTriggered) -> String {
    let rules: Vec<String> = triggered.rules.iter().map(|rule| one_line(rule)).collect();
    let names = rules.join(", ");
    let rule = if rules.len() == 1 { "rule" } else { "rules" };
    if triggered.interrupted {
        format!("The model was interrupted by the {rule} {names}, and goes on.")
    } else {
        format!("The model is told of the {rule} {names}.")
    }
}

/// The line about the end of a background process.
pub fn ended_process(end: &ProcessEnd) -> String {
    let how = match end.signal {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("exited with code {}", end.exit_code),
    };
    let why = match end.ended_by {
        Some(ProcessEndedBy::Timeout) => " at its time limit",
        Some(ProcessEndedBy::User) => " by kill_job",
        Some(ProcessEndedBy::Restart) => " for its successor",
        Some(ProcessEndedBy::Limit) => " over a limit (setting processes)",
        Some(ProcessEndedBy::Model) | None => "",
    };
    format!("{} {how}{why}: {}", end.process_id, one_line(&end.command))
}

/// The line about the model that goes on.
pub fn fell_back(fallback: &ModelFallback) -> String {
    let ModelFallback { from, to, purpose, error_message, .. } = fallback;
    let what = match purpose {
        FallbackPurpose::Answer => "goes on",
        FallbackPurpose::Summary => "writes the summary",
    };
    format!(
        "{}/{} failed ({}). {}/{} {what}.",
        from.provider,
        from.id,
        one_line(error_message),
        to.provider,
        to.id
    )
}

/// The line about an extension that failed.
pub fn extension_failed(failed: &ExtensionError) -> String {
    let ExtensionError { extension_path, event, error } = failed;
    format!("Extension {} failed at {}: {}", one_line(extension_path), one_line(event), one_line(error))
}

/// The line about a compaction.
pub fn compacted(end: &CompactionEnd) -> String {
    match (&end.result, &end.error_message) {
        (Some(result), _) => format!(
            "The conversation was compacted: about {} tokens became {}.{}",
            result.tokens_before,
            result.estimated_tokens_after,
            if end.will_retry { " Asking again." } else { "" }
        ),
        (None, Some(error)) => one_line(error),
        (None, None) => "The compaction was stopped.".to_owned(),
    }
}

/// The line about an answer that failed and is asked for again.
#[must_use]
pub fn retried(retry: &AutoRetryStart) -> String {
    let seconds = Duration::from_millis(retry.delay_ms).as_secs_f64();
    let why = one_line(&retry.error_message);
    format!(
        "The model's answer failed ({why}). Asking again in {seconds} s (retry {} of {}).",
        retry.attempt, retry.max_attempts
    )
}
