//! Tools at work on real files and processes.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on is to fail there")]

mod bash;
mod session_shell;
mod ssh;
mod ssh_tool;
mod syntax;
