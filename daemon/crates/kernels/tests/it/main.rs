//! The tool `eval` with real interpreters.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on is to fail there")]

mod bench;
mod ends;
mod javascript;
mod python;
mod tools;
