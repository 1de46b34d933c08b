//! Which extensions an agent of an extension has, where that extension leaves it to the files of the user and the project.

use std::{path::PathBuf, sync::Arc};

use agentd_config::{
    resources::ResourceFlags,
    settings::{LoadedSettings, load_as_given},
};
use agentd_extensions::HostFailure;
use agentd_packages::{Discovery, DiscoveryQuery, ExtensionKind as FoundKind, discover};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::extensions::leave_out_changed;
use crate::{context::SessionContext, packages::install_missing};

/// What is asked.
#[derive(Deserialize)]
struct AgentExtensions {
    /// The folder of the agent.
    cwd: PathBuf,
    /// Extensions to have in any case: files, folders, sources of packages.
    #[serde(default)]
    paths: Vec<String>,
    /// Whether those of the user, the project and the settings are there, too.
    #[serde(default)]
    ambient: bool,
}

/// The extensions for Node that a session in a folder would have, in load order, as `{extensions, errors}`. Those of a project count where it is
/// trusted: in the session's own folder as there, elsewhere where the user has said so before. Native extensions and those that are
/// part of pi are not among them.
///
/// # Errors
/// The parameters cannot be read, or the runtime ends.
pub(crate) async fn find_agent_extensions(
    context: &Arc<SessionContext>,
    params: Value,
) -> Result<Value, HostFailure> {
    let AgentExtensions { cwd, paths, ambient } =
        serde_json::from_value(params).map_err(|error| HostFailure::new("invalid", error.to_string()))?;
    let flags = ResourceFlags { extensions: paths, no_extensions: !ambient, ..ResourceFlags::default() };
    if cwd == context.cwd {
        let query = DiscoveryQuery { flags: &flags, ..context.discovery_query() };
        install_missing(context.extension_surroundings(), &query).await;
    }
    let context = Arc::clone(context);
    let looking = spawn_blocking(move || {
        if cwd == context.cwd {
            let mut found = discover(&DiscoveryQuery { flags: &flags, ..context.discovery_query() });
            leave_out_changed(&context, &mut found);
            return found;
        }
        let loaded = load_as_given(&context.agent_dir, &cwd, &context.environment, None, None);
        let LoadedSettings { folders, trust, resources: lists, .. } = loaded;
        discover(&DiscoveryQuery {
            agent_dir: &context.agent_dir,
            cwd: &cwd,
            folders: &folders,
            trusted: trust.trusted,
            environment: &context.environment,
            lists: &lists,
            flags: &flags,
            no_mcp: true,
        })
    });
    let Discovery { extensions, errors, .. } =
        looking.await.map_err(|error| HostFailure::new("failed", error.to_string()))?;
    let extensions = extensions.into_iter().filter(|found| found.kind == FoundKind::Node).map(|found| {
        json!({
            "path": found.path, "entry": found.entry.display().to_string(),
            "baseDir": found.base_dir.display().to_string(), "sourceInfo": found.source_info,
        })
    });
    let extensions: Vec<Value> = extensions.collect();
    let errors: Vec<Value> =
        errors.into_iter().map(|error| json!({"path": error.path, "error": error.reason})).collect();
    Ok(json!({"extensions": extensions, "errors": errors}))
}
