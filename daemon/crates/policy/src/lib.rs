//! Permissions: which tool calls and shell commands run, which are asked about, and which are refused.
//!
//! [`Policy::decide`] gives the verdict for a call, from the rules and the preset of the settings `permissions`. It starts nothing and
//! waits for nothing; it only looks at links in the file system, to know where a path leads. A policy is a guard against mistakes and
//! against models that were talked into something. It is no sandbox: what an allowed program does is its own affair.

mod command;
mod compiled;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod launcher;
mod looks;
mod parsed;
mod paths;
mod policy;
mod project;
mod repository;
mod rule;
pub mod shell;
mod suggest;
mod variables;
mod wrapper;

pub use compiled::{DecidingRule, PolicyError, PolicyOptions, RuleLayer, RuleSource};
pub use parsed::ParsedCommand;
pub use policy::{Policy, PolicyDecision, Subject};
pub use project::{ProjectPolicy, ProjectPolicyError};
