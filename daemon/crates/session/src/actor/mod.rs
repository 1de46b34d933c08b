//! The actor of a session: the one task that owns its state, and the families of commands that work on it.
//!
//! [`start`] opens a session, [`event_loop`] is the task, [`session_actor`] its state; [`commands`] sends each command to its
//! family, one file each. Nothing outside of this folder names the actor.

mod abort;
mod activity;
mod available_commands;
mod bash;
mod boundary;
mod broken_run;
mod capabilities;
mod checkpoints;
mod clients;
mod commands;
mod compaction;
mod crash;
mod early_notice;
mod event_loop;
mod explain;
mod extension_agents;
mod extension_calls;
mod extension_messages;
mod extension_models;
mod extension_presence;
mod extension_reads;
mod extension_start;
mod extension_tools;
mod extension_work;
mod extensions;
mod hook_start;
mod jobs;
mod lifecycle;
mod mcp;
mod mcp_sign_in;
mod mcp_user;
mod models;
mod navigation;
mod outputs;
mod pending_start;
mod permissions;
mod plan_mode;
mod prompt_results;
mod prompts;
mod provider_login;
mod reopen;
mod replacement;
mod requests;
mod runs;
mod server_prompts;
mod session_actor;
mod shell_hooks;
mod start;
mod state;
mod stream_rules;
mod subagents;
mod template_commands;
mod todos;
mod tools;
mod tree;
mod trust;

pub use start::{ExtensionStart, Opened, open, open_after, open_copy, reload};
