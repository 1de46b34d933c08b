//! The tool `ssh`: its description and its calls.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::{CommandStreams, OutputStorage, ShellJob};
use agentd_protocol::{
    command::{Work, WorkKind},
    remote_hosts::SSH_TOOL,
    tool::{ToolResult, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;

use super::hosts::RemoteHosts;
use crate::{
    arguments,
    bash::{BashTimeout, run_command},
    limits::MAX_SIZE,
};

/// Seconds that a command may take whose call says nothing.
const DEFAULT_SECONDS: u64 = 60;

/// Seconds that a command may take at most.
const MAX_SECONDS: f64 = 3600.0;

/// How many hosts the description lists.
const LISTED_HOSTS: usize = 40;

/// Runs commands on other hosts.
pub struct SshTool {
    hosts: RemoteHosts,
    outputs: OutputStorage,
    spec: Arc<ToolSpec>,
}

impl SshTool {
    /// The tool of one session. `outputs` is where long outputs go; `share` gives the description that is in memory already for an
    /// equal one.
    #[must_use]
    pub fn new(
        hosts: RemoteHosts,
        outputs: OutputStorage,
        share: impl FnOnce(Arc<ToolSpec>) -> Arc<ToolSpec>,
    ) -> Self {
        let spec = share(Arc::new(spec(&hosts)));
        Self { hosts, outputs, spec }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { call_id, arguments, cancel, progress, .. } = invocation;
        let SshArguments { host, command, cwd, timeout } = arguments::parse(arguments)?;
        let timeout = match timeout {
            None => BashTimeout::by_default(Duration::from_secs(DEFAULT_SECONDS)),
            Some(seconds) if (1.0..=MAX_SECONDS).contains(&seconds) => BashTimeout::of_call(seconds)?,
            Some(_) => {
                let text = format!("Invalid timeout: must be from 1 to {MAX_SECONDS} seconds");
                return Err(ToolError(text));
            }
        };
        let (ssh, home) = self.hosts.connect(&host, &cancel).await?;
        let job = ShellJob {
            command,
            cwd: directory(cwd.as_deref(), &home),
            base: None,
            // Nothing of this session's environment is for another host.
            env: Vec::new(),
            timeout: Some(timeout.time),
            cancel,
            streams: CommandStreams::Output,
            work: Work {
                kind: WorkKind::Tool,
                id: Some(call_id.as_str().into()),
                name: Some(SSH_TOOL.into()),
            },
            outside_sandbox: false,
        };
        run_command(&ssh, job, Some(timeout), self.outputs.clone(), &progress).await
    }
}

/// The folder that a command runs in: relative to the home directory there, which `~` means, too.
fn directory(cwd: Option<&str>, home: &Path) -> PathBuf {
    match cwd.unwrap_or_default() {
        "" | "~" => home.to_owned(),
        cwd => home.join(cwd.strip_prefix("~/").unwrap_or(cwd)),
    }
}

fn spec(hosts: &RemoteHosts) -> ToolSpec {
    let lines = hosts.each().take(LISTED_HOSTS).map(|host| match &host.description {
        Some(description) => format!("- {}: {description}", host.name),
        None => format!("- {}", host.name),
    });
    let mut list = lines.collect::<Vec<_>>().join("\n");
    let others = hosts.each().count().saturating_sub(LISTED_HOSTS);
    if others > 0 {
        list.push_str(&format!("\n- and {others} others of the user's ssh configuration"));
    }
    ToolSpec {
        name: SSH_TOOL.to_owned(),
        description: format!(
            "Run a bash command on another host, over ssh. The end of its output comes back, at most {MAX_SIZE}. Files there are read \
             with the path ssh://HOST/PATH in read. Hosts:\n{list}"
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "host": {"type": "string", "description": "The name of the host"},
                "command": {"type": "string", "description": "The command"},
                "cwd": {"type": "string", "description": "The folder there; by default the home directory"},
                "timeout": {
                    "type": "number",
                    "description": format!("Seconds that it may take; default {DEFAULT_SECONDS}, at most {MAX_SECONDS}"),
                },
            },
            "required": ["host", "command"],
        }),
        constrained_sampling: None,
    }
}

#[derive(Deserialize)]
struct SshArguments {
    host: String,
    command: String,
    cwd: Option<String>,
    timeout: Option<f64>,
}

impl Tool for SshTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Run commands on other hosts")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_relative_to_the_home_directory_there() {
        let home = Path::new("/home/me");
        for (cwd, folder) in [
            (None, "/home/me"),
            (Some(""), "/home/me"),
            (Some("~"), "/home/me"),
            (Some("~/a"), "/home/me/a"),
            (Some("a/b"), "/home/me/a/b"),
            (Some("/srv"), "/srv"),
        ] {
            assert_eq!(directory(cwd, home), Path::new(folder), "{cwd:?}");
        }
    }
}
