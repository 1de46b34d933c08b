//! The hosts of the tool `ssh` in a session.

use std::path::Path;

use agentd_config::{AgentDir, Environment, ProjectFolders, SshHostConfig, SshHostSources, ssh_hosts};
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    settings::SshSettings,
};
use agentd_sandbox::SandboxPolicy;
use agentd_tools::RemoteHost;

/// Where a session's hosts come from.
pub(super) struct HostPlace<'a> {
    pub(super) agent_dir: &'a AgentDir,
    /// The project's folders and the working directory, where the project is trusted.
    pub(super) project: Option<(&'a ProjectFolders, &'a Path)>,
    pub(super) environment: &'a Environment,
    pub(super) sandbox: Option<&'a SandboxPolicy>,
}

/// The hosts, where the setting is on; `None` where the session has no tool `ssh`. Reads files; blocks.
pub(super) fn remote_hosts(
    setting: Option<&SshSettings>,
    place: &HostPlace<'_>,
    found: &mut Vec<Diagnostic>,
) -> Option<Vec<RemoteHost>> {
    setting?.enabled.filter(|is_on| *is_on)?;
    if place.sandbox.is_some_and(|policy| !policy.network) {
        let text = "the tool ssh is left out: the sandbox permits no network (setting sandbox.network)";
        found.push(Diagnostic::warning(DiagnosticKind::Tools, text));
        return None;
    }
    let HostPlace { agent_dir, project, environment, .. } = *place;
    let (hosts, problems) = ssh_hosts(SshHostSources { agent_dir, project, environment });
    found.extend(problems);
    if hosts.is_empty() {
        let text = "the tool ssh is left out: no host is named in ssh.json of the agent directory or in ~/.ssh/config";
        found.push(Diagnostic::warning(DiagnosticKind::Tools, text));
        return None;
    }
    Some(hosts.into_iter().map(remote_host).collect())
}

fn remote_host(config: SshHostConfig) -> RemoteHost {
    let SshHostConfig { name, host, username, port, key, description } = config;
    RemoteHost { name, host, username, port, key, description }
}
