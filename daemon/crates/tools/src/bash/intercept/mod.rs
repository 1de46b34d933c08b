//! Refuses commands that another tool does better.

mod built_in;
pub(super) mod words;

use std::{fmt, sync::Arc};

use agentd_protocol::settings::{Intercept, InterceptRule};
use regex::Regex;

use self::built_in::Suggestion;

/// Whether a tool of the session is active, by its name.
pub type IsActive = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Refuses commands by rules, in favour of active tools.
#[derive(Clone)]
pub struct Interception {
    rules: Rules,
    is_active: IsActive,
}

#[derive(Debug, Clone)]
enum Rules {
    BuiltIn,
    Own(Vec<Rule>),
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: Regex,
    tool: Option<String>,
    message: Option<String>,
}

impl fmt::Debug for Interception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interception").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Interception {
    /// The interception that the setting `bash.intercept` describes; `None` when it refuses nothing. A rule whose
    /// pattern is not a regular expression is skipped: reading the setting has reported it.
    pub fn of(setting: Option<&Intercept>, is_active: IsActive) -> Option<Self> {
        let rule = |rule: &InterceptRule| {
            let InterceptRule { pattern, tool, message } = rule.clone();
            Some(Rule { pattern: Regex::new(&pattern).ok()?, tool, message })
        };
        let rules = match setting? {
            Intercept::BuiltIn(false) => return None,
            Intercept::BuiltIn(true) => Rules::BuiltIn,
            Intercept::Rules(rules) => Rules::Own(rules.iter().filter_map(rule).collect()),
        };
        Some(Self { rules, is_active })
    }

    /// Why a command is refused, with what to do instead; `None` lets it run.
    pub(super) fn refusal(&self, command: &str) -> Option<String> {
        match &self.rules {
            Rules::BuiltIn => {
                let Suggestion { tool, arguments } =
                    built_in::suggestion(command).filter(|suggestion| (self.is_active)(suggestion.tool))?;
                Some(format!(
                    "The command was not run: the tool {tool} does this better. Call {tool} with {arguments}. Where \
                     only the shell will do, put `command ` before the command."
                ))
            }
            Rules::Own(rules) => {
                let counts = |rule: &&Rule| rule.tool.as_deref().is_none_or(|tool| (self.is_active)(tool));
                let rule = rules.iter().filter(counts).find(|rule| rule.pattern.is_match(command))?;
                let what = match (&rule.message, &rule.tool) {
                    (Some(message), _) => message.clone(),
                    (None, Some(tool)) => format!("Use the tool {tool} instead."),
                    (None, None) => "The user's settings do not allow it.".to_owned(),
                };
                Some(format!("The command was not run. {what}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interception(setting: &Intercept, active: &'static [&'static str]) -> Option<Interception> {
        Interception::of(Some(setting), Arc::new(|name| active.contains(&name)))
    }

    fn rule(pattern: &str, tool: Option<&str>, message: Option<&str>) -> InterceptRule {
        InterceptRule {
            pattern: pattern.into(),
            tool: tool.map(str::to_owned),
            message: message.map(str::to_owned),
        }
    }

    #[test]
    fn built_in_rules_count_where_their_tool_is_active() {
        let all = interception(&Intercept::BuiltIn(true), &["read", "bash"]).unwrap();
        assert_eq!(
            all.refusal("cat a.txt").unwrap(),
            "The command was not run: the tool read does this better. Call read with {\"path\":\"a.txt\"}. Where only \
             the shell will do, put `command ` before the command."
        );
        assert_eq!(all.refusal("command cat a.txt"), None);
        assert_eq!(all.refusal("ls src"), None, "ls is not active");
        assert!(interception(&Intercept::BuiltIn(false), &["read"]).is_none());
        assert!(Interception::of(None, Arc::new(|_| true)).is_none());
    }

    #[test]
    fn rules_of_ones_own_are_tried_in_order() {
        let rules = vec![
            rule("^npm ", Some("nothing"), Some("Never told.")),
            rule("(", None, Some("Broken.")),
            rule("^npm (i|install)", None, Some("Use pnpm.")),
            rule("^npm ", None, None),
            rule("^cat ", Some("read"), None),
        ];
        let own = interception(&Intercept::Rules(rules), &["read"]).unwrap();
        let told = |command: &str| own.refusal(command);
        assert_eq!(told("npm install x").unwrap(), "The command was not run. Use pnpm.");
        assert_eq!(
            told("npm test").unwrap(),
            "The command was not run. The user's settings do not allow it."
        );
        assert_eq!(told("cat x | sort").unwrap(), "The command was not run. Use the tool read instead.");
        assert_eq!(told("pnpm test"), None);
    }
}
