//! Plan mode, in words.

use agentd_protocol::{
    agent_mode::{AgentMode, ModeChanged, PROPOSE_PLAN_TOOL},
    event::ToolExecutionUpdate,
    message::ContentBlock,
};

use crate::{one_line, short_id};

/// The line about another mode of the session.
pub fn mode_changed(changed: &ModeChanged) -> String {
    match (&changed.plan, changed.mode) {
        (Some(plan), _) => {
            let title = one_line(&plan.title);
            match &plan.session_id {
                Some(id) => {
                    format!("The plan {title} is approved; the session {} carries it out.", short_id(id))
                }
                None => format!("The plan {title} is approved; plan mode is off."),
            }
        }
        (None, AgentMode::Plan) => {
            "Plan mode is on: nothing is changed before you have approved a plan.".to_owned()
        }
        (None, AgentMode::Default) => "Plan mode is off.".to_owned(),
    }
}

/// The plan that a call proposes, while the user is asked about it.
pub fn proposed_plan(update: &ToolExecutionUpdate) -> Option<String> {
    let texts = update.partial_result.content.iter().filter_map(ContentBlock::as_text);
    (update.tool_name == PROPOSE_PLAN_TOOL).then(|| texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_has_a_sentence() {
        let line = |json: serde_json::Value| mode_changed(&serde_json::from_value(json).unwrap());
        assert!(line(json!({"mode": "plan", "by": "x"})).starts_with("Plan mode is on"));
        assert_eq!(line(json!({"mode": "default"})), "Plan mode is off.");
        let plan = json!({"title": "go", "url": "local://go-plan.md"});
        assert_eq!(
            line(json!({"mode": "default", "plan": plan})),
            "The plan go is approved; plan mode is off."
        );
        let plan = json!({"title": "go", "url": "local://go-plan.md", "sessionId": "0199-abc"});
        assert!(line(json!({"mode": "default", "plan": plan})).contains("carries it out"));
    }
}
