//! The loop against a host, a model and tools made of tables.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod fakes;
mod gate;
mod loop_order;
mod stopping;
mod tools;
