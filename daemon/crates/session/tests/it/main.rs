//! Live sessions with a model and tools that do what the test says, step by step.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod abort;
mod asking_first;
mod attach;
mod client_tools;
mod closing;
mod continuing;
mod dialogs;
mod fixture;
mod fold;
mod summary;
mod unload;
