//! MCP servers that an editor passes in, as entries for a session.

use std::{collections::BTreeMap, fmt};

use agentd_protocol::mcp::GivenMcpServers;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::rpc::RpcError;

/// An MCP server that the client passes in.
#[derive(Deserialize)]
pub(crate) struct McpServer {
    name: String,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<NamedValue>>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: Option<Vec<NamedValue>>,
}

/// The name alone: the rest may hold secrets.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpServer").field(&self.name).finish()
    }
}

/// A variable or a header.
#[derive(Deserialize)]
struct NamedValue {
    name: String,
    value: String,
}

/// The servers as entries of a session, by names that can be part of the names of tools.
///
/// # Errors
/// A transport that agentd does not have, or a server without an address.
pub(crate) fn given(servers: &[McpServer]) -> Result<Option<GivenMcpServers>, RpcError> {
    let mut given: BTreeMap<String, Value> = BTreeMap::new();
    for server in servers {
        let entry = entry(server)?;
        let plain = plain_name(&server.name);
        let (mut name, mut number) = (plain.clone(), 2);
        // Names that differ in signs alone are still two servers.
        while given.keys().any(|other| other.replace('-', "_") == name.replace('-', "_")) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        given.insert(name, entry);
    }
    Ok((!given.is_empty()).then_some(GivenMcpServers(given)))
}

fn entry(server: &McpServer) -> Result<Value, RpcError> {
    let McpServer { name, kind, command, args, env, url, headers } = server;
    let wrong = |problem: &str| {
        Err(RpcError::invalid_params(format!("Invalid params: mcpServers: \"{name}\": {problem}")))
    };
    match (kind.as_deref(), command, url) {
        (None | Some("stdio"), Some(command), _) => Ok(json!({
            "command": command, "args": args.as_deref().unwrap_or_default(), "env": values(env.as_deref()),
        })),
        (Some("http"), _, Some(url)) => {
            Ok(json!({"type": "http", "url": url, "headers": values(headers.as_deref())}))
        }
        (Some("http"), _, None) => wrong("the field `url` is missing"),
        (Some("sse"), ..) => wrong("the transport sse is not supported: use http, often at /mcp"),
        (None | Some("stdio"), None, _) => wrong("the field `command` is missing"),
        (Some(_), ..) => wrong("agentd has the transports stdio and http alone"),
    }
}

fn values(given: Option<&[NamedValue]>) -> Map<String, Value> {
    let given = given.unwrap_or_default().iter();
    given.map(|NamedValue { name, value }| (name.clone(), Value::from(value.as_str()))).collect()
}

/// A name with letters, digits, `_` and `-` alone.
fn plain_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let plain: String = name.chars().map(letter).collect();
    if plain.is_empty() { "server".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(servers: Value) -> Result<Value, String> {
        let servers: Vec<McpServer> = serde_json::from_value(servers).unwrap();
        let given = given(&servers).map_err(|error| serde_json::to_string(&error).unwrap())?;
        Ok(serde_json::to_value(given).unwrap())
    }

    #[test]
    fn servers_become_entries() {
        let servers = json!([
            {"name": "My files", "command": "npx", "args": ["-y"], "env": [{"name": "K", "value": "${K}"}]},
            {"name": "my-files", "command": "x", "args": [], "env": []},
            {"name": "my_files", "command": "y"},
            {"type": "http", "name": "é", "url": "https://x.example", "headers": [{"name": "A", "value": "b"}]},
        ]);
        let expected = json!({
            "My_files": {"command": "npx", "args": ["-y"], "env": {"K": "${K}"}},
            "my-files": {"command": "x", "args": [], "env": {}},
            "my_files_2": {"command": "y", "args": [], "env": {}},
            "_": {"type": "http", "url": "https://x.example", "headers": {"A": "b"}},
        });
        assert_eq!(check(servers), Ok(expected));
        assert_eq!(check(json!([])), Ok(Value::Null));
    }

    #[test]
    fn what_agentd_does_not_have_is_refused() {
        for (server, says) in [
            (
                json!({"type": "sse", "name": "s", "url": "https://hush", "headers": []}),
                "sse is not supported",
            ),
            (json!({"type": "acp", "name": "s", "id": "x"}), "stdio and http alone"),
            (json!({"name": "s"}), "`command` is missing"),
            (json!({"type": "http", "name": "s"}), "`url` is missing"),
        ] {
            let problem = check(json!([server])).unwrap_err();
            assert!(problem.contains(says) && !problem.contains("hush"), "{problem}");
        }
    }
}
