//! The key `hooks` of a settings file.
//!
//! ```json
//! {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh", "timeout": 60}]}]}}
//! ```
//!
//! What is wrong is reported and left out; the rest counts.

use std::time::Duration;

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use serde_json::{Map, Value};

use crate::{
    dialect::Dialect,
    event::HookEvent,
    hook::{Hook, HookOrigin, HookProgram},
    matcher::Matcher,
};

/// The longest timeout: an hour.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// The most hooks of one file.
const MAX_HOOKS: usize = 500;

/// The most problems of one file that are told.
const MOST_TOLD: usize = 20;

/// Events of Claude Code that have no counterpart here: told apart from slips of the pen.
const OTHER_EVENTS: [&str; 10] = [
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "SubagentStart",
    "PostCompact",
    "Setup",
    "TeammateIdle",
    "TaskCompleted",
    "ConfigChange",
    "StopFailure",
];

/// Members of a hook that change when or how it runs, and are not understood. A hook with one would do something else than its author meant.
const NOT_UNDERSTOOD: [&str; 3] = ["args", "if", "async"];

/// The hooks that a file names.
pub(crate) struct ConfigReader<'a> {
    pub(crate) origin: &'a HookOrigin,
    pub(crate) dialect: Dialect,
    /// The time of hooks that name none.
    pub(crate) timeout: Duration,
    pub(crate) hooks: &'a mut Vec<Hook>,
    pub(crate) found: &'a mut Vec<Diagnostic>,
    told: usize,
    read: usize,
}

impl<'a> ConfigReader<'a> {
    pub(crate) fn new(
        origin: &'a HookOrigin,
        dialect: Dialect,
        timeout: Duration,
        hooks: &'a mut Vec<Hook>,
        found: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self { origin, dialect, timeout, hooks, found, told: 0, read: 0 }
    }

    /// Reads the value of the key `hooks`.
    pub(crate) fn read(&mut self, hooks: &Value) {
        let Value::Object(events) = hooks else {
            return self.wrong("\"hooks\" is ignored: expected an object of events".to_owned());
        };
        for (name, groups) in events {
            let Some(event) = HookEvent::of(name) else {
                if OTHER_EVENTS.contains(&name.as_str()) {
                    self.note(format!("hooks for \"{name}\" are not run: agentd has no such event"));
                } else {
                    self.wrong(format!(
                        "\"hooks.{name}\" is ignored: there is no event of that name ({})",
                        suggestion(name)
                    ));
                }
                continue;
            };
            let Value::Array(groups) = groups else {
                self.wrong(format!("\"hooks.{name}\" is ignored: expected a list"));
                continue;
            };
            for (index, group) in groups.iter().enumerate() {
                self.group(event, &format!("hooks.{name}[{index}]"), group);
            }
        }
    }

    fn group(&mut self, event: HookEvent, at: &str, group: &Value) {
        let Value::Object(group) = group else {
            return self.wrong(format!("\"{at}\" is ignored: expected an object with \"hooks\""));
        };
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Ok(Matcher::Every),
            Some(_) if !event.has_matchers() => Ok(Matcher::Every),
            Some(Value::String(text)) => Matcher::of(text),
            Some(_) => Err("expected a text".to_owned()),
        };
        let matcher = match matcher {
            Ok(matcher) => matcher,
            Err(why) => return self.wrong(format!("the hooks of \"{at}\" are not run: \"matcher\": {why}")),
        };
        let Some(Value::Array(hooks)) = group.get("hooks") else {
            return self.wrong(format!("\"{at}\" is ignored: \"hooks\" must be a list"));
        };
        for (index, hook) in hooks.iter().enumerate() {
            let at = format!("{at}.hooks[{index}]");
            match hook
                .as_object()
                .ok_or_else(|| "expected an object".to_owned())
                .and_then(|hook| self.hook(hook))
            {
                Ok((program, timeout)) => {
                    self.read += 1;
                    if self.read > MAX_HOOKS {
                        return self.wrong(format!(
                            "\"{at}\" and what follows is ignored: a file can have {MAX_HOOKS} hooks"
                        ));
                    }
                    self.hooks.push(Hook {
                        event,
                        matcher: matcher.clone(),
                        program,
                        timeout,
                        dialect: self.dialect,
                        origin: self.origin.clone(),
                    });
                }
                Err(why) => self.wrong(format!("the hook \"{at}\" is not run: {why}")),
            }
        }
    }

    fn hook(&self, hook: &Map<String, Value>) -> Result<(HookProgram, Duration), String> {
        match hook.get("type") {
            None => {}
            Some(Value::String(kind)) if kind == "command" => {}
            Some(Value::String(kind)) => {
                return Err(format!(
                    "\"type\" is \"{kind}\", and agentd runs hooks of the type \"command\" only"
                ));
            }
            Some(_) => return Err("\"type\" must be \"command\"".to_owned()),
        }
        let is_set = |key: &&&str| {
            hook.get(**key).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
        };
        if let Some(key) = NOT_UNDERSTOOD.iter().find(is_set) {
            return Err(format!("\"{key}\" is not understood: put what it does into the command"));
        }
        let command = match hook.get("command") {
            Some(Value::String(command)) if !command.trim().is_empty() && !command.contains('\0') => {
                command.clone()
            }
            _ => return Err("\"command\" must be a line for the shell".to_owned()),
        };
        let timeout = match hook.get("timeout") {
            None | Some(Value::Null) => self.timeout,
            Some(value) => value
                .as_f64()
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT))
                .ok_or_else(|| "\"timeout\" must be a number of seconds above 0".to_owned())?,
        };
        Ok((HookProgram::Command(command), timeout))
    }

    fn wrong(&mut self, message: String) {
        self.told += 1;
        match self.told {
            told if told < MOST_TOLD => {
                self.found.push(Diagnostic::warning(DiagnosticKind::Hook, message).at(&self.origin.path));
            }
            MOST_TOLD => {
                let message = "more is wrong with the hooks of the file";
                self.found.push(Diagnostic::warning(DiagnosticKind::Hook, message).at(&self.origin.path));
            }
            _ => {}
        }
    }

    fn note(&mut self, message: String) {
        let note = Diagnostic::warning(DiagnosticKind::Hook, message).level(DiagnosticLevel::Info);
        self.found.push(note.at(&self.origin.path));
    }
}

/// The event that was probably meant, or all.
fn suggestion(name: &str) -> String {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    match HookEvent::ALL.into_iter().find(|event| plain(event.name()) == plain(name)) {
        Some(event) => format!("did you mean \"{}\"?", event.name()),
        None => format!("there are {}", HookEvent::ALL.map(HookEvent::name).join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> (Vec<Hook>, Vec<String>) {
        let origin = HookOrigin { path: "/f/settings.json".into(), is_of_project: false };
        let (mut hooks, mut found) = (Vec::new(), Vec::new());
        ConfigReader::new(&origin, Dialect::Claude, Duration::from_secs(60), &mut hooks, &mut found)
            .read(value);
        (hooks, found.iter().map(|it| it.message.clone()).collect())
    }

    fn complaint(hook: Value) -> String {
        let (hooks, found) = read(&json!({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}));
        assert_eq!(hooks.len(), 0);
        let [said] = found.as_slice() else { panic!("{found:?}") };
        let prefix = "the hook \"hooks.PreToolUse[0].hooks[0]\" is not run: ";
        said.strip_prefix(prefix).unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    #[test]
    fn the_form_of_claude_code_is_read() {
        let (hooks, found) = read(&json!({
            "PreToolUse": [
                {"matcher": "Bash|Edit", "hooks": [
                    {"type": "command", "command": "a", "timeout": 5},
                    {"command": "b", "statusMessage": "looking", "once": true, "async": false},
                ]},
                {"hooks": [{"type": "command", "command": "c", "timeout": 1e9}]},
            ],
            "Stop": [{"matcher": "(", "hooks": [{"type": "command", "command": "d"}]}],
        }));
        assert_eq!(found, [""; 0]);
        let shown: Vec<(HookEvent, String, u64)> =
            hooks.iter().map(|hook| (hook.event, hook.to_string(), hook.timeout.as_secs())).collect();
        assert_eq!(
            shown,
            [
                (HookEvent::PreToolUse, "\"a\"".to_owned(), 5),
                (HookEvent::PreToolUse, "\"b\"".to_owned(), 60),
                (HookEvent::PreToolUse, "\"c\"".to_owned(), 3600),
                (HookEvent::Stop, "\"d\"".to_owned(), 60),
            ]
        );
        assert!(hooks[0].matcher.is_about(&["Edit"]) && !hooks[0].matcher.is_about(&["Read"]));
        assert!(hooks[2].matcher.is_about(&["Read"]));
    }

    #[test]
    fn what_is_wrong_is_left_out_and_said() {
        assert_eq!(complaint(json!("x")), "expected an object");
        assert_eq!(complaint(json!({"type": "command"})), "\"command\" must be a line for the shell");
        assert_eq!(complaint(json!({"command": " "})), "\"command\" must be a line for the shell");
        assert_eq!(
            complaint(json!({"type": "prompt", "prompt": "x"})),
            "\"type\" is \"prompt\", and agentd runs hooks of the type \"command\" only"
        );
        assert_eq!(
            complaint(json!({"command": "a", "timeout": 0})),
            "\"timeout\" must be a number of seconds above 0"
        );
        assert_eq!(
            complaint(json!({"command": "a", "if": "Bash(git *)"})),
            "\"if\" is not understood: put what it does into the command"
        );
        let (hooks, found) = read(&json!({
            "preToolUse": [], "Whatever": [], "Stop": {}, "PostCompact": [],
            "PreToolUse": [5, {"matcher": "Bash("}, {"matcher": 1, "hooks": []}, {"hooks": {}}, {"hooks": [{"command": "ok"}]}],
        }));
        assert_eq!(hooks.len(), 1);
        assert_eq!(
            found,
            [
                "\"hooks.preToolUse\" is ignored: there is no event of that name (did you mean \"PreToolUse\"?)",
                "\"hooks.Whatever\" is ignored: there is no event of that name (there are PreToolUse, PostToolUse, UserPromptSubmit, \
                 SessionStart, Stop, SubagentStop, PreCompact, Notification, SessionEnd)",
                "\"hooks.Stop\" is ignored: expected a list",
                "hooks for \"PostCompact\" are not run: agentd has no such event",
                "\"hooks.PreToolUse[0]\" is ignored: expected an object with \"hooks\"",
                "the hooks of \"hooks.PreToolUse[1]\" are not run: \"matcher\": unclosed group",
                "the hooks of \"hooks.PreToolUse[2]\" are not run: \"matcher\": expected a text",
                "\"hooks.PreToolUse[3]\" is ignored: \"hooks\" must be a list",
            ]
        );
        assert_eq!(read(&json!([])).1, ["\"hooks\" is ignored: expected an object of events"]);
        let many = vec![json!(1); 1000];
        assert_eq!(read(&json!({ "Stop": many })).1.len(), MOST_TOLD);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|it| json!(it)),
            "\\PC{0,10}".prop_map(Value::String),
            Just(json!("command")),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            let keys = "(PreToolUse|Stop|hooks|matcher|command|timeout|type|\\PC{0,4})";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec((keys, inner), 0..5)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in any_json()) {
            let (hooks, found) = read(&value);
            prop_assert!(found.len() <= 64);
            for hook in hooks {
                prop_assert!(hook.timeout > Duration::ZERO && hook.timeout <= MAX_TIMEOUT);
            }
        }
    }
}
