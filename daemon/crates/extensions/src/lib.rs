//! Extensions of a session, in processes of their own: starting them, what they register, asking them.
//!
//! A *host* is a process that runs extensions and speaks the host protocol (`docs/extension-protocol.md`): the Node host for all that are
//! written for pi, and the program of each native extension. A host runs one handler by its number and returns what it returned; the order,
//! the chaining and the deciding are here, once, for all languages. A host that crashes, hangs or floods costs its own extensions only.
//!
//! This crate knows nothing of sessions: [`ExtensionSession`] is what it asks of one.

mod boundary;
mod connection;
mod context_hooks;
mod early;
mod event;
mod extensions;
mod flags;
mod hooks;
mod host;
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
mod overview;
mod pi_shim;
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
mod source;
mod tool;
mod user_bash;

pub use self::{
    boundary::Boundary,
    connection::RequestError,
    event::EventKind,
    extensions::{SessionExtensions, StartError},
    flags::{FlagError, GivenFlag},
    hooks::{InputVerdict, ToolCallVerdict},
    host::HelloFacts,
    kept::KeptHosts,
    logins::ExtensionLogins,
    models::{ExtensionProvider, ExtensionVirtualModel, Route},
    nested_calls::NestedTicket,
    node::{NodeError, node_program},
    process::HostProgram,
    project_trust::TrustAnswer,
    record::{HostFailure, PROTOCOL_VERSION, ToolDefinition},
    run_start::{RunAdditions, StartingMessage},
    runtime::{DiscoveredKind, DiscoveredResource, ExtensionsSetup, LoadError},
    session::{
        CallProgress, CallResponder, ExtensionCommand, ExtensionFailure, ExtensionSession, HostFunctions,
        SessionCall,
    },
    source::{ExtensionKind, ExtensionSource},
    user_bash::{BashOperations, UserBashResult, UserBashVerdict},
};
