//! The sums of a prompt's work, for the last record of `--json`.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    time::Instant,
};

use agentd_protocol::{
    checkpoints::CheckpointKind,
    event::{Event, ToolExecutionStart},
    exit_code::{PromptExit, failure},
    message::{AssistantMessage, ContentBlock, Message},
    plain_path::without_dots,
    prompt_records::{PromptResult, PromptSession},
    settings::BudgetLimits,
    tool::ToolResult,
    usage::Usage,
};
use serde_json::Value;

use crate::render::{counted, duration, money, short_count};

/// How many changed files are listed.
const MAX_FILES: usize = 1000;

/// The kinds of events that count.
const COUNTED: [&str; 5] =
    ["message_end", "tool_execution_start", "tool_execution_end", "checkpoint_created", "compaction_end"];

/// What a prompt has done so far.
#[derive(Debug)]
pub(super) struct PromptTotals {
    begun: Instant,
    session: Option<PromptSession>,
    /// The last answer, which decides the exit code.
    last_answer: Option<AssistantMessage>,
    turns: u64,
    tool_calls: u64,
    usage: Usage,
    /// What running calls change, by the id of the call.
    changing: HashMap<String, Changes>,
    files: BTreeSet<String>,
    files_not_listed: u64,
    missed_events: u64,
    /// Whether an answer of a schema is wanted.
    wants_output: bool,
    /// That answer.
    output: Option<Value>,
}

impl PromptTotals {
    /// Of a prompt that begins now, whose answer may have to be one of a schema.
    pub(super) fn begin(wants_output: bool) -> Self {
        Self {
            begun: Instant::now(),
            session: None,
            last_answer: None,
            turns: 0,
            tool_calls: 0,
            usage: Usage::default(),
            changing: HashMap::new(),
            files: BTreeSet::new(),
            files_not_listed: 0,
            missed_events: 0,
            wants_output,
            output: None,
        }
    }

    /// Whether events of that kind count.
    pub(super) fn counts(kind: &str) -> bool {
        COUNTED.contains(&kind)
    }

    /// Takes the session that the prompt works in.
    pub(super) fn work_in(&mut self, session: PromptSession) {
        self.session = Some(session);
    }

    /// The session that the prompt works in.
    pub(super) fn session(&self) -> Option<&PromptSession> {
        self.session.as_ref()
    }

    /// All tokens so far.
    pub(super) fn tokens(&self) -> u64 {
        self.usage.total_tokens
    }

    /// A line about the work, for a person; `None` where the model has not answered. `goes_on` says whether the session is kept.
    pub(super) fn summary(&self, goes_on: bool) -> Option<String> {
        let turns = usize::try_from(self.turns).unwrap_or(usize::MAX);
        let cost = Some(self.usage.cost.total).filter(|cost| *cost > 0.0).map(money);
        let tokens = format!("{} tokens", short_count(self.usage.total_tokens));
        let parts = [
            Some(counted(turns, "turn")),
            Some(tokens),
            cost,
            Some(duration(self.begun.elapsed())),
            goes_on.then(|| "agentctl prompt -c goes on".to_owned()),
        ];
        (turns > 0).then(|| parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
    }

    /// The last answer.
    pub(super) fn last_answer(&self) -> Option<&AssistantMessage> {
        self.last_answer.as_ref()
    }

    /// Takes the last answer of a session whose events were missed.
    pub(super) fn missed(&mut self, events: u64, ended: Option<Option<AssistantMessage>>) {
        self.missed_events += events;
        if let Some(last) = ended {
            self.last_answer = last;
        }
    }

    /// Counts an event.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::MessageEnd(end) => {
                if let Some(Message::Assistant(answer)) = end.message.get() {
                    self.turns += u64::from(failure(answer).is_none());
                    self.usage.add(&answer.usage);
                    self.last_answer = Some(answer.clone());
                }
            }
            Event::ToolExecutionStart(call) => {
                if let Some(changes) = Changes::of(call) {
                    self.changing.insert(call.tool_call_id.clone(), changes);
                }
            }
            Event::ToolExecutionEnd(call) => {
                self.tool_calls += 1;
                match self.changing.remove(&call.tool_call_id).filter(|_| !call.is_error) {
                    Some(Changes::File(path)) => self.change(&path),
                    Some(Changes::ResultSays) => {
                        listed_files(&call.result).for_each(|path| self.change(path));
                    }
                    None => {}
                }
            }
            Event::CheckpointCreated(created) if created.checkpoint.kind == CheckpointKind::Tool => {
                let checkpoint = &created.checkpoint;
                let count = checkpoint.created + checkpoint.modified + checkpoint.deleted;
                self.files_not_listed += count.saturating_sub(checkpoint.paths.len() as u64);
                for path in &checkpoint.paths {
                    self.change(path);
                }
            }
            Event::CompactionEnd(end) => {
                if let Some(usage) = end.result.as_ref().and_then(|result| result.usage.as_ref()) {
                    self.usage.add(usage);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, path: &str) {
        let path = match &self.session {
            Some(session) => below(path, Path::new(&session.cwd)),
            None => path.to_owned(),
        };
        if self.files.len() < MAX_FILES || self.files.contains(&path) {
            self.files.insert(path);
        } else {
            self.files_not_listed += 1;
        }
    }

    /// Takes an answer of the schema that was wanted; a later one counts in the place of an earlier one.
    pub(super) fn give(&mut self, output: Value) {
        self.output = Some(output);
    }

    /// The answer of the schema that was wanted.
    pub(super) fn output(&self) -> Option<&Value> {
        self.output.as_ref()
    }

    /// What is left of a budget. Time counts from the beginning, with what is no work of the run.
    pub(super) fn left_of(&self, budget: &BudgetLimits) -> BudgetLimits {
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        BudgetLimits {
            cost_usd: budget.cost_usd.map(|limit| (limit - self.usage.cost.total).max(0.0)),
            tokens: left(budget.tokens, self.usage.total_tokens),
            turns: left(budget.turns, self.turns),
            tool_calls: left(budget.tool_calls, self.tool_calls),
            seconds: left(budget.seconds, self.begun.elapsed().as_secs()),
        }
    }

    /// The last answer: of the schema that was wanted, else its text. `None` where it failed or none came.
    pub(super) fn answer(&self) -> Option<String> {
        if self.wants_output {
            return self.output.as_ref().map(Value::to_string);
        }
        let answer = self.last_answer.as_ref().filter(|answer| failure(answer).is_none())?;
        let texts = answer.content.iter().filter_map(ContentBlock::as_text);
        Some(texts.collect::<Vec<_>>().join("\n"))
    }

    /// The record of the end.
    pub(super) fn result(&self, end: &PromptExit) -> PromptResult {
        PromptResult {
            session_id: self.session.as_ref().map(|session| session.id.clone()),
            exit_code: end.exit.code(),
            error: end.message.clone(),
            answer: self.answer(),
            output: self.output.clone(),
            stop_reason: self.last_answer.as_ref().map(|answer| answer.stop_reason),
            turns: self.turns,
            tool_calls: self.tool_calls,
            usage: self.usage.clone(),
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            files_changed: self.files.iter().cloned().collect(),
            files_not_listed: self.files_not_listed,
            missed_events: self.missed_events,
        }
    }
}

/// The files that a call changes if it succeeds.
#[derive(Debug)]
enum Changes {
    /// The one that its arguments name.
    File(String),
    /// Those that its result lists.
    ResultSays,
}

impl Changes {
    /// `None` of a call that changes nothing, or of which neither arguments nor result say what.
    fn of(call: &ToolExecutionStart) -> Option<Self> {
        let args = call.args.get()?;
        match call.tool_name.as_str() {
            "edit" | "write" => Some(Self::File(args.get("path")?.as_str()?.to_owned())),
            "patch" | "ast_edit" => Some(Self::ResultSays),
            // The result of a call that only shows its changes lists their files, too.
            "lsp" if args.get("apply") != Some(&Value::Bool(false)) => Some(Self::ResultSays),
            _ => None,
        }
    }
}

/// The files that a result lists as changed, `details.files`; one that is renamed with both names.
fn listed_files(result: &ToolResult) -> impl Iterator<Item = &str> {
    let files = result.details.as_ref().and_then(|details| details.get("files")?.as_array());
    let names = files.into_iter().flatten().flat_map(|file| [file.get("path"), file.get("from")]);
    names.flatten().filter_map(Value::as_str)
}

/// The path from `cwd`, where it is below that; `.` and `..` are resolved by the words alone.
fn below(path: &str, cwd: &Path) -> String {
    let whole = without_dots(&cwd.join(path));
    whole.strip_prefix(cwd).unwrap_or(&whole).display().to_string()
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{
        exit_code::Exit,
        message::StopReason,
        model::{ModelName, ThinkingLevel},
    };

    use super::*;

    fn totals() -> PromptTotals {
        let mut totals = PromptTotals::begin(false);
        totals.work_in(PromptSession {
            id: "s".into(),
            file: None,
            cwd: "/project".into(),
            model: Some(ModelName { provider: "p".into(), id: "m".into() }),
            thinking_level: ThinkingLevel::Off,
        });
        totals
    }

    fn event(text: &str) -> Event {
        let kind: serde_json::Value = serde_json::from_str(text).unwrap();
        Event::parse(kind["type"].as_str().unwrap(), text).unwrap().unwrap()
    }

    fn answer(stop: &str, texts: &[&str]) -> Event {
        let content: Vec<_> =
            texts.iter().map(|text| serde_json::json!({"type": "text", "text": text})).collect();
        event(
            &serde_json::json!({"type": "message_end", "message": {
                "role": "assistant", "content": content, "stopReason": stop,
                "usage": {"input": 3, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 5,
                          "cost": {"input": 0.5, "output": 0.25, "cacheRead": 0, "cacheWrite": 0, "total": 0.75}}}})
            .to_string(),
        )
    }

    fn start(id: &str, tool: &str, path: &str) -> Event {
        let args = serde_json::json!({"path": path});
        event(&serde_json::json!({"type": "tool_execution_start", "toolCallId": id, "toolName": tool, "args": args}).to_string())
    }

    fn end(id: &str, is_error: bool) -> Event {
        let result = serde_json::json!({"content": []});
        event(&serde_json::json!({"type": "tool_execution_end", "toolCallId": id, "toolName": "x", "result": result, "isError": is_error}).to_string())
    }

    #[test]
    fn answers_and_their_costs_are_summed() {
        let mut totals = totals();
        for taken in [answer("toolUse", &["a"]), answer("error", &["part"]), answer("stop", &["b", "c"])] {
            totals.take(&taken);
        }
        let result = totals.result(&PromptExit::answered());
        assert_eq!((result.turns, result.usage.total_tokens, result.exit_code), (2, 15, 0));
        assert_eq!((result.usage.cost.total, result.error), (2.25, None));
        assert_eq!((result.answer.as_deref(), result.stop_reason), (Some("b\nc"), Some(StopReason::Stop)));
        totals.take(&answer("error", &["part"]));
        let result = totals.result(&PromptExit::failed("Error: e"));
        assert_eq!((result.answer, result.stop_reason), (None, Some(StopReason::Error)));
        assert_eq!((result.error.as_deref(), result.exit_code), (Some("Error: e"), Exit::Failed.code()));
    }

    #[test]
    fn files_are_named_from_the_folder_of_the_session() {
        let mut totals = totals();
        for (id, tool, path, fails) in [
            ("1", "write", "b/./x", false),
            ("2", "edit", "/project/b/../a", false),
            ("3", "write", "/etc/x", false),
            ("4", "write", "failed", true),
            ("5", "read", "read", false),
        ] {
            totals.take(&start(id, tool, path));
            totals.take(&end(id, fails));
        }
        let result = totals.result(&PromptExit::answered());
        assert_eq!(result.files_changed, ["/etc/x", "a", "b/x"]);
        assert_eq!((result.tool_calls, result.files_not_listed), (5, 0));
    }

    #[test]
    fn files_of_several_are_those_that_the_result_lists() {
        let mut totals = totals();
        let files = |names: [&str; 2]| serde_json::json!({"files": [{"path": names[0], "from": names[1]}, {"path": "/project/b"}]});
        let nothing = serde_json::json!({});
        for (tool, args, details) in [
            ("patch", nothing.clone(), files(["new", "old"])),
            ("ast_edit", nothing.clone(), serde_json::json!({"preview": files(["seen", "only"])})),
            ("lsp", serde_json::json!({"apply": false}), files(["not", "made"])),
            ("lsp", nothing.clone(), files(["renamed", "before"])),
            ("other", nothing, files(["an", "other's"])),
        ] {
            let start = serde_json::json!({"type": "tool_execution_start", "toolCallId": "1", "toolName": tool, "args": args});
            let result = serde_json::json!({"content": [], "details": details});
            let end = serde_json::json!({"type": "tool_execution_end", "toolCallId": "1", "toolName": tool, "result": result, "isError": false});
            totals.take(&event(&start.to_string()));
            totals.take(&event(&end.to_string()));
        }
        let result = totals.result(&PromptExit::answered());
        assert_eq!(result.files_changed, ["b", "before", "new", "old", "renamed"]);
    }

    #[test]
    fn the_list_of_files_has_an_end() {
        let mut totals = totals();
        totals.take(&event(
            r#"{"type":"checkpoint_created","checkpoint":{"id":"c1","kind":"tool","time":1,"created":20,"modified":30,"deleted":0,"paths":["a","b"]}}"#,
        ));
        assert_eq!(totals.result(&PromptExit::answered()).files_not_listed, 48);
        for number in 0..MAX_FILES + 5 {
            totals.take(&start("1", "write", &number.to_string()));
            totals.take(&end("1", false));
        }
        let result = totals.result(&PromptExit::answered());
        assert_eq!((result.files_changed.len(), result.files_not_listed), (MAX_FILES, 48 + 7));
    }
}
