//! End-to-end tests: the real `agentd` and `agentctl`, a model server that answers as a test says, a home for each test.
//! They prove the wiring; the logic has its tests beside the code.

// Every function here is part of a test: a failed expectation is how it reports.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod abort;
mod agentctl;
mod agentctl_daemon;
mod agentctl_docs;
mod agentctl_tree;
mod agentctl_verbs;
mod architecture;
mod bad_input;
mod bash;
mod canary;
mod captures;
mod clients;
mod compaction;
mod crash;
mod credentials;
mod cumulative;
mod daemon;
mod diagnostics;
mod dialogs;
mod doctor;
mod failures;
mod flags;
mod golden;
mod handover;
mod hostile_clients;
mod many_clients;
mod models;
mod persistence;
mod print;
mod processes;
mod prompt;
mod prompt_shared;
mod queue;
mod readme;
mod replace;
mod request_keys;
mod resources;
mod retry;
mod rpc;
mod schemas;
mod sessions;
mod shared;
mod shutdown;
mod socket_file;
mod state;
mod support;
mod terminal;
mod tools;
mod tree;
mod unload;
mod watch;
mod wire;
