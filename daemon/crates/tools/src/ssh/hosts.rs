//! The hosts that a session may use, and the connection to each.

use std::{ffi::OsString, os::unix::fs::MetadataExt as _, path::PathBuf, sync::Arc, time::Duration};

use agentd_agent::ToolError;
use agentd_process::ProcessGroup;
use agentd_protocol::settings::SshHostKeys;
use tokio_util::sync::CancellationToken;

use crate::{
    blocking,
    operations::{SshHost, SshOptions, SshTarget},
};

/// How long a connection may take to be made, in seconds.
const CONNECT_SECONDS: u64 = 30;

/// A host that the user has configured. Nothing of it begins with a dash or has white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteHost {
    /// The name that models use.
    pub name: String,
    /// The address, or a name that `ssh` knows.
    pub host: String,
    /// The user there.
    pub username: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The file of the private key, absolute.
    pub key: Option<PathBuf>,
    /// What the host is, for the model.
    pub description: Option<String>,
}

/// What connections are made with.
pub struct RemoteHostOptions {
    /// The hosts, with different names.
    pub hosts: Vec<RemoteHost>,
    /// The setting `ssh.hostKeys`.
    pub host_keys: SshHostKeys,
    /// The group for the connections.
    pub connections: ProcessGroup,
    /// The group for the commands.
    pub commands: ProcessGroup,
    /// The complete environment of `ssh` itself.
    pub env: Arc<[(OsString, OsString)]>,
    /// The folder for the private folders of the connections' sockets.
    pub temp_dir: PathBuf,
}

/// The hosts of a session. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct RemoteHosts(Arc<[(RemoteHost, SshHost)]>);

impl RemoteHosts {
    /// The hosts; `None` without any. Connects to none of them.
    #[must_use]
    pub fn new(options: RemoteHostOptions) -> Option<Self> {
        let RemoteHostOptions { hosts, host_keys, connections, commands, env, temp_dir } = options;
        let hosts: Arc<[(RemoteHost, SshHost)]> = hosts
            .into_iter()
            .map(|host| {
                let ssh = SshHost::new(SshOptions {
                    target: SshTarget { host: host.host.clone(), directory: String::new() },
                    arguments: arguments(&host, host_keys),
                    connections: connections.clone(),
                    commands: commands.clone(),
                    env: Arc::clone(&env),
                    temp_dir: temp_dir.clone(),
                });
                (host, ssh)
            })
            .collect();
        (!hosts.is_empty()).then_some(Self(hosts))
    }

    /// What there is, in the order of the configuration.
    pub(super) fn each(&self) -> impl Iterator<Item = &RemoteHost> {
        self.0.iter().map(|(host, _)| host)
    }

    /// The connection to a host, once it is there, and the home directory on the host.
    ///
    /// # Errors
    /// For the model: there is no such host, its key cannot be used, it cannot be reached in time, or the call was aborted.
    ///
    /// Cancel safe: a connection that is being made is given up.
    pub(super) async fn connect(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(SshHost, PathBuf), ToolError> {
        let Some((config, ssh)) = self.0.iter().find(|(host, _)| host.name == name) else {
            let names: Vec<&str> = self.each().map(|host| host.name.as_str()).collect();
            return Err(ToolError(format!(
                "Unknown host {name:?}. There are: {}. Hosts are named in ssh.json of the agent directory, and in ~/.ssh/config.",
                names.join(", ")
            )));
        };
        if let Some(key) = config.key.clone() {
            blocking::run(move || check_key(&key)).await?;
        }
        let connecting = tokio::time::timeout(Duration::from_secs(CONNECT_SECONDS), ssh.connect());
        match cancel.run_until_cancelled(connecting).await {
            Some(Ok(Ok(home))) => Ok((ssh.clone(), home)),
            Some(Ok(Err(error))) => Err(ToolError(error.0)),
            Some(Err(_)) => Err(ToolError(format!(
                "Cannot reach {name} by ssh: no connection within {CONNECT_SECONDS} seconds."
            ))),
            None => Err(blocking::aborted()),
        }
    }
}

/// The arguments of `ssh` before the host.
fn arguments(host: &RemoteHost, host_keys: SshHostKeys) -> Vec<OsString> {
    let strict = match host_keys {
        SshHostKeys::Strict => "StrictHostKeyChecking=yes",
        SshHostKeys::AcceptNew => "StrictHostKeyChecking=accept-new",
    };
    let mut arguments: Vec<OsString> = vec!["-o".into(), strict.into()];
    arguments.extend(["-o".into(), format!("ConnectTimeout={CONNECT_SECONDS}").into()]);
    if let Some(username) = &host.username {
        arguments.extend(["-l".into(), username.into()]);
    }
    if let Some(port) = host.port {
        arguments.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(key) = &host.key {
        arguments.extend(["-o".into(), "IdentitiesOnly=yes".into(), "-i".into(), key.into()]);
    }
    arguments
}

/// Refuses a key that is missing, or that others could read: `ssh` would ignore it, and the server's refusal would say nothing of that.
fn check_key(key: &std::path::Path) -> Result<(), ToolError> {
    let shown = key.display();
    let facts = std::fs::metadata(key)
        .map_err(|error| ToolError(format!("The key {shown} of this host cannot be used: {error}.")))?;
    if !facts.is_file() {
        return Err(ToolError(format!("The key {shown} of this host is not a regular file.")));
    }
    if facts.mode() & 0o077 != 0 {
        return Err(ToolError(format!(
            "The key {shown} of this host can be read by others (mode {:03o}): chmod 600 {shown}",
            facts.mode() & 0o777
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_an_argument_of_its_own() {
        let host = RemoteHost {
            name: "n".into(),
            host: "h".into(),
            username: Some("me; rm".into()),
            port: Some(22),
            key: Some("/k y".into()),
            description: None,
        };
        let shown =
            |keys| arguments(&host, keys).into_iter().map(|it| it.into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(
            shown(SshHostKeys::Strict),
            [
                "-o",
                "StrictHostKeyChecking=yes",
                "-o",
                "ConnectTimeout=30",
                "-l",
                "me; rm",
                "-p",
                "22",
                "-o",
                "IdentitiesOnly=yes",
                "-i",
                "/k y"
            ]
        );
        assert!(shown(SshHostKeys::AcceptNew).contains(&"StrictHostKeyChecking=accept-new".to_owned()));
    }

    #[test]
    fn keys_that_others_can_read_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        assert!(check_key(&key).unwrap_err().0.contains("cannot be used"));
        assert!(check_key(folder.path()).unwrap_err().0.contains("not a regular file"));
        std::fs::write(&key, "x").unwrap();
        for (mode, fits) in [(0o600, true), (0o400, true), (0o640, false), (0o644, false)] {
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_key(&key).is_ok(), fits, "{mode:o}");
        }
    }
}
