//! Everything of a session before its actor runs: settings, models, keys, the file, the tools.

mod agent_extensions;
mod beginning;
mod build_context;
mod error;
mod extensions;
mod initial_choice;
mod mcp_servers;
mod opened_file;
mod prepare;
mod reconfigure;
mod remote_hosts;
mod session_file;
mod settings_values;
mod surroundings;
mod target;
mod tool_context;
mod trust_pass;

pub(crate) use agent_extensions::find_agent_extensions;
pub(crate) use beginning::{BegunSession, begin};
pub(crate) use build_context::with_extensions;
pub use error::OpenError;
pub(crate) use extensions::{ExtensionsFound, find_extensions, find_extensions_again};
pub(crate) use opened_file::SessionSource;
pub(crate) use prepare::{Preparation, PreparedSession, TrustSource, prepare};
pub(crate) use reconfigure::{
    ModelsChange, ModelsFile, NewModels, NewSettings, look_at_models, reconfigure, reread, with_models,
    without_extensions,
};
pub use settings_values::network;
pub use target::locate;
pub(crate) use target::same_folder;
pub(crate) use trust_pass::AskedExtensions;
