//! The agentd daemon: sessions, tools and models behind JSON Lines.
//!
//! This crate only composes: [`cli`] reads the command line, [`admin`] looks at the user's set-up, [`compose`] names the concrete providers and tools, [`hub`]
//! knows the live sessions, [`transport`] moves lines, [`connection`] serves one client, [`serve`] ties them together.

pub mod admin;
pub mod bug_report;
pub mod cli;
pub mod compose;
pub mod connection;
pub mod daemon_limits;
pub mod export;
pub mod fsck;
pub mod hardening;
pub mod hub;
pub mod limits;
pub mod list_models;
pub mod logging;
pub mod serve;
pub mod traffic;
pub mod transport;

pub use logging::complain;
