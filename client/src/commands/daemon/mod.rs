//! The daemon of this user: starting, ending and looking at it.

mod down;
mod gone;
mod logs;
mod status;
mod up;

use std::future::Future;

pub(crate) use self::{
    down::down,
    logs::{logs, tail as log_tail},
    status::status,
    up::up,
};
use super::one_call;
use crate::{
    exit::{Exit, Fault},
    signals::Signals,
};

/// Does the work on a runtime of its own, to the end of the program; a signal ends it without a word.
fn run(work: impl Future<Output = Result<Exit, Fault>>) -> Exit {
    one_call::conclude(block_on(work))
}

/// Does the work on a runtime of its own; a signal ends it without a word.
///
/// # Errors
/// Those of the work, and when the system refuses what a runtime needs.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let broken = |error: std::io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        tokio::select! {
            biased;
            exit = signals.next() => Err(Fault::new(exit, "")),
            done = work => done,
        }
    })
}
