//! What a server is started with: its command with all values filled in, its environment, its roots.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_auth::Auth;
use agentd_config::{AgentDir, Environment, expand_tilde, resolve_path};
use agentd_http::{HttpClients, Network, Redactor, register_secret};
use agentd_process::{CommandSpec, CommandStreams, Launcher};
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
};

/// The surroundings of a server.
#[derive(Clone)]
pub struct ServerContext {
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
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
}

impl ServerContext {
    /// The command of a server that is started.
    ///
    /// # Errors
    /// A variable that is not set.
    pub(crate) fn command(&self, config: &ServerConfig) -> Result<CommandSpec, String> {
        let Endpoint::Stdio { command, args, env, cwd } = &config.endpoint else {
            return Err("it is not a program".to_owned());
        };
        let expanded = |text: &String| expand_tilde(text, &self.variables).into_os_string();
        let mut environment = self.child_environment.to_vec();
        for (name, value) in env {
            environment.push((name.into(), self.filled_in(name, value)?.into()));
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

    /// The address of a server that is reached by HTTP.
    ///
    /// # Errors
    /// A variable that is not set, a header that cannot be sent, or a network that cannot be used.
    pub(crate) fn endpoint(
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
            let text = self.filled_in(name, value)?;
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
        Ok(HttpEndpoint { client, url: parsed, headers: filled, authorization })
    }

    /// The authorization of a server's requests; `None` for a program, and where a header of the entry does it.
    pub(crate) fn authorization(&self, config: &ServerConfig) -> Option<Arc<Authorization>> {
        let Endpoint::Http { url, sign_in, .. } = &config.endpoint else { return None };
        let source = match sign_in {
            SignIn::Header => return None,
            SignIn::OAuth(oauth) => TokenSource::OAuth(oauth.clone()),
            SignIn::Login(provider) => TokenSource::Login(provider.clone(), self.auth.clone()),
        };
        let (context, paths) = (self.clone(), self.clone());
        let values = ValueResolver {
            fill_in: Arc::new(move |name, value| {
                let filled = context.filled_in(name, value.expose());
                let filled: FilledIn = Box::pin(async move { filled });
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

    /// A value with every `${NAME}` filled in. What comes from a variable, or has a telling name, is a secret from here on.
    fn filled_in(&self, name: &str, value: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((variable, behind)) = after.split_once('}') else {
                return Err(format!("\"{name}\": \"${{\" without \"}}\""));
            };
            let found = self.variables.get(variable).ok_or_else(|| {
                format!("\"{name}\": the variable {variable} is not set: set it where agentd is started")
            })?;
            register_secret(found);
            filled.push_str(before);
            filled.push_str(found);
            rest = behind;
        }
        filled.push_str(rest);
        if Redactor::hides(name) {
            register_secret(&filled);
        }
        Ok(filled)
    }

    /// The answer to `roots/list`: the working directory.
    pub(crate) fn roots(&self) -> Value {
        let name = self.cwd.file_name().unwrap_or(OsStr::new("/")).to_string_lossy();
        json!({"roots": [{"uri": file_uri(&self.cwd), "name": name}]})
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
            variables: [("HOME", "/h"), ("K", "value-of-k")].into_iter().collect(),
            child_environment: vec![("PATH".into(), "/bin".into())].into(),
            launcher: Launcher::new(GuardCommand::this_program()),
            tasks: TaskTracker::new(),
            http: Arc::new(HttpClients::new(Network::default())),
            network: Arc::default(),
            agent_dir: AgentDir::at("/agent"),
            auth: None,
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
            description: None,
        }
    }

    #[test]
    fn commands_are_filled_in() {
        let command = context().command(&config("npx", &[("A", "<${K}${K}>"), ("B", "$K")])).unwrap();
        assert_eq!((command.program.to_str(), command.cwd.to_str()), (Some("npx"), Some("/w d")));
        assert_eq!(command.args, ["/h/x", "y"]);
        let env: Vec<(&str, &str)> = command
            .env
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        assert_eq!(env, [("PATH", "/bin"), ("A", "<value-of-kvalue-of-k>"), ("B", "$K")]);
        for (command, program) in [("./s", "/w d/./s"), ("~/s", "/h/s"), ("/s", "/s")] {
            let spec = context().command(&config(command, &[])).unwrap();
            assert_eq!(spec.program.to_str(), Some(program));
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let problem = context().command(&config("x", &[("A", "${NOT_SET}")])).unwrap_err();
        assert!(problem.contains("\"A\"") && problem.contains("NOT_SET"), "{problem}");
        assert!(context().command(&config("x", &[("A", "${K")])).is_err());
    }

    #[test]
    fn roots_are_uris() {
        assert_eq!(context().roots(), json!({"roots": [{"uri": "file:///w%20d", "name": "w d"}]}));
    }
}
