//! Extensions of a session, in processes of their own: starting them, what they register, asking them.
//!
//! A *host* is a process that runs extensions and speaks the host protocol (`docs/extension-protocol.md`): the Node host for all that are
//! written for pi, and the program of each native extension. A host runs one handler by its number and returns what it returned; the order,
//! the chaining and the deciding are here, once, for all languages. A host that crashes, hangs or floods costs its own extensions only.
//!
//! This crate knows nothing of sessions: [`ExtensionSession`] is what it asks of one.

mod boundary;
mod channel;
mod connection;
mod context_hooks;
mod early;
mod event;
mod extensions;
mod flags;
mod hooks;
mod host;
mod host_output;
mod kept;
mod load_states;
mod logins;
mod message_refs;
mod missing_gates;
mod model_registrations;
mod models;
mod nested;
mod nested_calls;
mod node;
mod non_chat;
mod overview;
mod pi_shim;
mod placing;
mod private_folder;
mod process;
mod project_trust;
mod provider_deltas;
mod provider_events;
mod provider_stream;
mod record;
mod registrations;
mod run_start;
mod runtime;
mod session;
mod setup;
mod source;
mod tool;
mod user_bash;

pub use self::{
    boundary::Boundary,
    channel::HostChannel,
    connection::RequestError,
    event::EventKind,
    extensions::{SessionExtensions, StartError},
    flags::{FlagError, GivenFlag},
    hooks::{InputVerdict, ToolCallVerdict},
    host::{HelloFacts, HostRunner},
    kept::KeptHosts,
    logins::{ExtensionLogins, LoginAsk, LoginCall, LoginOption},
    models::{ExtensionProvider, ExtensionVirtualModel, Route},
    nested::NestedBook,
    nested_calls::NestedTicket,
    node::{NodeError, node_program},
    non_chat::NonChat,
    process::HostProgram,
    project_trust::TrustAnswer,
    record::{HostFailure, PROTOCOL_VERSION, ToolDefinition},
    run_start::{RunAdditions, StartingMessage},
    session::{
        CallProgress, CallResponder, ExtensionCommand, ExtensionFailure, ExtensionSession, HostFunctions,
        HostNotes, SessionCall,
    },
    setup::{DiscoveredKind, DiscoveredResource, ExtensionsSetup, LoadError},
    source::{ExtensionKind, ExtensionSource},
    user_bash::{BashOperations, UserBashResult, UserBashVerdict},
};
