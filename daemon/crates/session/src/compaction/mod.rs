//! Compaction: a summary takes the place of the older part of a context, so that the conversation can go on.
//!
//! Pure: [`policy`] decides when a context is too full, [`trigger`] what an answer means for it, [`cut`] where the kept part
//! begins, [`plan`] what is summarised; [`conversation`] and [`files`] turn that into text. Driving: [`worker`] reaches the
//! session, [`summarise`] asks the model, [`work`] does a whole compaction, [`branch`] the summary of a branch that the
//! conversation leaves. [`slot`] holds the one summary that a command asked for.

mod branch;
mod conversation;
mod cut;
mod error;
mod extension;
mod files;
mod hooks;
mod plan;
mod policy;
mod slot;
mod summarise;
#[cfg(test)]
mod testing;
mod trigger;
mod work;
mod worker;

pub(crate) use branch::{BranchFocus, BranchPlan, plan_branch, summarise_branch};
pub(crate) use error::CompactionError;
pub(crate) use plan::{Plan, PlanRequest, plan_compaction};
pub(crate) use policy::{CompactionPolicy, branch_budget};
pub(crate) use slot::{Compacting, SummaryEnding, WORK};
pub(crate) use trigger::{LastAnswer, OverflowRetry, OverflowRetryGuard, Trigger};
pub(crate) use work::{CompactionOrder, end, manual};
pub(crate) use worker::{CompactionMessage, CompactionWorker};
