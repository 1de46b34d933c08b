//! End-to-end tests: the real `agentd` and `agentctl`, a model server that answers as a test says, a home for each test.
//! They prove the wiring; the logic has its tests beside the code.

// Every function here is part of a test: a failed expectation is how it reports.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod abort;
/// The Agent Client Protocol: `agentd acp` with an editor that holds every line against the official schema.
mod acp {
    mod directories;
    mod editor;
    mod files;
    mod limits;
    mod options;
    mod plan_mode;
    mod plans;
    mod protocol;
    mod questions;
    mod servers;
    mod sessions;
    mod shared;
    mod terminals;
    mod tools;
    mod turns;
}
mod active_tools;
mod agentctl_help;
mod agentctl_prompt;
mod agentctl_prompt_shared;
mod agentctl_sessions;
mod agentctl_verbs;
mod architecture;
mod artifacts;
mod ask;
mod asking;
mod background;
mod bad_input;
mod bash;
mod budget_prices;
mod budget_time;
mod budgets;
mod canary;
mod canary_credentials;
mod captures;
mod catalogue;
mod client_tools;
mod client_tools_registration;
mod command_table;
/// Compaction: by command, when a context is too full, after a model refused one.
mod compaction {
    mod automatic;
    mod branch;
    mod command;
}
mod crash;
mod crash_recovery;
mod credentials;
mod daemon;
mod daemon_socket;
mod damaged_sessions;
mod diagnostics;
mod dialogs;
mod discovery;
mod disk_faults;
mod docs;
mod doctor;
mod event_numbers;
mod every_api;
mod export;
mod extensions;
mod extensions_flags;
mod extensions_models;
mod extensions_providers;
mod extensions_reload;
mod extensions_replace;
mod extensions_runs;
mod extensions_tools;
mod extensions_tree;
mod extensions_trust;
mod extensions_written;
mod fallback;
mod flags;
mod fork_clone;
mod glossary;
mod golden;
mod handover;
mod hooks_page;
mod hostile_clients;
mod images;
mod jobs;
mod limits;
mod live_flags;
mod logins;
mod many_clients;
mod mcp;
mod mcp_cache;
mod mcp_http;
mod mcp_oauth_server;
mod mcp_prompts;
mod mcp_questions;
/// agentd as an MCP server: `agentd mcp serve` with an agent that holds every line against the official schemas.
mod mcp_serve {
    mod agent;
    mod prompts;
    mod protocol;
    mod questions;
    mod sessions;
    mod shared;
    mod stateless;
}
mod mcp_setup;
mod mcp_sign_in;
mod mcp_sign_in_faults;
mod mcp_stateless;
mod models_file;
mod packages;
mod pages;
mod permission_requests;
mod permission_terminal;
mod permissions;
mod permissions_changed;
mod persistence;
mod pi_clients;
mod plan_mode;
mod playbooks;
mod policy;
mod print;
mod processes;
mod prompt;
mod prompt_history;
mod prompt_output;
mod provider_failures;
mod queue;
mod record_replay;
mod refusals;
mod reopening;
mod request_keys;
mod resource_urls;
mod resources;
mod retry;
/// Additions of omp to pi's protocol.
mod rpc {
    mod available_commands;
    mod event_filter;
    mod host_tools;
    mod long_lines;
    mod message_ids;
    mod message_pages;
    mod no_ui;
    mod prompt_results;
    mod session_dir;
}
mod sandbox;
mod sandbox_git;
mod schemas;
mod service;
mod session_activity;
/// The promises of docs/security.md.
mod security {
    mod agent_directory;
    mod clock;
    mod commands;
    mod completion;
    mod consent;
    mod context_trust;
    mod foreign_sessions;
    mod names;
    mod opened_files;
    mod opened_sessions;
    mod others;
    mod processes;
    mod relay;
    mod resource_limits;
    mod terminals;
    mod tools;
    mod trust;
}
mod sessions;
mod shared;
mod shell_hooks;
mod shell_hooks_session;
mod shell_hooks_trust;
mod shutdown;
mod state;
mod stream_rules;
mod subagents;
mod support;
mod switch_session;
mod telemetry;
mod terminal_output;
mod todo;
mod tool_files;
mod tools;
mod top;
mod tree;
mod undo;
mod unload;
mod usable_models;
mod usage;
