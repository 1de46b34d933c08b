//! Rules on the stream in a session: which are watched, which the model was told and when, and what it is told.
//!
//! The run watches ([`crate::run`]); matching itself is [`agentd_stream_rules`].

mod session_rules;
mod texts;

pub(crate) use session_rules::{RuleChoices, SessionRules, rules_entry, told_on};
pub(crate) use texts::{follow_up, interrupt_message, reminder};
