//! Extensions of a session, in processes of their own: starting them, what they register, asking them.
//!
//! A *host* is a process that runs extensions and speaks the host protocol (`docs/extension-protocol.md`): the Node host for all that are
//! written for pi, and the program of each native extension. A host runs one handler by its number and returns what it returned; the order,
//! the chaining and the deciding are here, once, for all languages. A host that crashes, hangs or floods costs its own extensions only.
//!
//! This crate knows nothing of sessions: [`ExtensionSession`] is what it asks of one.

mod connection;
mod event;
mod extensions;
mod hooks;
mod host;
mod model_registrations;
mod models;
mod node;
mod process;
mod provider_deltas;
mod provider_events;
mod provider_stream;
mod record;
mod registrations;
mod runtime;
mod session;
mod source;
mod tool;

pub use self::{
    connection::RequestError,
    event::EventKind,
    extensions::SessionExtensions,
    hooks::{InputVerdict, RunAdditions, ToolCallVerdict},
    host::HelloFacts,
    models::{ExtensionProvider, ExtensionVirtualModel, Route},
    node::{NodeError, node_program},
    process::HostProgram,
    record::{HostFailure, PROTOCOL_VERSION, ToolDefinition},
    runtime::{ExtensionsSetup, LoadError},
    session::{CallResponder, ExtensionCommand, ExtensionFailure, ExtensionSession, SessionCall},
    source::{ExtensionKind, ExtensionSource},
};
