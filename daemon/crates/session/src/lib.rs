//! One live session: its actor, its run, its event log.
//!
//! [`open`] makes a session from [`SessionOptions`] and returns a [`SessionHandle`], the only way in. Events and
//! answers come out of its [`Feed`]. This crate knows no connection and no transport.

mod abort;
mod actor;
mod budget;
mod cell_calls;
mod child_environment;
mod client_tools;
mod clients;
mod clock;
mod commit_messages;
mod compaction;
mod context;
mod current_model;
mod discovery;
mod discovery_switches;
mod event_log;
mod extension_start;
mod extensions;
mod handle;
mod inbox;
mod interner;
mod jobs;
mod language_servers;
mod login_request;
mod mcp_resources;
mod message_pages;
mod message_sender;
mod messages;
mod models;
mod navigation;
mod nested_calls;
mod open;
mod options;
mod packages;
mod permissions;
mod plan;
mod project_answer;
mod prompt_files;
mod prompt_options;
mod prompt_results;
mod provider_login;
mod queues;
mod recovery;
mod replacement;
mod reply;
mod requests;
mod resource_urls;
mod run;
mod sandbox;
mod server_prompts;
mod services;
mod session_tools;
mod session_user;
mod shell_hooks;
mod side_answer;
mod stream_rules;
mod subagent_events;
mod subagent_host;
mod subagent_place;
mod subagent_records;
mod subagents;
mod summary;
mod summary_asker;
mod system_prompt;
mod template_commands;
mod temporary_folder;
mod todos;
mod tool_files;
mod tool_registry;
mod transcript;
mod trust;
mod ui;
mod unload;
mod user_bash;
mod web;
mod web_search;

pub use agentd_extensions::{GivenFlag, KeptHosts};

pub use actor::{ExtensionStart, Opened, open, open_after, open_copy, reload};
pub use agentd_program_log::ProgramLogs;
pub use child_environment::{ChildEnvironment, ChildSources, child_environment};
pub use client_tools::{ClientCalls, ToolProvider, check_client_tools};
pub use clients::SessionClients;
pub use event_log::{
    Audience, Feed, FeedItem, FeedLimits, LongReply, LongReplyWriter, MessageId, Subscriber, SubscriberId,
};
pub use handle::SessionHandle;
pub use interner::Interner;
pub use login_request::LogInAnswer;
pub use messages::{Attached, BranchCopy, CopyPoint, RegisterOutcome, ReopenError};
pub use open::{OpenError, locate, network};
pub use options::{InitialMode, SandboxOptions, SessionMode, SessionOptions, Target, ToolSelection};
pub use permissions::PermissionOptions;
pub use project_answer::AskedBefore;
pub use replacement::{
    ClientOrder, Leaving, LeavingAnswer, MoveRequest, MovedCommand, MoverGuard, SessionBeginning, SessionEnd,
};
pub use reply::Reply;
pub use sandbox::{PROBE_ARGUMENT, SandboxFault, SupportCache};
pub use services::{IntakeLimits, Limits, Services, SessionWatch, ToolContext, Toolbox};
pub use subagent_events::SubagentListener;
pub use subagent_host::{SubagentHost, SubagentHosting, SubagentSession, SubagentSlots};
pub use subagent_place::SubagentOptions;
pub use subagents::subagent_folder;
pub use summary::Summary;
pub use ui::{Asker, Dialog, DialogAnswer, Notice, PresenceGuard, Ui, UiAbilities};
pub use unload::Unloaded;
