//! `agentctl version`: the versions of the programs that work together.

mod newest;

use std::{path::Path, process::Command};

use agentd_connect::find_agentd;
use agentd_protocol::daemon::PROTOCOL;
use serde::Serialize;

use self::newest::Newest;
use super::daemon_call::block_on;
use crate::{
    cli::VersionOptions,
    exit::{Exit, Fault, conclude},
    output,
    render::one_line,
    shared_daemon::Endpoint,
};

/// The commit that this program was built of, where the build says it (the variable `AGENTD_COMMIT`).
const COMMIT: Option<&str> = option_env!("AGENTD_COMMIT");

#[derive(Debug, Serialize)]
struct Versions {
    agentctl: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    /// The program that verbs start; absent where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    agentd: Option<ProgramVersion>,
    /// The daemon that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<DaemonVersion>,
    protocol: u32,
    /// What the repository has, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<Newest>,
}

#[derive(Debug, Serialize)]
struct ProgramVersion {
    version: String,
    path: String,
}

#[derive(Debug, Serialize)]
struct DaemonVersion {
    version: String,
    pid: u32,
}

pub(crate) fn run(options: &VersionOptions) -> Exit {
    conclude(show(options))
}

fn show(options: &VersionOptions) -> Result<Exit, Fault> {
    let program = find_agentd().map_err(Fault::from).and_then(|path| version_of(&path));
    let (agentd, missing) = match program {
        Ok(program) => (Some(program), None),
        Err(fault) => (None, Some(fault)),
    };
    let status = block_on(async {
        let endpoint = Endpoint::find()?;
        match endpoint.connect().await? {
            Some(connection) => connection.status(&endpoint).await.map(Some),
            None => Ok(None),
        }
    });
    let (status, unreachable) = match status {
        Ok(status) => (status, None),
        Err(fault) => (None, Some(fault)),
    };
    let daemon =
        status.map(|status| DaemonVersion { version: status.daemon.version, pid: status.daemon.pid });
    let (newest, unasked) = match &options.check {
        Some(named) => match block_on(newest::look(named.as_deref(), COMMIT)) {
            Ok(newest) => (Some(newest), None),
            Err(fault) => (None, Some(fault)),
        },
        None => (None, None),
    };
    let agentctl = env!("CARGO_PKG_VERSION");
    let versions = Versions { agentctl, commit: COMMIT, agentd, daemon, protocol: PROTOCOL, newest };
    let printed =
        if options.json { output::print_json(&versions)? } else { output::print(&text(&versions))? };
    match missing.or(unreachable).or(unasked) {
        Some(fault) => Err(fault),
        None => Ok(printed),
    }
}

/// Asks the program.
fn version_of(path: &Path) -> Result<ProgramVersion, Fault> {
    let failed = |why: String| {
        Fault::new(Exit::NoDaemon, format!("agentctl: {} does not say its version: {why}", path.display()))
    };
    let output = Command::new(path).arg("--version").output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // `agentd 0.1.0 (…)`.
    let version = text.strip_prefix("agentd ").and_then(|rest| rest.split_whitespace().next());
    let version = version.ok_or_else(|| failed("it prints something else".to_owned()))?;
    Ok(ProgramVersion { version: version.to_owned(), path: path.display().to_string() })
}

fn text(versions: &Versions) -> String {
    let commit = versions.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    let agentd = versions.agentd.as_ref().map_or_else(
        || "not found".to_owned(),
        |program| format!("{}  {}", one_line(&program.version), one_line(&program.path)),
    );
    let daemon = versions.daemon.as_ref().map_or_else(
        || "not running".to_owned(),
        |daemon| format!("{}  pid {}", one_line(&daemon.version), daemon.pid),
    );
    let newest = versions.newest.as_ref().map(newest::text).unwrap_or_default();
    format!(
        "agentctl  {}{commit}\nagentd    {agentd}\ndaemon    {daemon}\nprotocol  {}\n{newest}",
        versions.agentctl, versions.protocol
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_and_what_is_not() {
        let program = ProgramVersion { version: "1.2.3".into(), path: "/bin/agentd\u{1b}".into() };
        let daemon = DaemonVersion { version: "1.2.2".into(), pid: 7 };
        let all = Versions {
            agentctl: "1.2.3",
            commit: Some("abc"),
            agentd: Some(program),
            daemon: Some(daemon),
            protocol: 1,
            newest: None,
        };
        assert_eq!(
            text(&all),
            "agentctl  1.2.3 (abc)\nagentd    1.2.3  /bin/agentd \ndaemon    1.2.2  pid 7\nprotocol  1\n"
        );
        let none = Versions { commit: None, agentd: None, daemon: None, ..all };
        assert_eq!(text(&none), "agentctl  1.2.3\nagentd    not found\ndaemon    not running\nprotocol  1\n");
    }
}
