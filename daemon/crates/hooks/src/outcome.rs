//! What all hooks of an event want together. Pure.

use serde_json::{Map, Value};

use crate::reply::{Decision, HookReply};

/// What all hooks of an event want together, in the order of the hooks.
///
/// A hook can only make things stricter: one that says no counts whatever others say, one that wants the user to be asked counts unless
/// one says no, and a yes is as good as no answer: the permissions decide as they would without hooks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutcome {
    /// It must not happen, or not be over: why, one reason after the other.
    pub block: Option<String>,
    /// The user is to be asked: why.
    pub ask: Option<String>,
    /// Other arguments of the call, as the tool takes them: those of the last hook that gave some.
    pub arguments: Option<Map<String, Value>>,
    /// What the model is to know.
    pub contexts: Vec<NamedText>,
    /// The run is to end: why.
    pub stop: Option<String>,
    /// What the user is told.
    pub notices: Vec<String>,
}

/// A text of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// The hook, for people.
    pub hook: String,
    /// The text.
    pub text: String,
}

impl HookOutcome {
    /// Of the answers, each with the name of its hook.
    pub(crate) fn merged(replies: impl IntoIterator<Item = (String, HookReply)>) -> Self {
        let mut outcome = Self::default();
        let mut changed_by: Option<String> = None;
        for (hook, reply) in replies {
            let HookReply { decision, arguments, context, stop, notices } = reply;
            match decision {
                Some(Decision::Block(reason)) => add(&mut outcome.block, &reason),
                Some(Decision::Ask(reason)) => add(&mut outcome.ask, &reason),
                Some(Decision::Allow) | None => {}
            }
            if let Some(arguments) = arguments {
                outcome.arguments = Some(arguments);
                if let Some(before) = changed_by.replace(hook.clone()) {
                    let text = format!(
                        "The hooks {before} and {hook} both change the arguments; those of {hook} count."
                    );
                    outcome.notices.push(text);
                }
            }
            outcome.contexts.extend(context.map(|text| NamedText { hook, text }));
            if let Some(stop) = stop {
                add(&mut outcome.stop, &stop);
            }
            outcome.notices.extend(notices);
        }
        outcome
    }
}

fn add(to: &mut Option<String>, reason: &str) {
    match to {
        Some(text) => {
            text.push('\n');
            text.push_str(reason);
        }
        None => *to = Some(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn with(decision: Decision) -> HookReply {
        HookReply { decision: Some(decision), ..HookReply::default() }
    }

    fn merged(replies: Vec<HookReply>) -> HookOutcome {
        HookOutcome::merged(
            replies.into_iter().enumerate().map(|(index, reply)| (format!("h{index}"), reply)),
        )
    }

    #[test]
    fn a_no_counts_and_a_yes_permits_nothing() {
        let outcome = merged(vec![
            with(Decision::Allow),
            with(Decision::Block("one".into())),
            with(Decision::Ask("well".into())),
            with(Decision::Block("two".into())),
        ]);
        assert_eq!(outcome.block.as_deref(), Some("one\ntwo"));
        assert_eq!(outcome.ask.as_deref(), Some("well"));
        assert_eq!(merged(vec![with(Decision::Allow)]), HookOutcome::default());
    }

    #[test]
    fn the_last_arguments_count_and_two_changes_are_told() {
        let change =
            |value: Value| HookReply { arguments: value.as_object().cloned(), ..HookReply::default() };
        let outcome = merged(vec![change(json!({"a": 1})), HookReply::default(), change(json!({"a": 2}))]);
        assert_eq!(outcome.arguments, json!({"a": 2}).as_object().cloned());
        assert_eq!(outcome.notices, ["The hooks h0 and h2 both change the arguments; those of h2 count."]);
    }

    fn any_reply() -> impl Strategy<Value = HookReply> {
        let decision = prop_oneof![Just(None), Just(Some(0)), Just(Some(1)), Just(Some(2)),];
        (decision, "[a-z]{1,3}", any::<bool>(), any::<bool>()).prop_map(
            |(decision, text, has_context, stops)| HookReply {
                decision: decision.map(|kind| match kind {
                    0 => Decision::Allow,
                    1 => Decision::Ask(text.clone()),
                    _ => Decision::Block(text.clone()),
                }),
                arguments: None,
                context: has_context.then(|| text.clone()),
                stop: stops.then(|| text.clone()),
                notices: vec![text],
            },
        )
    }

    proptest! {
        /// However many hooks there are and in whatever order: one more loosens nothing.
        #[test]
        fn one_more_hook_loosens_nothing(
            mut replies in prop::collection::vec(any_reply(), 0..6),
            more in any_reply(),
            at in 0..6_usize,
        ) {
            let make = |replies: &[HookReply]| {
                let copy = |reply: &HookReply| HookReply {
                    decision: reply.decision.as_ref().map(|decision| match decision {
                        Decision::Allow => Decision::Allow,
                        Decision::Ask(text) => Decision::Ask(text.clone()),
                        Decision::Block(text) => Decision::Block(text.clone()),
                    }),
                    arguments: None,
                    context: reply.context.clone(),
                    stop: reply.stop.clone(),
                    notices: reply.notices.clone(),
                };
                merged(replies.iter().map(copy).collect())
            };
            let before = make(&replies);
            replies.insert(at.min(replies.len()), more);
            let after = make(&replies);
            prop_assert!(before.block.is_none() || after.block.is_some());
            prop_assert!(before.ask.is_none() || after.ask.is_some());
            prop_assert!(before.stop.is_none() || after.stop.is_some());
            prop_assert_eq!(after.contexts.len(), replies.iter().filter(|reply| reply.context.is_some()).count());
            prop_assert_eq!(
                after.block.is_some(),
                replies.iter().any(|reply| matches!(reply.decision, Some(Decision::Block(_))))
            );
            let notices: Vec<String> = replies.iter().flat_map(|reply| reply.notices.clone()).collect();
            prop_assert_eq!(after.notices, notices);
        }
    }
}
