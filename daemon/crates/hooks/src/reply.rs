//! What one hook wants, by its exit code and what it printed. Pure.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    arguments::to_own,
    dialect::Dialect,
    event::HookEvent,
    hook::Hook,
    process::{HowEnded, MAX_KEPT, ProcessEnd},
};

/// The bytes of a hook's output that reach a model or a user.
const MAX_TEXT: usize = 10 << 10;

/// The exit code that says no.
const BLOCKS: i32 = 2;

/// What one hook wants.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HookReply {
    /// What it says of a call, a message, or the end.
    pub(crate) decision: Option<Decision>,
    /// Other arguments, as the tool takes them.
    pub(crate) arguments: Option<Map<String, Value>>,
    /// What the model is to know.
    pub(crate) context: Option<String>,
    /// The run is to end: why.
    pub(crate) stop: Option<String>,
    /// What the user is told.
    pub(crate) notices: Vec<String>,
}

/// What a hook says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// No.
    Block(String),
    /// The user is to be asked.
    Ask(String),
    /// It has nothing against it. That permits nothing that something else forbids or asks about.
    Allow,
}

/// Reads the answer of a hook to an event about `tool`.
pub(crate) fn reply(hook: &Arc<Hook>, tool: Option<&str>, end: &ProcessEnd) -> HookReply {
    let event = hook.event;
    // Without its answer, what it guards must not happen.
    let unanswered = |what: String| {
        let text = format!("The hook {hook} {what}.");
        if event.fails_closed() {
            HookReply { decision: Some(Decision::Block(text)), ..HookReply::default() }
        } else {
            HookReply { notices: vec![text], ..HookReply::default() }
        }
    };
    match &end.how {
        HowEnded::Exited(0) => answer(hook, tool, end),
        HowEnded::Exited(BLOCKS) => {
            let reason = cut(end.errors.text());
            let reason =
                if reason.is_empty() { format!("The hook {hook} says no (exit code 2).") } else { reason };
            if event.can_block() {
                HookReply { decision: Some(Decision::Block(reason)), ..HookReply::default() }
            } else {
                HookReply { notices: vec![reason], ..HookReply::default() }
            }
        }
        HowEnded::Exited(code) => {
            let said = cut(end.errors.text());
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            let text = format!("The {} hook {hook} failed with exit code {code}{said}", event.name());
            HookReply { notices: vec![text], ..HookReply::default() }
        }
        HowEnded::TimedOut => {
            unanswered(format!("did not end within {} seconds and was killed", hook.timeout.as_secs_f64()))
        }
        HowEnded::Killed(by) => unanswered(format!("was killed ({by})")),
        HowEnded::NotStarted(why) => unanswered(format!("could not be run: {}", why.trim_end_matches('.'))),
        HowEnded::Aborted => unanswered("was stopped".to_owned()),
    }
}

/// The answer of a hook that ended well.
fn answer(hook: &Arc<Hook>, tool: Option<&str>, end: &ProcessEnd) -> HookReply {
    let event = hook.event;
    let text = end.output.text();
    if !text.starts_with('{') {
        let context = (event.takes_plain_text() && !text.is_empty()).then(|| cut(text));
        return HookReply { context, ..HookReply::default() };
    }
    if end.output.is_cut {
        let text = format!("The answer of the hook {hook} is longer than {MAX_KEPT} bytes.");
        return if event.fails_closed() {
            HookReply { decision: Some(Decision::Block(text)), ..HookReply::default() }
        } else {
            HookReply { notices: vec![text], ..HookReply::default() }
        };
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(members)) => JsonAnswer { hook, tool, members }.reply(),
        _ if event.takes_plain_text() => HookReply { context: Some(cut(text)), ..HookReply::default() },
        Ok(_) => HookReply::default(),
        Err(error) => {
            let text = format!(
                "The answer of the {} hook {hook} is no JSON and does not count: {error}",
                event.name()
            );
            HookReply { notices: vec![text], ..HookReply::default() }
        }
    }
}

struct JsonAnswer<'a> {
    hook: &'a Arc<Hook>,
    tool: Option<&'a str>,
    members: Map<String, Value>,
}

impl JsonAnswer<'_> {
    fn reply(mut self) -> HookReply {
        let mut reply = HookReply::default();
        let specific = match self.members.remove("hookSpecificOutput") {
            Some(Value::Object(specific)) => specific,
            _ => Map::new(),
        };
        let text = |members: &Map<String, Value>, key: &str| {
            let text =
                members.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
            text.map(|text| cut(text.to_owned()))
        };
        reply.notices.extend(text(&self.members, "systemMessage"));
        if self.members.get("continue") == Some(&Value::Bool(false)) {
            let reason = text(&self.members, "stopReason");
            reply.stop = Some(reason.unwrap_or_else(|| format!("The hook {} ended the work.", self.hook)));
        }
        reply.context = text(&specific, "additionalContext");
        let reason = text(&specific, "permissionDecisionReason").or_else(|| text(&self.members, "reason"));
        let said = specific.get("permissionDecision").or_else(|| self.members.get("decision"));
        reply.decision = said.and_then(|said| self.decision(said, reason));
        if self.hook.event == HookEvent::PreToolUse
            && let Some(Value::Object(updated)) = specific.get("updatedInput")
            && let Some(tool) = self.tool
        {
            let updated = updated.clone();
            reply.arguments = Some(match self.hook.dialect {
                Dialect::Own => updated,
                Dialect::Claude => to_own(tool, updated),
            });
        }
        reply
    }

    fn decision(&self, said: &Value, reason: Option<String>) -> Option<Decision> {
        let event = self.hook.event;
        let or_else = |text: String| reason.clone().unwrap_or(text);
        match said.as_str() {
            Some("block" | "deny") if event.can_block() => {
                Some(Decision::Block(or_else(format!("The hook {} says no.", self.hook))))
            }
            Some("ask") if event == HookEvent::PreToolUse => {
                Some(Decision::Ask(or_else(format!("the hook {} wants you to decide", self.hook))))
            }
            Some("allow" | "approve") => Some(Decision::Allow),
            None if said.is_null() => None,
            // An answer that nobody understands is no yes.
            _ if event.fails_closed() => {
                let text = format!("The decision {said} of the hook {} is not understood.", self.hook);
                Some(Decision::Block(cut(text)))
            }
            _ => None,
        }
    }
}

/// At most as much of a text as may go on.
fn cut(text: String) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let end = agentd_protocol::text_bounds::floor(&text, MAX_TEXT);
    format!("{}\n[{} more bytes of the hook are left out]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        hook::{HookOrigin, HookProgram},
        matcher::Matcher,
        process::Captured,
    };

    fn hook(event: HookEvent) -> Arc<Hook> {
        Arc::new(Hook {
            event,
            matcher: Matcher::Every,
            program: HookProgram::Command("check.sh".into()),
            timeout: Duration::from_millis(1500),
            dialect: Dialect::Claude,
            origin: HookOrigin { path: "/f".into(), is_of_project: true },
        })
    }

    fn of(event: HookEvent, how: HowEnded, output: &str, errors: &str) -> HookReply {
        let end = ProcessEnd { how, output: Captured::of(output), errors: Captured::of(errors) };
        reply(&hook(event), Some("write"), &end)
    }

    fn says(event: HookEvent, answer: Value) -> HookReply {
        of(event, HowEnded::Exited(0), &answer.to_string(), "")
    }

    fn block(text: &str) -> HookReply {
        HookReply { decision: Some(Decision::Block(text.into())), ..HookReply::default() }
    }

    fn notice(text: &str) -> HookReply {
        HookReply { notices: vec![text.into()], ..HookReply::default() }
    }

    use HookEvent::{
        Notification, PostToolUse, PreCompact, PreToolUse, SessionStart, Stop, UserPromptSubmit,
    };
    use HowEnded::{Exited, Killed, NotStarted, TimedOut};

    #[test]
    fn exit_codes() {
        for event in HookEvent::ALL {
            assert_eq!(of(event, Exited(0), "", "noise"), HookReply::default());
        }
        for event in [PreToolUse, PostToolUse, UserPromptSubmit, Stop, PreCompact] {
            assert_eq!(of(event, Exited(2), "{\"decision\":\"approve\"}", "no\n"), block("no"));
        }
        assert_eq!(of(PreToolUse, Exited(2), "", ""), block("The hook \"check.sh\" says no (exit code 2)."));
        assert_eq!(of(SessionStart, Exited(2), "", "no"), notice("no"));
        assert_eq!(
            of(PreToolUse, Exited(127), "", "not found"),
            notice("The PreToolUse hook \"check.sh\" failed with exit code 127: not found")
        );
        assert_eq!(
            of(Stop, Exited(1), "x", ""),
            notice("The Stop hook \"check.sh\" failed with exit code 1")
        );
    }

    #[test]
    fn a_guard_without_an_answer_says_no() {
        let late = "The hook \"check.sh\" did not end within 1.5 seconds and was killed.";
        assert_eq!(of(PreToolUse, TimedOut, "", ""), block(late));
        assert_eq!(of(PostToolUse, TimedOut, "", ""), notice(late));
        assert_eq!(
            of(PreToolUse, Killed("signal 9".into()), "", ""),
            block("The hook \"check.sh\" was killed (signal 9).")
        );
        assert_eq!(
            of(PreToolUse, NotStarted("no shell.".into()), "", ""),
            block("The hook \"check.sh\" could not be run: no shell.")
        );
        assert_eq!(
            says(PreToolUse, json!({"hookSpecificOutput": {"permissionDecision": "maybe"}})),
            block("The decision \"maybe\" of the hook \"check.sh\" is not understood.")
        );
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_KEPT));
        assert_eq!(
            of(PreToolUse, Exited(0), &long, ""),
            block("The answer of the hook \"check.sh\" is longer than 1048576 bytes.")
        );
    }

    #[test]
    fn answers_in_json() {
        assert_eq!(
            says(PostToolUse, json!({"decision": "block", "reason": " lint failed "})),
            block("lint failed")
        );
        assert_eq!(says(Stop, json!({"decision": "block"})), block("The hook \"check.sh\" says no."));
        assert_eq!(
            says(
                PreToolUse,
                json!({
                    "decision": "block", "systemMessage": "hello", "suppressOutput": true,
                    "hookSpecificOutput": {
                        "hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "big",
                        "updatedInput": {"file_path": "/x", "content": "y"}, "additionalContext": "note",
                    },
                })
            ),
            HookReply {
                decision: Some(Decision::Ask("big".into())),
                arguments: json!({"path": "/x", "content": "y"}).as_object().cloned(),
                context: Some("note".into()),
                stop: None,
                notices: vec!["hello".into()],
            }
        );
        assert_eq!(says(PreToolUse, json!({"decision": "approve"})).decision, Some(Decision::Allow));
        assert_eq!(says(Notification, json!({"decision": "block"})), HookReply::default());
        let stops = |answer: Value| says(PostToolUse, answer).stop;
        assert_eq!(stops(json!({"continue": false, "stopReason": "enough"})).as_deref(), Some("enough"));
        assert_eq!(
            stops(json!({"continue": false})).as_deref(),
            Some("The hook \"check.sh\" ended the work.")
        );
        assert_eq!(stops(json!({"continue": true, "stopReason": "enough"})), None);
        assert_eq!(
            says(PostToolUse, json!({"hookSpecificOutput": {"updatedInput": {"a": 1}}})).arguments,
            None
        );
    }

    #[test]
    fn plain_text_is_context_where_there_is_room_for_it() {
        assert_eq!(of(SessionStart, Exited(0), " branch main\n", "").context.as_deref(), Some("branch main"));
        assert_eq!(of(UserPromptSubmit, Exited(0), "{not json", "").context.as_deref(), Some("{not json"));
        assert_eq!(of(PreToolUse, Exited(0), "looks fine", ""), HookReply::default());
        assert!(
            of(PreToolUse, Exited(0), "{not json", "").notices[0].contains("is no JSON and does not count")
        );
        let long = of(SessionStart, Exited(0), &"é".repeat(MAX_TEXT), "").context.unwrap();
        assert!(
            long.ends_with("\n[10240 more bytes of the hook are left out]") && long.len() < MAX_TEXT + 60
        );
    }

    proptest! {
        #[test]
        fn any_output_is_understood_somehow(output in "\\PC{0,60}", errors in "\\PC{0,20}", code in -3..130_i32) {
            for event in HookEvent::ALL {
                let reply = of(event, Exited(code), &output, &errors);
                if code != 0 {
                    prop_assert!(reply.context.is_none() && reply.arguments.is_none() && reply.stop.is_none());
                }
            }
        }
    }
}
