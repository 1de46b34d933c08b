//! The agentd daemon: sessions, tools and models behind JSON Lines.
//!
//! This crate only composes: [`cli`] reads the command line, [`admin`] handles the user's set-up, [`compose`] names the concrete
//! providers and tools, [`hub`] holds the sessions, [`transport`] moves lines, [`connection`] serves one client, [`limits`] names every
//! limit, and [`serve`] ties them together.

pub mod admin;
pub mod bug_report;
pub mod cli;
pub mod compose;
pub mod connection;
pub mod daemon_limits;
pub mod export;
pub mod fsck;
pub mod hub;
pub mod limits;
pub mod list_models;
pub mod logging;
pub mod mcp_edit;
pub mod packages;
pub mod policy_check;
pub mod record_replay;
pub mod serve;
mod telemetry;
pub mod transport;
pub mod usage;
