//! The types that cross a process boundary of agentd: data only, no I/O.
//!
//! The protocol is JSON Lines: one JSON object per line, ended by LF. A client writes [`command`]s; the daemon answers
//! each with one [`frame::Response`] and sends [`event`]s in between. [`message`] and [`entry`] are the vocabulary of
//! transcripts and of the session files that hold them.
//!
//! Two tables define the protocol: the one in [`command`] (name, parameters, result, who may send it when) and the one in [`event`] (name,
//! payload). Dispatch, name lists and the JSON Schema files in `schemas/` come from them, so that a command or an
//! event exists in one place.

pub mod agent_mode;
pub mod ask;
pub mod budget;
pub mod capabilities;
pub mod checkpoints;
pub mod chunked;
pub mod client_tools;
pub mod command;
pub mod compaction;
pub mod credentials;
pub mod daemon;
pub mod doctor;
pub mod entry;
pub mod error;
pub mod eval;
pub mod eval_executor;
pub mod event;
pub mod event_filter;
pub mod exit_code;
pub mod explain;
pub mod extensions;
pub mod frame;
pub mod fsck;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod host_tools;
pub mod host_uris;
pub mod image_kind;
pub mod isolation;
pub mod jobs;
mod json;
pub mod json_text;
pub mod lines;
pub mod mcp;
pub mod mcp_edit;
pub mod message;
pub mod message_pages;
pub mod model;
pub mod model_list;
pub mod models_file;
pub mod number;
pub mod oauth_setting;
pub mod package_request;
pub mod patch;
pub mod permissions;
pub mod plain_path;
pub mod policy_check;
pub mod prompt_history;
pub mod prompt_records;
pub mod prompt_result;
pub mod prompt_text;
pub mod remote_hosts;
pub mod resources;
pub mod sandbox;
#[cfg(feature = "schema")]
pub mod schema;
pub mod secret;
pub mod session;
pub mod settings;
pub mod shown_url;
pub mod socket_path;
pub mod storage;
pub mod stream_rules;
pub mod subagent;
mod surrogates;
pub mod syntax;
pub mod terminal_text;
pub mod text_bounds;
pub mod todo;
pub mod tool;
pub mod tool_list;
pub mod ui;
pub mod usage;
pub mod usage_report;
pub mod web;

pub use json::{Json, TextStore};
pub use surrogates::parse as parse_json;

/// The version of pi's protocol (`--mode rpc`) that every connection speaks before `hello`.
pub const WIRE_VERSION: &str = "1.5.2";
