//! Saving a rule of permissions: the answer "always" to a question.

use agentd_protocol::settings::PermissionRule;
use serde_json::{Value, json};

use super::save::{SaveError, update};
use crate::AgentDir;

/// Adds a rule to the end of `permissions.rules` of the user's settings, unless it is there. All else in the file stays as it is.
///
/// # Errors
/// [`SaveError`]; then the file is unchanged.
pub fn add_permission_rule(agent_dir: &AgentDir, rule: &PermissionRule) -> Result<(), SaveError> {
    let rule = json!(rule);
    update(agent_dir, &["permissions", "rules"], |before| {
        let mut rules = before.and_then(Value::as_array).cloned().unwrap_or_default();
        if !rules.contains(&rule) {
            rules.push(rule.clone());
        }
        Value::Array(rules)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_protocol::settings::PermissionAction;

    use super::*;

    #[test]
    fn rules_are_added_once() {
        let folder = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(folder.path());
        fs::write(agent_dir.settings_file(), "{\n  // mine\n  \"permissions\": {\"preset\": \"ask\"}\n}\n")
            .unwrap();
        let rule = |command: &str| PermissionRule {
            tool: "bash".to_owned(),
            command: Some(command.to_owned()),
            path: None,
            action: PermissionAction::Allow,
            reason: None,
        };
        for command in ["ls *", "cargo test *", "ls *"] {
            add_permission_rule(&agent_dir, &rule(command)).unwrap();
        }
        let text = fs::read_to_string(agent_dir.settings_file()).unwrap();
        assert!(text.contains("// mine") && text.contains("\"preset\": \"ask\""), "{text}");
        assert_eq!(text.matches("\"allow\"").count(), 2, "{text}");
    }
}
