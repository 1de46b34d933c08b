//! The agentd daemon: sessions, tools and models behind JSON Lines.
//!
//! This crate only composes: [`cli`] reads the command line, [`admin`] looks at the user's set-up, [`compose`] names the concrete providers and tools, [`hub`]
//! knows the live sessions, [`transport`] moves lines, [`connection`] serves one client, [`serve`] ties them together.

pub mod admin;
pub mod bug_report;
pub mod cli;
pub mod compose;
pub mod connection;
pub mod export;
pub mod hub;
pub mod list_models;
pub mod logging;
pub mod serve;
pub mod traffic;
pub mod transport;

use std::io::Write;

/// Tells the user something on stderr.
pub fn complain(message: &str) {
    // With stderr closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}
