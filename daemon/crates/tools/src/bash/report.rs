//! The texts and details of a `bash` call, while it runs and at its end.

use std::time::Duration;

use agentd_agent::ToolError;
use agentd_process::{FullOutput, HeadTailBuffer, OutputTail, ShellOutcome, StopCause};
use agentd_protocol::{
    message::ContentBlock,
    number,
    tool::{ToolResult, TruncatedBy, Truncation},
};
use serde_json::{Map, Value, json};

use super::timeout::BashTimeout;
use crate::{output_meta::OutputMeta, truncate::format_size};

/// The end of an aborted command's error.
pub(super) const ABORTED: &str = "Command aborted";

/// The output so far; `current` is the line of a terminal's cursor.
pub(super) fn update(tail: &OutputTail, current: &str) -> ToolResult {
    let truncation = tail.snapshot();
    ToolResult {
        content: vec![ContentBlock::text(format!("{}{current}", truncation.content))],
        details: Some(Value::Object(details(tail, &truncation))),
        ..ToolResult::default()
    }
}

/// The result of a command that has ended; `tail` must be finished.
///
/// # Errors
/// The message for the model when the command was aborted, timed out, or exceeded a limit.
pub(super) fn result(
    tail: &OutputTail,
    halves: HeadTailBuffer,
    outcome: &ShellOutcome,
    timeout: Option<BashTimeout>,
) -> Result<ToolResult, ToolError> {
    let truncation = tail.snapshot();
    let shown = shown(tail, &truncation);
    match outcome.stopped {
        Some(StopCause::Aborted) => return Err(ToolError(joined(shown, ABORTED))),
        Some(StopCause::TimedOut) => return Err(ToolError(joined(shown, &timed_out(outcome, timeout)))),
        Some(StopCause::Limit(limit)) => return Err(ToolError(joined(shown, &limit.to_string()))),
        None => {}
    }
    let code = outcome.exit.map_or(-1, |exit| exit.code);
    let mut text = if shown.is_empty() { "(no output)".to_owned() } else { shown };
    if code != 0 {
        text = joined(text, &format!("Command exited with code {code}"));
    }
    Ok(ToolResult {
        structured_content: Some(structured(tail, halves, outcome, code)),
        details: truncation.truncated.then(|| Value::Object(details(tail, &truncation))),
        is_error: (code != 0).then_some(true),
        ..ToolResult::text(text)
    })
}

/// The error of a command whose end is unknown; `tail` must be finished.
pub(super) fn lost(tail: &OutputTail, failure: &str) -> ToolError {
    ToolError(joined(shown(tail, &tail.snapshot()), failure))
}

/// The result of a command that was not heard out; `missing` says what is not there.
///
/// # Errors
/// The error of `result`, with the same addition.
pub(super) fn incomplete(
    result: Result<ToolResult, ToolError>,
    missing: &str,
) -> Result<ToolResult, ToolError> {
    let note = format!("[{missing}]");
    let mut result = result.map_err(|error| ToolError(joined(error.0, &note)))?;
    if let Some(ContentBlock::Text { text, .. }) = result.content.first_mut() {
        *text = joined(std::mem::take(text), &note);
    }
    if let Some(structured) = &mut result.structured_content {
        structured["truncated"] = true.into();
    }
    Ok(result)
}

/// The result of a command of which the model has to know something first.
///
/// # Errors
/// The error of `result`, with the same addition.
pub(super) fn noticed(result: Result<ToolResult, ToolError>, notice: &str) -> Result<ToolResult, ToolError> {
    let with = |text: &str| format!("[{notice}]\n\n{text}");
    let mut result = result.map_err(|error| ToolError(with(&error.0)))?;
    if let Some(ContentBlock::Text { text, .. }) = result.content.first_mut() {
        *text = with(text);
    }
    Ok(result)
}

fn joined(text: String, status: &str) -> String {
    if text.is_empty() { status.to_owned() } else { format!("{text}\n\n{status}") }
}

/// The output for the model: its end, and where the rest is. `tail` must be finished.
#[must_use]
pub fn tail_text(tail: &OutputTail) -> String {
    shown(tail, &tail.snapshot())
}

/// The facts about an output that was cut, for clients; `None` for one that is whole. `tail` must be finished.
#[must_use]
pub fn tail_details(tail: &OutputTail) -> Option<Value> {
    let truncation = tail.snapshot();
    truncation.truncated.then(|| Value::Object(details(tail, &truncation)))
}

/// The output for the model: its end, and where the rest is.
fn shown(tail: &OutputTail, truncation: &Truncation) -> String {
    if !truncation.truncated {
        return truncation.content.clone();
    }
    let full = match tail.full_output() {
        FullOutput::File(path) => match tail.cut_at() {
            None => format!("Full output: {}", path.display()),
            Some(bytes) => format!(
                "The first {} of the output: {} (setting storage.maxOutputBytes)",
                format_size(bytes),
                path.display()
            ),
        },
        FullOutput::Lost(reason) => format!("The full output could not be saved: {reason}"),
        FullOutput::Shown => String::new(),
    };
    let Truncation { total_lines: last, output_lines, output_bytes, max_bytes, .. } = truncation;
    let first = last - output_lines + 1;
    let what = if truncation.last_line_partial {
        let whole = format_size(tail.window().last_line_bytes());
        format!("last {} of line {last} (line is {whole})", format_size(*output_bytes))
    } else if truncation.truncated_by == Some(TruncatedBy::Bytes) {
        format!("lines {first}-{last} of {last} ({} limit)", format_size(*max_bytes))
    } else {
        format!("lines {first}-{last} of {last}")
    };
    format!("{}\n\n[Showing {what}. {full}]", truncation.content)
}

fn details(tail: &OutputTail, truncation: &Truncation) -> Map<String, Value> {
    let mut details = Map::new();
    if truncation.truncated {
        details.insert("truncation".into(), json!(truncation));
    }
    if let FullOutput::File(path) = tail.full_output() {
        details.insert("fullOutputPath".into(), path.display().to_string().into());
    }
    OutputMeta { artifact_id: tail.artifact_id().map(str::to_owned), ..OutputMeta::default() }
        .add_to(&mut details);
    details
}

fn timed_out(outcome: &ShellOutcome, timeout: Option<BashTimeout>) -> String {
    let mut text = timeout.as_ref().map(BashTimeout::reached).unwrap_or_default();
    if let (Some(exit), Some(after)) = (outcome.exit, outcome.shell_exited_after) {
        text.push_str(&format!(
            ". The shell exited with code {} after {} seconds, but background processes it started kept writing output \
            until the timeout.",
            exit.code,
            // Rounded to a tenth, without a zero fraction.
            (after.as_secs_f64() * 10.0).round() / 10.0
        ));
    }
    text
}

/// The result for programs. Its output is longer than the model's, and seldom cut.
fn structured(tail: &OutputTail, halves: HeadTailBuffer, outcome: &ShellOutcome, code: i32) -> Value {
    let mut value = Map::new();
    let is_cut = halves.is_cut();
    value.insert("output".into(), halves.finish().into());
    value.insert("truncated".into(), is_cut.into());
    if is_cut && let FullOutput::File(path) = tail.full_output() {
        value.insert("full_output_path".into(), path.display().to_string().into());
    }
    value.insert("exit_code".into(), code.into());
    value.insert("wall_time_seconds".into(), seconds(outcome.wall_time).into());
    number::normalize_map(&mut value);
    Value::Object(value)
}

/// Seconds, rounded down to the millisecond.
fn seconds(time: Duration) -> f64 {
    Duration::from_millis(time.as_millis().try_into().unwrap_or(u64::MAX)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use agentd_process::ExitStatus;

    use super::*;

    fn outcome(code: i32) -> ShellOutcome {
        ShellOutcome {
            exit: Some(ExitStatus::exited(code)),
            stopped: None,
            shell_exited_after: None,
            wall_time: Duration::from_millis(1500),
        }
    }

    async fn finished(dir: &tempfile::TempDir, output: &str) -> (OutputTail, HeadTailBuffer) {
        let mut tail = OutputTail::new(dir.path().into());
        let mut halves = HeadTailBuffer::new();
        halves.push(&tail.push(output.as_bytes()).await);
        tail.finish().await;
        (tail, halves)
    }

    async fn text(
        output: &str,
        outcome: ShellOutcome,
        timeout: Option<BashTimeout>,
    ) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let (tail, halves) = finished(&dir, output).await;
        let path = match tail.full_output() {
            FullOutput::File(path) => path.display().to_string(),
            _ => "no file".into(),
        };
        let seen = result(&tail, halves, &outcome, timeout).map_err(|error| error.0);
        seen.map(|seen| seen.content[0].as_text().unwrap().replace(&path, "PATH"))
    }

    #[tokio::test]
    async fn texts_of_ends() {
        assert_eq!(text("hi\n", outcome(0), None).await, Ok("hi\n".into()));
        assert_eq!(text("", outcome(0), None).await, Ok("(no output)".into()));
        assert_eq!(text("hi\n", outcome(3), None).await, Ok("hi\n\n\nCommand exited with code 3".into()));
        assert_eq!(text("", outcome(1), None).await, Ok("(no output)\n\nCommand exited with code 1".into()));
    }

    #[tokio::test]
    async fn texts_of_aborts_and_timeouts() {
        let aborted = ShellOutcome { stopped: Some(StopCause::Aborted), ..outcome(137) };
        assert_eq!(text("", aborted, None).await, Err("Command aborted".into()));
        assert_eq!(text("hi", aborted, None).await, Err("hi\n\nCommand aborted".into()));

        let timed_out = ShellOutcome { stopped: Some(StopCause::TimedOut), ..outcome(137) };
        let limit = |seconds| Some(BashTimeout::of_call(seconds).unwrap());
        assert_eq!(
            text("hi", timed_out, limit(2.0)).await,
            Err("hi\n\nCommand timed out after 2 seconds".into())
        );
        assert_eq!(
            text("", timed_out, limit(0.25)).await,
            Err("Command timed out after 0.25 seconds".into())
        );

        let background = ShellOutcome {
            exit: Some(ExitStatus::exited(0)),
            shell_exited_after: Some(Duration::from_millis(120)),
            ..timed_out
        };
        let expected = "x\n\nCommand timed out after 1 seconds. The shell exited with code 0 after 0.1 seconds, but \
            background processes it started kept writing output until the timeout.";
        assert_eq!(text("x", background, limit(1.0)).await, Err(expected.into()));
    }

    #[tokio::test]
    async fn output_that_is_missing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (tail, halves) = finished(&dir, "hi\n").await;
        let seen = incomplete(result(&tail, halves, &outcome(0), None), "The beginning is missing.").unwrap();
        assert_eq!(seen.content[0].as_text().unwrap(), "hi\n\n\n[The beginning is missing.]");
        assert_eq!(seen.structured_content.unwrap()["truncated"], true);
        let failed = incomplete(Err(ToolError("Command aborted".into())), "The beginning is missing.");
        assert_eq!(failed.unwrap_err().0, "Command aborted\n\n[The beginning is missing.]");
    }

    #[tokio::test]
    async fn texts_of_long_output() {
        let lines: String = (1..=2500).map(|number| format!("{number}\n")).collect();
        let seen = text(&lines, outcome(0), None).await.unwrap();
        assert!(
            seen.starts_with("501\n")
                && seen.ends_with("2500\n\n[Showing lines 501-2500 of 2500. Full output: PATH]")
        );

        let wide = format!("{}\n", "x".repeat(99)).repeat(600);
        let seen = text(&wide, outcome(2), None).await.unwrap();
        let notice =
            "[Showing lines 89-600 of 600 (50.0KB limit). Full output: PATH]\n\nCommand exited with code 2";
        assert!(seen.ends_with(notice), "{}", &seen[seen.len() - 200..]);

        let line = format!("first\n{}", "x".repeat(2 * 1024 * 1024));
        let seen = text(&line, outcome(0), None).await.unwrap();
        assert!(seen.ends_with("\n\n[Showing last 50.0KB of line 2 (line is 2.0MB). Full output: PATH]"));
    }

    #[tokio::test]
    async fn details_and_structured_content() {
        let dir = tempfile::tempdir().unwrap();
        let (tail, halves) = finished(&dir, "hi\n").await;
        let seen = result(&tail, halves, &outcome(0), None).unwrap();
        assert_eq!((seen.details, seen.is_error), (None, None));
        let expected =
            json!({ "output": "hi\n", "truncated": false, "exit_code": 0, "wall_time_seconds": 1.5 });
        assert_eq!(seen.structured_content, Some(expected));
        assert_eq!(update(&tail, "").details, Some(json!({})));

        let (tail, halves) = finished(&dir, &"x\n".repeat(3000)).await;
        let seen = result(&tail, halves, &outcome(1), None).unwrap();
        let FullOutput::File(path) = tail.full_output() else { panic!("no file") };
        let details = seen.details.unwrap();
        assert_eq!(details, json!({ "truncation": tail.snapshot(), "fullOutputPath": path }));
        assert_eq!(seen.is_error, Some(true));
        let structured = seen.structured_content.unwrap();
        assert_eq!(structured["truncated"], false, "programs see all of it");
        assert_eq!(structured["output"], "x\n".repeat(3000));
        assert_eq!(update(&tail, "").details, Some(details));

        let (tail, halves) = finished(&dir, &"x\n".repeat(600_000)).await;
        let structured = result(&tail, halves, &outcome(0), None).unwrap().structured_content.unwrap();
        let FullOutput::File(path) = tail.full_output() else { panic!("no file") };
        assert_eq!((&structured["truncated"], &structured["full_output_path"]), (&json!(true), &json!(path)));
    }

    #[tokio::test]
    async fn a_lost_file_is_told() {
        let mut tail = OutputTail::new(std::path::Path::new("/no/such/folder").into());
        tail.push("x\n".repeat(2001).as_bytes()).await;
        tail.finish().await;
        let seen = result(&tail, HeadTailBuffer::new(), &outcome(0), None).unwrap();
        let text = seen.content[0].as_text().unwrap();
        assert!(
            text.ends_with(
                "[Showing lines 2-2001 of 2001. The full output could not be saved: entity not found]"
            ),
            "{text}"
        );
    }
}
