//! Which extension runs in which host, and what each is called there.

use std::path::Path;

use crate::{
    early::EarlyExtensions,
    host::{Host, HostRunner},
    process::HostProgram,
    setup::{ExtensionsSetup, LoadError},
    source::{ExtensionKind, ExtensionSource},
};

/// The hosts of a session's extensions, and the host of each: one for all of Node, one for each native extension.
pub(crate) fn placed(setup: &ExtensionsSetup) -> Result<(Vec<Host>, Vec<usize>), LoadError> {
    let mut members: Vec<(HostRunner, Vec<usize>)> = Vec::new();
    let (mut placement, mut of_node) = (Vec::new(), None);
    for (extension, source) in setup.sources.iter().enumerate() {
        let host = match &source.kind {
            ExtensionKind::Node => {
                // The process that has loaded some of them already loads them all.
                let running = setup.sources.iter().find_map(|source| match source.kind {
                    ExtensionKind::Node => setup.kept.program_of(&source.entry),
                    ExtensionKind::Native { .. } => None,
                });
                let running = running.cloned().map(HostRunner::Process);
                let Some(runner) = running.or_else(|| setup.node.clone()) else {
                    let reason = "Node is needed for it, and was not found".to_owned();
                    return Err(LoadError { path: source.path.clone(), reason });
                };
                *of_node.get_or_insert_with(|| {
                    members.push((runner, Vec::new()));
                    members.len() - 1
                })
            }
            ExtensionKind::Native { command } => {
                members.push((HostRunner::Process(native(setup, source, command)), Vec::new()));
                members.len() - 1
            }
        };
        members[host].1.push(extension);
        placement.push(host);
    }
    let hosts = members.into_iter().map(|(runner, extensions)| {
        let log = setup.log.source(&name(setup, &extensions));
        Host::new(runner, extensions, log)
    });
    Ok((hosts.collect(), placement))
}

/// The number of each extension in the host protocol: that of before, or else one that none has had.
pub(crate) fn numbered(sources: &[ExtensionSource], before: &EarlyExtensions) -> Vec<usize> {
    let mut free = before.free_number()..;
    let number = |source: &ExtensionSource| match before.of(&source.entry) {
        Some(early) => Some(early.number),
        None => free.next(),
    };
    sources.iter().filter_map(number).collect()
}

/// The name of a host in the log: that of its extension, or `node`.
fn name(setup: &ExtensionsSetup, extensions: &[usize]) -> String {
    match extensions.first().map(|extension| &setup.sources[*extension]) {
        Some(ExtensionSource { kind: ExtensionKind::Native { .. }, path, base_dir, .. }) => {
            base_dir.file_name().map_or_else(|| path.clone(), |name| name.display().to_string())
        }
        _ => "node".to_owned(),
    }
}

fn native(setup: &ExtensionsSetup, source: &ExtensionSource, command: &[std::ffi::OsString]) -> HostProgram {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut()
        && Path::new(&program).components().count() > 1
    {
        *program = source.base_dir.join(&program).into();
    }
    HostProgram {
        command,
        cwd: setup.facts.cwd.clone().into(),
        env: setup.env.clone(),
        own_descriptors: false,
    }
}
