//! Processes for real: every test starts a guard of its own.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on is to fail there")]

mod background;
mod fixture;
mod guard_loss;
mod limits;
mod listing;
mod newer;
mod output;
mod owners;
mod reuse;
mod sandbox;
mod shell_run;
mod spawn;
mod streams;
mod trees;
