//! Which extensions a session has, and what runs them.

use std::path::Path;

use agentd_config::StartingFiles;
use agentd_extensions::{ExtensionKind, ExtensionSource, HostRunner, LoadError, node_program};
use agentd_files::looking_once;
use agentd_packages::{Discovery, ExtensionKind as FoundKind, FoundExtension, discover, find_node};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use tokio::task::spawn_blocking;

use super::error::OpenError;
use crate::{context::SessionContext, extensions::ExtensionSurroundings};

/// The extensions of a session and what runs the Node host, if one of them needs it.
pub(crate) type ExtensionsFound = (Vec<ExtensionSource>, Option<HostRunner>);

/// Finds the extensions of a session. Where Node is missing, the session works without those that need it, and a warning says so.
///
/// # Errors
/// An extension that a flag names is not there.
pub(crate) async fn find_extensions(
    context: SessionContext,
) -> Result<(SessionContext, ExtensionsFound), OpenError> {
    let (context, found, errors) = find_extensions_again(context).await?;
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok((context, found)),
    }
}

/// The same in a session that is open: extensions that are not there are given beside the others.
///
/// # Errors
/// The runtime ends.
pub(crate) async fn find_extensions_again(
    mut context: SessionContext,
) -> Result<(SessionContext, ExtensionsFound, Vec<LoadError>), OpenError> {
    let looking = spawn_blocking(move || {
        let found = looking_once(|| {
            let mut found = discover(&context.discovery_query());
            context.diagnostics.extend(leave_out_changed(&context, &mut found));
            found
        });
        (context, found)
    });
    let (mut context, Discovery { extensions, errors, diagnostics, .. }) = looking.await?;
    let errors: Vec<LoadError> =
        errors.into_iter().map(|error| LoadError { path: error.path, reason: error.reason }).collect();
    let (found, unusable) = runnable(context.extension_surroundings(), extensions).await?;
    if !found.0.is_empty() || unusable.is_some() {
        context.diagnostics.extend(diagnostics);
        context.diagnostics.extend(unusable);
    }
    Ok((context, found, errors))
}

/// The extensions that can run, and the program of the Node host if one of them needs it. Where Node is missing, those that need it are
/// left out, and the reason is given.
///
/// # Errors
/// The runtime ends.
pub(super) async fn runnable(
    surroundings: ExtensionSurroundings<'_>,
    extensions: Vec<FoundExtension>,
) -> Result<(ExtensionsFound, Option<Diagnostic>), OpenError> {
    let mut sources: Vec<ExtensionSource> = extensions.into_iter().filter_map(source).collect();
    if !sources.iter().any(|source| source.kind == ExtensionKind::Node) {
        return Ok(((sources, None), None));
    }
    let ExtensionSurroundings { settings, agent_dir, environment, child_environment, .. } = surroundings;
    let launcher = &surroundings.services.launcher;
    let node = find_node(settings, agent_dir, environment, child_environment.to_vec(), launcher).await;
    let program = match node {
        Ok(node) => {
            let (agent_dir, cwd) = (agent_dir.path().to_owned(), surroundings.cwd.to_owned());
            let env = child_environment.to_vec();
            let pi_on_path =
                settings.extension_host.as_ref().and_then(|host| host.pi_on_path).unwrap_or(true);
            let unpacked = spawn_blocking(move || {
                node_program(Path::new(&node.program), &agent_dir, &cwd, &env, pi_on_path)
            })
            .await?;
            unpacked.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match program {
        Ok(program) => Ok(((sources, Some(HostRunner::Process(program))), None)),
        Err(error) => {
            let text = format!("extensions in TypeScript and JavaScript are not loaded: {error}");
            sources.retain(|source| source.kind != ExtensionKind::Node);
            Ok(((sources, None), Some(Diagnostic::warning(DiagnosticKind::Extension, text))))
        }
    }
}

/// Leaves out the extensions of a project whose files are others than those that its trust is for. Hashes files; blocks.
///
/// They are compared here once more: a session can be opened, or its extensions read anew, long after the user was asked.
pub(super) fn leave_out_changed(context: &SessionContext, found: &mut Discovery) -> Option<Diagnostic> {
    if !found.extensions.iter().any(|extension| extension.needs_trust) {
        return None;
    }
    let SessionContext { agent_dir, environment, cwd, prompt, .. } = context;
    let now = StartingFiles::of(cwd, &prompt.folders, agent_dir, environment);
    let changed = match &prompt.trusted_as {
        Some(trusted) => now.differing(trusted, cwd),
        // It had nothing that needs trust when it was opened.
        None => vec![cwd.clone()],
    };
    let file = changed.first()?;
    found.extensions.retain(|extension| !extension.needs_trust);
    let text =
        "the extensions of the project are not loaded: its files are not those that it is trusted with";
    let hint = "open the session anew, and you are asked again";
    Some(Diagnostic::warning(DiagnosticKind::Trust, text).at(file).hint(hint))
}

/// An extension as its host is told of it; `None` for those that are part of pi, whose work agentd does itself.
fn source(found: FoundExtension) -> Option<ExtensionSource> {
    let FoundExtension { path, entry, base_dir, source_info, kind, .. } = found;
    let kind = match kind {
        FoundKind::Node => ExtensionKind::Node,
        FoundKind::Native { command, .. } => {
            ExtensionKind::Native { command: command.into_iter().map(Into::into).collect() }
        }
        FoundKind::Builtin(_) => return None,
    };
    Some(ExtensionSource { path, entry, base_dir, source_info, kind })
}
