//! Isolated copies of real repositories.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on is to fail there")]

mod basics;
mod bench;
mod branches;
mod kills;
mod nested;
mod patches;
mod random;
mod refusals;
mod text_rules;
