//! Which extensions a session has, and what runs them.

use std::{ffi::OsString, fs, path::Path};

use agentd_extensions::{ExtensionKind, ExtensionSource, HostProgram, find_node, node_program};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind, SourceInfo, SourceOrigin, SourceScope};

use crate::context::SessionContext;

/// The extensions of a session and the program of the Node host, if one of them needs it. Reads folders; blocks.
pub(crate) fn find_extensions(
    context: &SessionContext,
    found: &mut Vec<Diagnostic>,
) -> (Vec<ExtensionSource>, Option<HostProgram>) {
    let agent_dir = context.agent_dir.path();
    let mut sources = in_folder(&agent_dir.join("extensions"));
    let mut node = None;
    if sources.iter().any(|source| source.kind == ExtensionKind::Node) {
        let path = context.environment.non_empty("PATH").map(std::ffi::OsStr::new);
        let program = find_node(None, path)
            .and_then(|node| node_program(&node, agent_dir, &context.cwd, &context.child_environment));
        match program {
            Ok(program) => node = Some(program),
            Err(error) => {
                found.push(Diagnostic::warning(
                    DiagnosticKind::Settings,
                    format!("extensions are not loaded: {error}"),
                ));
                sources.retain(|source| source.kind != ExtensionKind::Node);
            }
        }
    }
    (sources, node)
}

fn in_folder(folder: &Path) -> Vec<ExtensionSource> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let source = |path: &Path, entry: &Path, kind| ExtensionSource {
        path: path.display().to_string(),
        entry: entry.to_owned(),
        base_dir: entry.parent().unwrap_or(folder).to_owned(),
        source_info: SourceInfo {
            path: entry.display().to_string(),
            source: "auto".to_owned(),
            scope: SourceScope::User,
            origin: SourceOrigin::TopLevel,
            base_dir: Some(folder.display().to_string()),
        },
        kind,
    };
    let mut sources = Vec::new();
    for path in paths {
        if path.extension().is_some_and(|it| it == "ts" || it == "js") {
            sources.push(source(&path, &path, ExtensionKind::Node));
        } else if let Ok(text) = fs::read_to_string(path.join("extension.json"))
            && let Ok(manifest) = serde_json::from_str::<serde_json::Value>(&text)
        {
            let command = manifest["command"].as_array().into_iter().flatten().filter_map(|it| it.as_str());
            let command: Vec<OsString> = command.map(OsString::from).collect();
            sources.push(source(&path, &path.join("extension.json"), ExtensionKind::Native { command }));
        } else if path.join("index.ts").is_file() {
            sources.push(source(&path, &path.join("index.ts"), ExtensionKind::Node));
        }
    }
    sources
}
