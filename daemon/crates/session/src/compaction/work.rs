//! A whole compaction: from the plan to the entry on disk.

use agentd_protocol::{
    Json,
    command::CompactParams,
    compaction::{CompactionReason, CompactionResult, SummaryDetails},
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::{CompactionEnd, Event, SummarizationRetryAttemptStart},
    message::{Message, Usage},
};

use super::{
    conversation,
    error::CompactionError,
    extension::MadeByExtension,
    files::{FileOperations, with_lists},
    plan::{Plan, PlanRequest, system_value},
    policy::CompactionPolicy,
    summarise::SummarySubject,
    worker::{CompactionMessage, CompactionWorker},
};
use crate::models::Choice;

const FIRST: &str = include_str!("prompts/first.md");

const UPDATE: &str = include_str!("prompts/update.md");

const TURN_PREFIX: &str = include_str!("prompts/turn_prefix.md");

/// A compaction to carry out.
pub(crate) struct CompactionOrder {
    pub(crate) reason: CompactionReason,
    pub(crate) plan: Plan,
    pub(crate) choice: Choice,
    /// The focus of the summary.
    pub(crate) focus: Option<String>,
}

/// A summary with its lists of files.
pub(super) struct WrittenSummary {
    pub(super) text: String,
    pub(super) details: SummaryDetails,
    pub(super) usage: Usage,
}

impl CompactionWorker {
    /// Summarises, and puts the compaction on disk and into the context.
    ///
    /// # Errors
    /// [`CompactionError`]; nothing has changed then.
    pub(crate) async fn carry_out(
        &self,
        order: CompactionOrder,
    ) -> Result<CompactionResult, CompactionError> {
        let CompactionOrder { reason, mut plan, choice, focus } = order;
        self.permitted_by_hooks(reason, focus.as_deref()).await?;
        let system_message = plan.system.take().map(system_value).transpose()?;
        if let Some(made) = self.made_by_extension((reason, &choice.model), &plan, focus.as_deref()).await? {
            let MadeByExtension { summary, first_kept_entry_id, tokens_before, usage, details } = made;
            let details = details.unwrap_or_else(|| serde_json::json!({}));
            let entry = EntryBody::Compaction {
                summary: summary.clone(),
                first_kept_entry_id: first_kept_entry_id.clone(),
                tokens_before,
                details: Some(details.clone()),
                usage: usage.clone(),
                from_hook: Some(true),
                system_message,
            };
            let estimated_tokens_after = self.store(entry).await?;
            return Ok(CompactionResult {
                summary,
                first_kept_entry_id,
                tokens_before,
                estimated_tokens_after,
                usage,
                details,
            });
        }
        let (first_kept_entry_id, tokens_before) = (std::mem::take(&mut plan.first_kept), plan.tokens_before);
        let WrittenSummary { text, details, usage } =
            self.write(reason, plan, &choice, focus.as_deref()).await?;
        let value =
            serde_json::to_value(&details).map_err(|error| CompactionError::Broken(error.to_string()))?;
        let entry = EntryBody::Compaction {
            summary: text.clone(),
            first_kept_entry_id: first_kept_entry_id.clone(),
            tokens_before,
            details: Some(value.clone()),
            usage: Some(usage.clone()),
            from_hook: Some(false),
            system_message,
        };
        let estimated_tokens_after = self.store(entry).await?;
        Ok(CompactionResult {
            summary: text,
            first_kept_entry_id,
            tokens_before,
            estimated_tokens_after,
            usage: Some(usage),
            details: value,
        })
    }

    /// Has the session store a compaction, unless the work was stopped. The estimated tokens of the context after it.
    async fn store(&self, entry: EntryBody) -> Result<u64, CompactionError> {
        if self.cancel.is_cancelled() {
            return Err(CompactionError::Cancelled);
        }
        let entry = Box::new(entry);
        self.ask(|stored| CompactionMessage::Store { entry, stored }).await?
    }

    /// Asks for the summaries, one after the other, and puts them together.
    async fn write(
        &self,
        reason: CompactionReason,
        plan: Plan,
        choice: &Choice,
        focus: Option<&str>,
    ) -> Result<WrittenSummary, CompactionError> {
        let Plan { history, turn_prefix, previous, files, .. } = plan;
        let source = SummarizationRetryAttemptStart::Compaction { reason };
        let (history, mut files) = read(history, files).await?;
        let (prefix, more) = read(turn_prefix, files).await?;
        files = more;
        let mut usage = Usage::default();
        let mut text = if history.is_empty() && !prefix.is_empty() {
            previous.unwrap_or_else(|| "No prior history.".to_owned())
        } else {
            let prompt = history_prompt(&history, previous.as_deref(), focus);
            let summary = self.summarise(choice, SummarySubject::History, &source, prompt).await?;
            usage.add(&summary.usage);
            summary.text
        };
        if !prefix.is_empty() {
            let prompt = turn_prefix_prompt(&prefix, focus);
            let summary = self.summarise(choice, SummarySubject::TurnPrefix, &source, prompt).await?;
            usage.add(&summary.usage);
            text.push_str("\n\n---\n\n**Turn Context (split turn):**\n\n");
            text.push_str(&summary.text);
        }
        let details = files.details();
        Ok(WrittenSummary { text: with_lists(text, &details), details, usage })
    }
}

/// The messages as text, and the files that they worked with added to `files`. Long conversations take a while, so this is
/// done on a blocking thread.
pub(super) async fn read(
    messages: Vec<Json<Message>>,
    mut files: FileOperations,
) -> Result<(String, FileOperations), CompactionError> {
    let read = tokio::task::spawn_blocking(move || {
        messages.iter().for_each(|message| files.add(message));
        (conversation::text(&messages), files)
    });
    read.await.map_err(|error| CompactionError::Broken(error.to_string()))
}

fn history_prompt(conversation: &str, previous: Option<&str>, focus: Option<&str>) -> String {
    let instructions = if previous.is_some() { UPDATE } else { FIRST };
    conversation_prompt(conversation, previous, instructions, focus)
}

/// A conversation, and what to do with it.
pub(super) fn conversation_prompt(
    conversation: &str,
    previous: Option<&str>,
    instructions: &str,
    focus: Option<&str>,
) -> String {
    let mut prompt = format!("<conversation>\n{conversation}\n</conversation>\n\n");
    if let Some(previous) = previous {
        prompt.push_str(&format!("<previous-summary>\n{previous}\n</previous-summary>\n\n"));
    }
    prompt.push_str(instructions.trim_end());
    with_focus(prompt, focus)
}

fn turn_prefix_prompt(conversation: &str, focus: Option<&str>) -> String {
    let prompt = format!("# Conversation\n\n{conversation}\n\n# Instructions\n\n{}", TURN_PREFIX.trim_end());
    with_focus(prompt, focus)
}

fn with_focus(mut prompt: String, focus: Option<&str>) -> String {
    if let Some(focus) = focus.map(str::trim).filter(|focus| !focus.is_empty()) {
        prompt.push_str(&format!("\n\nAdditional focus: {focus}"));
    }
    prompt
}

pub(crate) async fn manual(
    worker: &CompactionWorker,
    choice: Choice,
    params: CompactParams,
) -> Result<CompactionResult, CompactionError> {
    check_model(worker, &choice).await?;
    let policy = CompactionPolicy::of(&worker.context.settings, true, &choice.model);
    let plan = worker.plan(PlanRequest { keep_recent: policy.keep_recent, overflow_retry: None }).await?;
    let order =
        CompactionOrder { reason: CompactionReason::Manual, plan, choice, focus: params.custom_instructions };
    worker.carry_out(order).await
}

/// Whether there is a model, and a key for it.
pub(super) async fn check_model(worker: &CompactionWorker, choice: &Choice) -> Result<(), CompactionError> {
    if choice.model.is_placeholder() {
        let failure = Failure::new(ErrorCode::NoModel, "No model selected.");
        let hint = "Choose one with set_model; agentctl doctor says what is missing where there is none.";
        return Err(CompactionError::NoModel(failure.hint(hint)));
    }
    tokio::select! {
        biased;
        () = worker.cancel.cancelled() => Err(CompactionError::Cancelled),
        checked = worker.context.check_model(&choice.model) => checked.map_err(CompactionError::NoModel),
    }
}

/// The event at the end of a compaction.
pub(crate) fn end(
    reason: CompactionReason,
    result: &Result<CompactionResult, CompactionError>,
    will_retry: bool,
) -> Event {
    let what = match reason {
        CompactionReason::Manual => "Compaction failed",
        CompactionReason::Threshold => "Auto-compaction failed",
        CompactionReason::Overflow => "Context overflow recovery failed",
    };
    let aborted = matches!(result, Err(CompactionError::Cancelled));
    let error = result.as_ref().err().filter(|_| !aborted);
    Event::from(CompactionEnd {
        reason,
        result: result.as_ref().ok().cloned(),
        aborted,
        will_retry: will_retry && result.is_ok(),
        error_message: error.map(|error| format!("{what}: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_hold_what_the_format_says() {
        let first = history_prompt("[User]: Hi", None, Some(" tests "));
        assert!(first.starts_with("<conversation>\n[User]: Hi\n</conversation>\n\nSummarise"), "{first}");
        assert!(first.ends_with("\n\nAdditional focus: tests"), "{first}");
        let update = history_prompt("[User]: Hi", Some("Before."), Some(" "));
        let middle =
            "</conversation>\n\n<previous-summary>\nBefore.\n</previous-summary>\n\nThe conversation";
        assert!(update.contains(middle) && !update.contains("Additional focus"), "{update}");
        let prefix = turn_prefix_prompt("[User]: Hi", None);
        assert!(prefix.starts_with("# Conversation\n\n[User]: Hi\n\n# Instructions\n\n"), "{prefix}");
    }

    #[test]
    fn headings_come_in_their_order() {
        let all = [
            "## Goal",
            "## Constraints & Preferences",
            "## Progress",
            "### Done",
            "### In Progress",
            "### Blocked",
            "## Key Decisions",
            "## Next Steps",
            "## Critical Context",
        ];
        let turn = ["## Original Request", "## Progress So Far", "## Context Needed to Continue"];
        for (prompt, headings) in [(FIRST, &all[..]), (UPDATE, &all), (TURN_PREFIX, &turn)] {
            let found: Vec<&str> = prompt.lines().filter(|line| line.starts_with('#')).collect();
            assert_eq!(found, headings);
        }
    }
}
