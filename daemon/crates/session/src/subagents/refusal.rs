//! Whether a subagent that has ended can go on. Pure.

use agentd_protocol::subagent::{AgentSource, SubagentSnapshot};

/// Why a subagent cannot go on; `None` where it can.
pub(super) fn refusal(snapshot: &SubagentSnapshot) -> Option<String> {
    let id = &snapshot.id;
    if snapshot.agent_source == AgentSource::Extension {
        return Some(format!("The agent {id} is run by an extension, and takes messages of that alone."));
    }
    if snapshot.status.is_active() {
        return Some(format!("The subagent {id} is coming to its end. Send the message again when it has."));
    }
    if snapshot.isolated {
        return Some(format!(
            "The subagent {id} worked in a copy of the repository that is gone, so that it cannot go on. Start another one."
        ));
    }
    if snapshot.session_file.is_none() {
        return Some(format!("The subagent {id} left no session that could go on. Start another one."));
    }
    None
}

#[cfg(test)]
mod tests {
    use agentd_protocol::subagent::SubagentStatus;

    use super::*;

    #[test]
    fn what_cannot_go_on_is_refused() {
        let ended = SubagentSnapshot {
            id: "A".into(),
            index: 0,
            agent: "task".into(),
            agent_source: AgentSource::Bundled,
            status: SubagentStatus::Interrupted,
            task: None,
            session_id: None,
            session_file: Some("/s".into()),
            last_update: 0,
            progress: None,
            parent_tool_call_id: None,
            isolated: false,
            error: None,
        };
        assert_eq!(refusal(&ended), None);
        let refused = |snapshot: SubagentSnapshot| refusal(&snapshot).unwrap_or_default();
        let active = SubagentSnapshot { status: SubagentStatus::Running, ..ended.clone() };
        assert!(refused(active).contains("coming to its end"));
        assert!(refused(SubagentSnapshot { isolated: true, ..ended.clone() }).contains("a copy"));
        assert!(refused(SubagentSnapshot { session_file: None, ..ended }).contains("left no session"));
    }
}
