//! Rules on the stream: regular expressions on what a model writes, matched while it writes.
//!
//! [`StreamRules`] are compiled once for all answers; an [`AnswerWatch`] follows one answer. What was read is never read again: each stream of
//! text has the state of an automaton, which steps from byte to byte. No I/O, no sessions: the caller says what a match means.

mod arguments;
mod patterns;
mod rule;
mod scope;
mod watch;

pub use rule::{InterruptMode, RuleProblem, RuleText, StreamRule, StreamRules};
pub use watch::AnswerWatch;
