//! Failures of model calls: what they are, and how they are told apart.

mod classify;
mod kinds;
mod patterns;
mod refusal;

pub use classify::{Evidence, classify, classify_answer, classify_message, is_account_limit, stated_status};
pub use kinds::{Failure, FailureKind};
pub(crate) use refusal::{Refusal, is_refusal};
