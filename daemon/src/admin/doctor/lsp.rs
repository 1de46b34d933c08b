//! Language servers: which are found for sessions in this folder. None is started.

use std::path::Path;

use agentd_config::TrustBasis;
use agentd_lsp::{FoundServer, LspConfig, found_servers};
use agentd_protocol::{doctor::Check, resources::Diagnostic};

use super::check::{CheckName, LoadedSetup};
use crate::admin::Context;

const LANGUAGE_SERVERS: CheckName = CheckName("language_servers", "language servers");

/// A check for all servers that are found, one for each that this folder could use and does not find, and one for each mistake in the
/// files; nothing where the setting says that there are none.
pub(super) fn check(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let is_off = |enabled: Option<bool>| enabled == Some(false);
    if is_off(found.settings.settings.lsp.as_ref().and_then(|lsp| lsp.enabled)) {
        return vec![LANGUAGE_SERVERS.ok("switched off (lsp.enabled)")];
    }
    let trust = &found.settings.trust;
    let is_trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    let mut diagnostics = Vec::new();
    let folders = is_trusted.then_some(&found.settings.folders);
    let config = LspConfig::load(&found.agent_dir, folders, &mut diagnostics);
    let mistakes = diagnostics.into_iter().map(|it| {
        let advice = it.hint.clone().unwrap_or_else(|| "Correct the entry, or remove it.".into());
        LANGUAGE_SERVERS.warning(Diagnostic { hint: None, ..it }.to_string(), advice)
    });
    let home = context.environment.non_empty("HOME").unwrap_or("/");
    let servers = found_servers(
        &config,
        context.environment.get_os("PATH"),
        (&context.cwd, Path::new(home)),
        is_trusted,
    );
    summary(&servers).into_iter().chain(mistakes).collect()
}

fn summary(servers: &[FoundServer]) -> Vec<Check> {
    let there: Vec<String> = servers
        .iter()
        .filter_map(|server| Some(format!("{} ({})", server.name, server.program.as_ref()?.display())))
        .collect();
    let mut checks = vec![match there.as_slice() {
        [] => LANGUAGE_SERVERS.ok_but(
            "none is on PATH",
            "Install the server of your language, such as rust-analyzer or pyright: docs/language-servers.md.",
        ),
        there => LANGUAGE_SERVERS.ok(there.join(", ")),
    }];
    for server in servers.iter().filter(|server| server.program.is_none()) {
        match &server.path {
            Some(path) => checks.push(LANGUAGE_SERVERS.warning(
                format!("{} ({}): there is no program {}", server.name, path.display(), server.command),
                "Install it, correct its entry, or set \"disabled\" there.",
            )),
            // Another one of the language does as well.
            None if has_another(servers, server) => {}
            None => checks.push(LANGUAGE_SERVERS.ok_but(
                format!(
                    "{}: this folder has a project for it, and {} is not there",
                    server.name, server.command
                ),
                "With it, sessions here know what is wrong after an edit.",
            )),
        }
    }
    checks
}

/// Whether one of the same language is there, or named before.
fn has_another(servers: &[FoundServer], server: &FoundServer) -> bool {
    let same = |other: &&FoundServer| other.group == server.group;
    servers.iter().filter(same).any(|other| other.program.is_some())
        || servers.iter().find(same).is_some_and(|first| first.name != server.name)
}
