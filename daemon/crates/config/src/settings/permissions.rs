//! Saving a rule of permissions: the answer "always" to a question.

use agentd_protocol::settings::PermissionRule;
use serde_json::json;

use super::save::{SaveError, add_item};
use crate::AgentDir;

/// Adds a rule to the end of `permissions.rules` of the user's settings, unless it is there. All else in the file stays as it is.
///
/// # Errors
/// [`SaveError`]; then the file is unchanged.
pub fn add_permission_rule(agent_dir: &AgentDir, rule: &PermissionRule) -> Result<(), SaveError> {
    add_item(agent_dir, &["permissions", "rules"], &json!(rule))
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
            domain: None,
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

    #[test]
    fn the_rules_that_are_there_stay_as_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(folder.path());
        let file = agent_dir.settings_file();
        let before = "{\n  \"permissions\": {\n    \"rules\": [\n      // git\n      {\"tool\":  \"bash\", \"action\": \"ask\"}, // all\n    ],\n  },\n}\n";
        fs::write(&file, before).unwrap();
        let rule = PermissionRule {
            tool: "deploy".to_owned(),
            command: None,
            path: None,
            domain: None,
            action: PermissionAction::Allow,
            reason: None,
        };
        add_permission_rule(&agent_dir, &rule).unwrap();
        let added = "// all\n      {\"tool\": \"deploy\", \"action\": \"allow\"},\n    ],";
        let after = before.replace("// all\n    ],", added);
        assert_eq!(fs::read_to_string(&file).unwrap(), after);
        add_permission_rule(&agent_dir, &rule).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), after);
    }

    #[test]
    fn a_file_that_is_read_only_stays() {
        let folder = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(folder.path());
        let file = agent_dir.settings_file();
        fs::write(&file, "{}").unwrap();
        let mut permissions = fs::metadata(&file).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&file, permissions).unwrap();
        let rule = PermissionRule {
            tool: "deploy".to_owned(),
            command: None,
            path: None,
            domain: None,
            action: PermissionAction::Allow,
            reason: None,
        };
        let error = add_permission_rule(&agent_dir, &rule).unwrap_err().to_string();
        assert!(error.contains("settings.json") && error.contains("read-only"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    }
}
