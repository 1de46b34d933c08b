//! Gives files back what they were.
//!
//! Only what the agent left is replaced: a path whose present state is another one is a conflict, named and left. No path is
//! followed through a link: each folder of it is opened from the one above, and the change is made in that open folder. What is
//! about to be done is on the disk before it begins, so that a restoring that was killed is completed by the next look at the
//! session's checkpoints.

mod carry_out;
mod place;
mod plan;

pub(crate) use carry_out::{contents_of, perform, resume};
pub(crate) use plan::{Plan, plan};

/// What restoring does to the paths of a kind, for tests.
#[cfg(test)]
pub(crate) fn count(
    answer: &agentd_protocol::checkpoints::RestoredCheckpoint,
    kind: agentd_protocol::checkpoints::ChangeKind,
) -> usize {
    answer.restored.iter().filter(|path| path.change == kind).count()
}
