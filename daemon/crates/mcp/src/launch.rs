//! What a server is started with: its command with all values filled in, its environment, its roots.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_auth::Auth;
use agentd_config::{AgentDir, Environment, expand_tilde, resolve_path};
use agentd_http::{HttpClients, Network, Redactor, register_secret};
use agentd_memory::MemoryAccount;
use agentd_process::{CommandSpec, CommandStreams, Launcher};
use agentd_program_log::ProgramLog;
use reqwest::{
    Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::{
    config::{Endpoint, ServerConfig, SignIn},
    http::HttpEndpoint,
    oauth::{
        Authorization, AuthorizationParts, FilledIn, OAuthHttp, SignInStore, TokenSource, ValueResolver,
    },
    values::filled_in,
};

/// The surroundings of a server.
#[derive(Clone)]
pub struct ServerContext {
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// Further folders of the session's workspace, absolute.
    pub folders: Vec<PathBuf>,
    /// The session's environment, for `${NAME}` and `~`.
    pub variables: Environment,
    /// The environment of child processes.
    pub child_environment: Arc<[(OsString, OsString)]>,
    /// Starts child processes.
    pub launcher: Launcher,
    /// Owns the tasks of connections.
    pub tasks: TaskTracker,
    /// The HTTP clients of the daemon.
    pub http: Arc<HttpClients>,
    /// Proxies and certificates.
    pub network: Arc<Network>,
    /// Holds the tokens of servers (`mcp-auth.json`).
    pub agent_dir: AgentDir,
    /// The user's logins, for servers that take the token of one.
    pub auth: Option<Auth>,
    /// What servers say.
    pub log: ProgramLog,
    /// What servers send is charged to it.
    pub memory: MemoryAccount,
}

impl ServerContext {
    /// The command of a server that is started. Runs the commands of its values.
    ///
    /// # Errors
    /// A variable that is not set, or a command of a value that fails.
    pub(crate) async fn command(&self, config: &ServerConfig) -> Result<CommandSpec, String> {
        let Endpoint::Stdio { command, args, env, cwd } = &config.endpoint else {
            return Err("it is not a program".to_owned());
        };
        let expanded = |text: &String| expand_tilde(text, &self.variables).into_os_string();
        let mut environment = self.child_environment.to_vec();
        for (name, value) in env {
            environment.push((name.into(), self.value(config, name, value).await?.into()));
        }
        let cwd = cwd
            .as_deref()
            .map_or_else(|| self.cwd.clone(), |cwd| resolve_path(cwd, &self.cwd, &self.variables));
        // A relative path with a folder is one of the working directory of the session, wherever the program runs then.
        let program = expanded(command);
        let program = if Path::new(&program).components().count() > 1 {
            self.cwd.join(program).into()
        } else {
            program
        };
        Ok(CommandSpec {
            program,
            args: args.iter().map(expanded).collect(),
            cwd,
            env: environment,
            streams: CommandStreams::Separate,
            sandbox: None,
        })
    }

    /// The address of a server that is reached by HTTP. Runs the commands of its values.
    ///
    /// # Errors
    /// A variable that is not set, a command of a value that fails, a header that cannot be sent, or a network that cannot be used.
    pub(crate) async fn endpoint(
        &self,
        config: &ServerConfig,
        authorization: Option<Arc<Authorization>>,
    ) -> Result<HttpEndpoint, String> {
        let Endpoint::Http { url, headers, .. } = &config.endpoint else {
            return Err("it has no URL".to_owned());
        };
        let parsed = Url::parse(url).map_err(|error| format!("its URL cannot be used: {error}"))?;
        let mut filled = HeaderMap::new();
        for (name, value) in headers {
            let text = self.value(config, name, value).await?;
            // Servers quote a token without the word before it.
            if let Some((_, token)) = text.split_once(' ').filter(|_| Redactor::hides(name)) {
                register_secret(token);
            }
            let header = HeaderName::try_from(name.as_str());
            let header = header.map_err(|_| format!("\"headers\": \"{name}\" is no name of a header"))?;
            let is_ours = header.as_str().starts_with("mcp-") || header == CONTENT_TYPE || header == ACCEPT;
            if is_ours {
                return Err(format!("\"headers\": \"{name}\" is set by the protocol: leave it out"));
            }
            let mut text = HeaderValue::try_from(text)
                .map_err(|_| format!("\"headers\": the value of \"{name}\" cannot be sent"))?;
            text.set_sensitive(true);
            filled.insert(header, text);
        }
        let client = self.http.get_by(&parsed, &self.network).map_err(|error| error.to_string())?;
        let memory = self.memory.clone();
        Ok(HttpEndpoint { client, url: parsed, headers: filled, authorization, memory })
    }

    /// The authorization of a server's requests; `None` for a program, and where a header of the entry does it.
    pub(crate) fn authorization(&self, config: &ServerConfig) -> Option<Arc<Authorization>> {
        let Endpoint::Http { url, sign_in, .. } = &config.endpoint else { return None };
        let source = match sign_in {
            SignIn::Header => return None,
            SignIn::OAuth(oauth) => TokenSource::OAuth(oauth.clone()),
            SignIn::Login(provider) => TokenSource::Login(provider.clone(), self.auth.clone()),
        };
        let (is_literal, variables, paths) = (config.is_literal, self.variables.clone(), self.clone());
        let values = ValueResolver {
            fill_in: Arc::new(move |name, value| {
                let (name, value, variables) = (name.to_owned(), value.clone(), variables.clone());
                let filled: FilledIn = Box::pin(async move {
                    if is_literal {
                        return Ok(value.expose().to_owned());
                    }
                    filled_in(&name, value.expose(), &variables).await
                });
                filled
            }),
            path: Arc::new(move |text| resolve_path(text, &paths.cwd, &paths.variables)),
        };
        Some(Authorization::new(AuthorizationParts {
            name: config.name.clone(),
            // One that is no URL is said when it is connected.
            url: Url::parse(url).ok()?,
            source,
            http: OAuthHttp { clients: Arc::clone(&self.http), network: Arc::clone(&self.network) },
            store: SignInStore::of(&self.agent_dir),
            values,
            listen_host: self.variables.non_empty("PI_OAUTH_CALLBACK_HOST").map(str::to_owned),
            tasks: self.tasks.clone(),
        }))
    }

    /// A value of `env` or `headers`, filled in.
    async fn value(&self, config: &ServerConfig, name: &str, value: &str) -> Result<String, String> {
        if config.is_literal {
            register_secret(value);
            return Ok(value.to_owned());
        }
        filled_in(name, value, &self.variables).await
    }

    /// The answer to `roots/list`: the working directory, and the further folders of the workspace.
    pub(crate) fn roots(&self) -> Value {
        let root = |folder: &PathBuf| {
            let name = folder.file_name().unwrap_or(OsStr::new("/")).to_string_lossy();
            json!({"uri": file_uri(folder), "name": name})
        };
        let roots: Vec<Value> = std::iter::once(&self.cwd).chain(&self.folders).map(root).collect();
        json!({"roots": roots})
    }
}

/// A path as a URI. Bytes with a meaning in URIs are percent-encoded.
fn file_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte))
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use agentd_process::GuardCommand;
    use agentd_protocol::mcp::McpExposure;

    use super::*;

    fn context() -> ServerContext {
        ServerContext {
            cwd: "/w d".into(),
            folders: Vec::new(),
            variables: [("HOME", "/h"), ("K", "value-of-k")].into_iter().collect(),
            child_environment: vec![("PATH".into(), "/bin".into())].into(),
            launcher: Launcher::new(GuardCommand::this_program()),
            tasks: TaskTracker::new(),
            http: Arc::new(HttpClients::new(Network::default())),
            network: Arc::default(),
            agent_dir: AgentDir::at("/agent"),
            auth: None,
            log: ProgramLog::at("/nowhere/mcp.log".into()),
            memory: MemoryAccount::default(),
        }
    }

    fn config(command: &str, env: &[(&str, &str)]) -> ServerConfig {
        let env: BTreeMap<String, String> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerConfig {
            name: "s".into(),
            path: "/mcp.json".into(),
            endpoint: Endpoint::Stdio {
                command: command.into(),
                args: vec!["~/x".into(), "y".into()],
                env,
                cwd: None,
            },
            enabled: true,
            exposure: McpExposure::Direct,
            tool_exposure: Vec::new(),
            timeout: Duration::from_secs(1),
            revision: crate::config::RevisionChoice::WithInitialize,
            shared: false,
            roots: true,
            trusts_hints: false,
            description: None,
            is_literal: false,
        }
    }

    #[tokio::test]
    async fn commands_are_filled_in() {
        let command = context().command(&config("npx", &[("A", "<${K}${K}>"), ("B", "$K")])).await.unwrap();
        assert_eq!((command.program.to_str(), command.cwd.to_str()), (Some("npx"), Some("/w d")));
        assert_eq!(command.args, ["/h/x", "y"]);
        let env: Vec<(&str, &str)> = command
            .env
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        assert_eq!(env, [("PATH", "/bin"), ("A", "<value-of-kvalue-of-k>"), ("B", "$K")]);
        for (command, program) in [("./s", "/w d/./s"), ("~/s", "/h/s"), ("/s", "/s")] {
            let spec = context().command(&config(command, &[])).await.unwrap();
            assert_eq!(spec.program.to_str(), Some(program));
        }
    }

    #[tokio::test]
    async fn values_that_a_client_gives_are_taken_as_they_are() {
        let config = ServerConfig { is_literal: true, ..config("x", &[("A", "${K}"), ("B", "!echo x")]) };
        let command = context().command(&config).await.unwrap();
        let values: Vec<&str> = command.env.iter().map(|(_, value)| value.to_str().unwrap()).collect();
        assert_eq!(values, ["/bin", "${K}", "!echo x"]);
    }

    #[tokio::test]
    async fn a_variable_that_is_not_set_is_named() {
        let problem = context().command(&config("x", &[("A", "${NOT_SET}")])).await.unwrap_err();
        assert!(problem.contains("\"A\"") && problem.contains("NOT_SET"), "{problem}");
        assert!(context().command(&config("x", &[("A", "${K")])).await.is_err());
    }

    #[test]
    fn roots_are_uris() {
        assert_eq!(context().roots(), json!({"roots": [{"uri": "file:///w%20d", "name": "w d"}]}));
    }
}
