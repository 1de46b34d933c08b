//! What the model is told about plan mode, and the message that gives it an approved plan. Pure.

use agentd_protocol::{
    agent_mode::{LOCAL_URL, PLAN_MESSAGE},
    message::{CustomMessage, MessageContent},
};
use agentd_tools::ProposedPlan;
use serde_json::json;

/// The name of the section of the system prompt.
pub(crate) const PROMPT_SECTION: &str = "plan_mode";

/// What the system prompt says while plan mode is on. `proposes`: the model can propose a plan, which is not so in a session that works for
/// another one.
pub(crate) fn prompt_section(proposes: bool) -> String {
    const LOOK: &str = "Plan mode is on: look at the project, and change nothing. Calls that change files, commands that do more than look, \
        and other tools that change something are refused; do not look for ways around that.";
    if !proposes {
        return format!("{LOOK} Answer with what you found.");
    }
    format!(
        "{LOOK} When you know enough, write a plan that another engineer could follow to {LOCAL_URL}TITLE-plan.md with write (TITLE: letters, \
         digits, _ and -), change it with edit, and call propose_plan with that title. The user approves the plan, or says what should be \
         different. Where a question is all there is, answer it without a plan."
    )
}

/// The hidden message by which the model gets an approved plan. `is_new`: the session begins with it.
pub(crate) fn plan_message(plan: &ProposedPlan, is_new: bool, timestamp: i64) -> CustomMessage {
    let ProposedPlan { title, name, text } = plan;
    let url = format!("{LOCAL_URL}{name}");
    let begin = if is_new {
        "The user has approved this plan, which was made in another session. Carry it out."
    } else {
        "The user has approved this plan, and plan mode is off. Carry it out."
    };
    let text = format!("{begin}\n\n<approved_plan path=\"{url}\">\n{}\n</approved_plan>", text.trim_end());
    CustomMessage {
        custom_type: PLAN_MESSAGE.to_owned(),
        content: MessageContent::Text(text),
        display: false,
        details: Some(json!({"title": title, "url": url})),
        timestamp,
    }
}
