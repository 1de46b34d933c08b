//! The Node.js that runs extensions.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use agentd_config::{AgentDir, Environment, resolve_path};
use agentd_process::Launcher;
use agentd_protocol::settings::Settings;

use crate::install::{Commands, InstallError, Invocation};

/// The oldest major version that runs extensions.
pub const OLDEST_NODE: u64 = 20;

/// How long Node may take to say its version.
const LIMIT: Duration = Duration::from_secs(10);

const ADVICE: &str =
    "install Node.js, version 20 or later, or name it as extensionHost.node in settings.json";

/// A Node.js that can run extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The program: absolute, or a name that is looked for on the search path.
    pub program: OsString,
    /// Its version, such as `22.19.0`.
    pub version: String,
}

/// Why there is no Node.js that could run extensions.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It is not there, or says nothing usable.
    #[error(transparent)]
    Program(#[from] InstallError),
    /// It does not say its version.
    #[error("{program} --version says {said:?}, which is no version of Node.js: {ADVICE}")]
    NoVersion {
        /// The program.
        program: String,
        /// The first words.
        said: String,
    },
    /// It is too old.
    #[error("{program} is Node.js {version}, and extensions need {OLDEST_NODE} or later: {ADVICE}")]
    TooOld {
        /// The program.
        program: String,
        /// Its version.
        version: String,
    },
}

/// Finds the Node.js that runs extensions: the setting `extensionHost.node`, else `node` on the search path of `programs`, the complete
/// environment of programs. Runs it with `--version`. Cancel safe.
///
/// # Errors
/// [`NodeError`], which says what to do.
pub async fn find_node(
    settings: &Settings,
    agent_dir: &AgentDir,
    environment: &Environment,
    programs: Vec<(OsString, OsString)>,
    launcher: &Launcher,
) -> Result<Node, NodeError> {
    let named = settings.extension_host.as_ref().and_then(|host| host.node.as_deref());
    let program = match named.filter(|named| !named.is_empty()) {
        // A path counts from the folder of the settings.
        Some(path) if path.contains('/') => resolve_path(path, agent_dir.path(), environment),
        Some(name) => PathBuf::from(name),
        None => PathBuf::from("node"),
    };
    let shown = program.display().to_string();
    let commands = Commands {
        launcher: launcher.clone(),
        environment: programs,
        cwd: PathBuf::from("/"),
        deadline: None,
    };
    let invocation =
        Invocation { program: shown.clone(), args: vec!["--version".to_owned()], cwd: None, advice: ADVICE };
    let said = commands.run(&invocation, Some(LIMIT)).await?;
    let version = said.trim().strip_prefix('v').unwrap_or(said.trim());
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    match major {
        None => {
            let said = said.trim().chars().take(80).collect();
            Err(NodeError::NoVersion { program: shown, said })
        }
        Some(major) if major < OLDEST_NODE => {
            Err(NodeError::TooOld { program: shown, version: version.to_owned() })
        }
        Some(_) => Ok(Node { program: program.into_os_string(), version: version.to_owned() }),
    }
}
