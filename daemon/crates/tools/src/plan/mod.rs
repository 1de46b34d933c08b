//! The tool `propose_plan`: the model gives its plan to the user, who approves it or says what should be different.
//!
//! It is declared in plan mode alone. What approval means for the session is the session's affair ([`PlanReview`]).

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{ExecutionMode, Exposure, Invocation, Tool, ToolError, ToolFuture, ToolProgress};
use agentd_protocol::{
    agent_mode::{LOCAL_URL, PROPOSE_PLAN_TOOL},
    tool::{ToolResult, ToolSpec},
};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    arguments,
    ask::{AskUser, UserAnswer},
    blocking,
    session_folder::SessionFolder,
};

/// Bytes of a plan. It becomes one message to the model.
const MAX_PLAN: u64 = 128 << 10;

/// Characters of a title.
const MAX_TITLE: usize = 64;

/// The answers to choose from.
const APPROVE: &str = "Approve";
const APPROVE_ELSEWHERE: &str = "Approve in a new session";
const REVISE: &str = "Revise";

/// A plan that the user has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedPlan {
    /// The title: letters, digits, `_` and `-`.
    pub title: String,
    /// The name of its file: what follows `local://`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The session that carries out a plan in the place of the one that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successor {
    /// Its id.
    pub id: String,
    /// Its file; `None` for one in memory.
    pub file: Option<String>,
}

/// What a session makes of plans.
pub trait PlanReview: Send + Sync {
    /// Whether plans are proposed now: plan mode is on, and the session's own user decides.
    fn is_open(&self) -> bool;

    /// The user has approved a plan: plan mode ends, and the model gets the plan.
    ///
    /// # Errors
    /// Why that is not so, for the model and the user; plan mode goes on then.
    fn approve(&self, plan: ProposedPlan) -> BoxFuture<'_, Result<(), String>>;

    /// The user has approved a plan, and wants it carried out in another session, which begins with it. Plan mode ends in this one.
    ///
    /// # Errors
    /// As of [`Self::approve`].
    fn approve_elsewhere(&self, plan: ProposedPlan) -> BoxFuture<'_, Result<Successor, String>>;
}

/// The tool.
pub struct ProposePlanTool {
    folder: SessionFolder,
    user: Arc<dyn AskUser>,
    review: Arc<dyn PlanReview>,
    timeout: Option<Duration>,
}

impl ProposePlanTool {
    /// The tool of a session with this folder, user and review. `timeout`: the setting `plan.timeoutMs`; `None` waits.
    #[must_use]
    pub fn new(
        folder: SessionFolder,
        user: Arc<dyn AskUser>,
        review: Arc<dyn PlanReview>,
        timeout: Option<Duration>,
    ) -> Self {
        Self { folder, user, review, timeout }
    }

    async fn run(
        &self,
        arguments: Value,
        progress: &ToolProgress,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, ToolError> {
        let arguments: PlanArguments = arguments::parse(arguments)?;
        let (title, name) = arguments.checked()?;
        if !self.review.is_open() {
            return Err(ToolError("Plan mode is off: there is nothing to approve.".to_owned()));
        }
        let (folder, wanted) = (self.folder.clone(), name.clone());
        let (text, is_cut) =
            blocking::run(move || folder.read(&wanted, MAX_PLAN)).await.map_err(|error| {
                let hint = "Write the plan there first, with write.";
                ToolError(format!("{} {hint}", error.0))
            })?;
        if is_cut {
            return Err(ToolError(format!(
                "{LOCAL_URL}{name} is longer than {MAX_PLAN} bytes. Make the plan shorter."
            )));
        }
        if text.trim().is_empty() {
            return Err(ToolError(format!(
                "{LOCAL_URL}{name} is empty. Write the plan there first, with write."
            )));
        }
        let plan = ProposedPlan { title, name, text };
        // Clients show it while the user is asked.
        progress.report(ToolResult {
            details: details((&plan.title, &plan.name), "asked", json!({})),
            ..ToolResult::text(plan.text.trim_end())
        });
        cancel.run_until_cancelled(progress.published()).await;
        match self.decide(&plan, cancel).await? {
            Decision::Approved => {
                let result = approved(&plan);
                self.review.approve(plan).await.map_err(ToolError)?;
                Ok(result)
            }
            Decision::ApprovedElsewhere => {
                let (title, name) = (plan.title.clone(), plan.name.clone());
                let successor = self.review.approve_elsewhere(plan).await.map_err(ToolError)?;
                Ok(approved_elsewhere(&title, &name, &successor))
            }
            Decision::Revise(words) => Ok(revised(&plan, words)),
            Decision::Undecided => Ok(undecided(&plan)),
        }
    }

    /// Asks the user, within the time that there is.
    async fn decide(&self, plan: &ProposedPlan, cancel: &CancellationToken) -> Result<Decision, ToolError> {
        let given_up = cancel.child_token();
        let mut asking = std::pin::pin!(self.ask(plan, &given_up));
        let over = async {
            match self.timeout {
                Some(timeout) => sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let decision = tokio::select! {
            biased;
            decision = &mut asking => decision,
            () = over => {
                given_up.cancel();
                // The dialog is taken back before the run goes on. An answer that came first counts.
                asking.await
            }
        };
        if cancel.is_cancelled() { Err(blocking::aborted()) } else { Ok(decision) }
    }

    async fn ask(&self, plan: &ProposedPlan, cancel: &CancellationToken) -> Decision {
        let options = [APPROVE, APPROVE_ELSEWHERE, REVISE].map(str::to_owned).to_vec();
        match self.user.choose(question(plan), options, cancel).await {
            UserAnswer::Text(text) if text == APPROVE => Decision::Approved,
            UserAnswer::Text(text) if text == APPROVE_ELSEWHERE => Decision::ApprovedElsewhere,
            UserAnswer::Text(text) if text == REVISE => {
                let title = format!("What should be different in the plan {}?", plan.title);
                match self.user.type_in(title, cancel).await {
                    UserAnswer::Text(words) => Decision::Revise(words),
                    UserAnswer::Declined => Decision::Revise(String::new()),
                    UserAnswer::Nobody => Decision::Undecided,
                }
            }
            // Words in the place of a choice are what should be different.
            UserAnswer::Text(words) => Decision::Revise(words),
            UserAnswer::Declined | UserAnswer::Nobody => Decision::Undecided,
        }
    }
}

/// What the user says to a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Approved,
    ApprovedElsewhere,
    /// It is to be changed; the words may be empty.
    Revise(String),
    /// Nobody has said anything, or the question was closed.
    Undecided,
}

#[derive(Deserialize)]
struct PlanArguments {
    title: String,
    path: Option<String>,
}

impl PlanArguments {
    /// The title, and the name of the file.
    fn checked(self) -> Result<(String, String), ToolError> {
        let Self { title, path } = self;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if title.is_empty() || title.len() > MAX_TITLE || !title.chars().all(is_plain) {
            return Err(ToolError(format!(
                "The title {title:?} cannot be used: it has 1 to {MAX_TITLE} letters, digits, \"_\" and \"-\"."
            )));
        }
        let name = match path {
            None => format!("{title}-plan.md"),
            Some(path) => match path.strip_prefix(LOCAL_URL) {
                Some(name) => name.trim_start_matches('/').to_owned(),
                None => {
                    return Err(ToolError(format!(
                        "The plan is a file of {LOCAL_URL}, not {path:?}: write it to {LOCAL_URL}{title}-plan.md."
                    )));
                }
            },
        };
        Ok((title, name))
    }
}

/// The question. Clients have the plan's text as the call's partial result: titles of dialogs have little room.
fn question(plan: &ProposedPlan) -> String {
    format!("Carry out the plan {}? ({LOCAL_URL}{})", plan.title, plan.name)
}

fn details(plan: (&str, &str), decision: &str, more: Value) -> Option<Value> {
    let (title, name) = plan;
    let mut details = json!({"title": title, "url": format!("{LOCAL_URL}{name}"), "decision": decision});
    if let (Some(all), Value::Object(more)) = (details.as_object_mut(), more) {
        all.extend(more);
    }
    Some(details)
}

fn approved(plan: &ProposedPlan) -> ToolResult {
    let text = format!("The user has approved the plan {}. Plan mode is off: carry it out now.", plan.title);
    ToolResult {
        details: details((&plan.title, &plan.name), "approved", json!({})),
        ..ToolResult::text(text)
    }
}

fn approved_elsewhere(title: &str, name: &str, successor: &Successor) -> ToolResult {
    let text = format!(
        "The user has approved the plan {title}, and the session {} carries it out. There is nothing left to do here.",
        successor.id
    );
    let more = json!({"sessionId": successor.id, "sessionFile": successor.file});
    ToolResult {
        details: details((title, name), "approvedInNewSession", more),
        terminate: Some(true),
        ..ToolResult::text(text)
    }
}

fn revised(plan: &ProposedPlan, words: String) -> ToolResult {
    let (title, url) = (&plan.title, format!("{LOCAL_URL}{}", plan.name));
    let words = words.trim();
    let text = if words.is_empty() {
        format!(
            "The user wants the plan {title} changed, and has not said how. Plan mode stays on: ask what should be different."
        )
    } else {
        format!(
            "The user wants the plan {title} changed: {words}\n\nPlan mode stays on: change {url}, and propose it again."
        )
    };
    let more = if words.is_empty() { json!({}) } else { json!({"feedback": words}) };
    let terminate = words.is_empty().then_some(true);
    ToolResult { details: details((title, &plan.name), "revise", more), terminate, ..ToolResult::text(text) }
}

fn undecided(plan: &ProposedPlan) -> ToolResult {
    let text = format!(
        "Nobody has decided about the plan {}. It stays in {LOCAL_URL}{}, and plan mode stays on.",
        plan.title, plan.name
    );
    ToolResult {
        details: details((&plan.title, &plan.name), "undecided", json!({})),
        terminate: Some(true),
        ..ToolResult::text(text)
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: PROPOSE_PLAN_TOOL.to_owned(),
        description: format!(
            "Give your plan to the user, who approves it or says what should be different. Write it to \
             {LOCAL_URL}TITLE-plan.md first. Call this alone, once the plan is complete."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "title": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9_-]+$",
                    "description": "A short name of the plan: letters, digits, _ and -",
                },
                "path": {
                    "type": "string",
                    "description": format!("The plan's file, if it is not {LOCAL_URL}TITLE-plan.md"),
                },
            },
            "required": ["title"],
        }),
        constrained_sampling: None,
    })
});

impl Tool for ProposePlanTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Propose a plan to the user")
    }

    /// Nothing else of the batch runs while the user reads.
    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Sequential
    }

    fn exposure(&self) -> Exposure {
        if self.review.is_open() { Exposure::ModelOnly } else { Exposure::Hidden }
    }

    fn comes_with_mode(&self) -> bool {
        true
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            let Invocation { arguments, progress, cancel, .. } = invocation;
            self.run(arguments, &progress, &cancel).await
        })
    }
}

#[cfg(test)]
mod tests;
