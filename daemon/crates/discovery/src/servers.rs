//! MCP servers in the configuration files of other tools, as entries of agentd's `mcp.json`.

use std::path::Path;

use agentd_config::parse_json;
use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
use serde_json::{Map, Value};

use crate::{
    entry_values::{NeedsInput, in_own_form},
    item::ItemDetail,
    place::DiscoveryPlace,
    scan::Scan,
};

/// The servers of one file.
const MAX_SERVERS: usize = 200;

/// What is special about a tool's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `mcpServers` as most tools have it.
    Common,
    /// `httpUrl`, `$NAME`, times in milliseconds.
    Gemini,
    /// `command` with its arguments, `environment`, times in milliseconds.
    OpenCode,
    /// `http_headers`, `env_vars`, `bearer_token_env_var` and the like.
    Codex,
}

/// The object of a JSON file with comments; what is wrong with it is reported.
pub(crate) fn json_object(
    scan: &mut Scan<'_>,
    path: &Path,
    level: CapabilityLevel,
) -> Option<Map<String, Value>> {
    if !scan.is_file(path) {
        return None;
    }
    let text = scan.text(path, level)?;
    parsed_object(scan, path, &text)
}

/// The object of the text of a JSON file. The text of an error quotes nothing of it, since values can be secrets.
pub(crate) fn parsed_object(scan: &mut Scan<'_>, path: &Path, text: &str) -> Option<Map<String, Value>> {
    match parse_json(text) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) => {
            scan.warn(path, "the file holds no JSON object; it is not used");
            None
        }
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            scan.warn(path, format!("the file is not JSON at line {line}, column {column}; it is not used"));
            None
        }
    }
}

/// The servers of a JSON file below `mcpServers`. Returns whether there are some.
pub(crate) fn of_file(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel, dialect: Dialect) -> bool {
    let Some(object) = json_object(scan, path, level) else { return false };
    match object.get("mcpServers") {
        Some(servers) => add(scan, path, level, servers, dialect),
        None => false,
    }
}

/// Adds the servers of an object by their names. Returns whether there are some.
pub(crate) fn add(
    scan: &mut Scan<'_>,
    path: &Path,
    level: CapabilityLevel,
    servers: &Value,
    dialect: Dialect,
) -> bool {
    let Value::Object(servers) = servers else {
        scan.warn(path, "the servers are no object by their names, and are not used");
        return false;
    };
    if servers.len() > MAX_SERVERS {
        scan.warn(
            path,
            format!("there are {} servers, and only the first {MAX_SERVERS} are used", servers.len()),
        );
    }
    for (name, entry) in servers.iter().take(MAX_SERVERS) {
        let Value::Object(entry) = entry else {
            scan.warn(path, format!("the server \"{}\" is no object, and is not used", shown(name)));
            continue;
        };
        let mut item = scan.item(CapabilityKind::Mcps, own_name(name), path, level);
        match translated(entry, dialect, scan.place) {
            Ok(mut own) => {
                if dialect == Dialect::Codex {
                    from_folder_of(path, &mut own);
                }
                item.description = Some(summary(&own));
                item.is_switched_off = is_off(entry);
                if !is_off(entry) {
                    item.no_effect = unusable(&own);
                }
                item.detail = ItemDetail::Server(own);
            }
            Err(NeedsInput) => {
                item.no_effect = Some("it asks for inputs, which agentd does not");
            }
        }
        scan.add(item);
    }
    !servers.is_empty()
}

/// Makes the server's working directory absolute, which counts from the folder of the file.
fn from_folder_of(path: &Path, entry: &mut Map<String, Value>) {
    if let (Some(Value::String(cwd)), Some(folder)) = (entry.get_mut("cwd"), path.parent()) {
        *cwd = folder.join(&*cwd).display().to_string();
    }
}

/// The name as agentd takes it: letters, digits, `_` and `-`.
fn own_name(name: &str) -> String {
    let name: String = name
        .chars()
        .take(64)
        .map(
            |letter| if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') { letter } else { '_' },
        )
        .collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Returns whether the entry is switched off.
fn is_off(entry: &Map<String, Value>) -> bool {
    entry.get("enabled") == Some(&Value::Bool(false)) || entry.get("disabled") == Some(&Value::Bool(true))
}

/// What a server is, without anything that could be a secret.
fn summary(entry: &Map<String, Value>) -> String {
    match entry.get("command").and_then(Value::as_str) {
        Some(command) => format!("starts {}", command.rsplit('/').next().unwrap_or(command)),
        None => {
            let url = entry.get("url").and_then(Value::as_str).unwrap_or_default();
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            format!("connects to {}", host.rsplit('@').next().unwrap_or_default())
        }
    }
}

/// Why agentd cannot use an entry.
fn unusable(entry: &Map<String, Value>) -> Option<&'static str> {
    let has = |key: &str| entry.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
    let runs_command = |key: &str| {
        let values = entry.get(key).and_then(Value::as_object);
        let mut texts = values.into_iter().flat_map(Map::values).filter_map(Value::as_str);
        texts.any(|text| text.starts_with('!'))
    };
    if entry.get("type").and_then(Value::as_str) == Some("sse") {
        Some("the transport \"sse\" is not supported: try the server's streamable HTTP URL")
    } else if has("command") && has("url") {
        Some("it has both a command and a URL")
    } else if !has("command") && !has("url") {
        Some("it has neither a command nor a URL")
    } else if runs_command("env") || runs_command("headers") {
        Some("a value begins with !, which would be a command in mcp.json")
    } else {
        None
    }
}

/// The entry in agentd's form. Fields that are not known there are left out.
fn translated(
    entry: &Map<String, Value>,
    dialect: Dialect,
    place: &DiscoveryPlace,
) -> Result<Map<String, Value>, NeedsInput> {
    let of = |text: &str| in_own_form(text, dialect == Dialect::Gemini, place);
    let mut own = Map::new();
    let (command, args) = command_and_args(entry);
    if let Some(command) = command {
        own.insert("command".to_owned(), of(&command)?.into());
        let args: Vec<String> = args.iter().map(|arg| of(arg)).collect::<Result<_, _>>()?;
        if !args.is_empty() {
            own.insert("args".to_owned(), args.into());
        }
    }
    let url = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(*key)).and_then(Value::as_str);
    if let Some(url) = url {
        own.insert("url".to_owned(), of(url)?.into());
    }
    if let Some(cwd) = entry.get("cwd").and_then(Value::as_str) {
        own.insert("cwd".to_owned(), of(cwd)?.into());
    }
    let mut env = texts(entry, &["env", "environment"], &of)?;
    let mut headers = texts(entry, &["headers", "http_headers"], &of)?;
    if dialect == Dialect::Codex {
        for name in
            entry.get("env_vars").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            env.entry(name).or_insert_with(|| format!("${{{name}}}").into());
        }
        let named = entry.get("env_http_headers").and_then(Value::as_object).into_iter().flatten();
        for (header, variable) in named.filter_map(|(header, it)| Some((header, it.as_str()?))) {
            headers.insert(header.clone(), format!("${{{variable}}}").into());
        }
        if let Some(variable) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
            headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}").into());
        }
    }
    for (key, values) in [("env", env), ("headers", headers)] {
        if !values.is_empty() {
            own.insert(key.to_owned(), values.into());
        }
    }
    if entry.get("type").and_then(Value::as_str) == Some("sse") {
        own.insert("type".to_owned(), "sse".into());
    }
    if let Some(seconds) = timeout(entry, dialect) {
        own.insert("timeout".to_owned(), seconds.into());
    }
    let exposure = exposure(entry);
    if !exposure.is_empty() {
        own.insert("toolExposure".to_owned(), exposure.into());
    }
    Ok(own)
}

/// A command is a text with arguments beside it, or a list.
fn command_and_args(entry: &Map<String, Value>) -> (Option<String>, Vec<String>) {
    let list = |value: Option<&Value>| -> Vec<String> {
        value.and_then(Value::as_array).into_iter().flatten().filter_map(text_of).collect()
    };
    let args = list(entry.get("args"));
    match entry.get("command") {
        Some(Value::String(command)) => (Some(command.clone()), args),
        Some(Value::Array(_)) => {
            let mut words = list(entry.get("command")).into_iter();
            (words.next(), words.chain(args).collect())
        }
        _ => (None, args),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The texts of the first of these objects that is there.
fn texts(
    entry: &Map<String, Value>,
    keys: &[&str],
    of: &impl Fn(&str) -> Result<String, NeedsInput>,
) -> Result<Map<String, Value>, NeedsInput> {
    let object = keys.iter().find_map(|key| entry.get(*key)).and_then(Value::as_object);
    let pairs = object.into_iter().flatten().filter_map(|(name, value)| Some((name, text_of(value)?)));
    pairs.map(|(name, value)| Ok((name.clone(), Value::from(of(&value)?)))).collect()
}

/// The time limit of calls, in seconds.
fn timeout(entry: &Map<String, Value>, dialect: Dialect) -> Option<f64> {
    let (key, factor) = match dialect {
        Dialect::Codex => ("tool_timeout_sec", 1.0),
        Dialect::Gemini | Dialect::OpenCode => ("timeout", 0.001),
        Dialect::Common => return None,
    };
    entry.get(key).and_then(Value::as_f64).map(|time| time * factor).filter(|seconds| *seconds > 0.0)
}

/// Tools that the entry takes out, and of a list of tools those beside it.
fn exposure(entry: &Map<String, Value>) -> Map<String, Value> {
    let names = |keys: &[&str]| -> Vec<String> {
        let list = keys.iter().find_map(|key| entry.get(*key)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut exposure = Map::new();
    let taken = names(&["enabled_tools", "includeTools"]);
    if !taken.is_empty() {
        exposure.insert("*".to_owned(), "hidden".into());
        exposure.extend(taken.into_iter().map(|name| (name, "deferred".into())));
    }
    let left_out = names(&["disabled_tools", "excludeTools", "disabledTools"]);
    exposure.extend(left_out.into_iter().map(|name| (name, "hidden".into())));
    exposure
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::TestFolder;

    fn check(dialect: Dialect, entry: &Value, expected: &Value) {
        let folder = TestFolder::new(&[("p/x", "")]);
        let own = translated(entry.as_object().unwrap(), dialect, &folder.place("p"));
        assert_eq!(Value::Object(own.unwrap()), *expected, "{entry}");
    }

    #[test]
    fn entries_of_all_tools_become_ours() {
        check(
            Dialect::Common,
            &json!({"type": "stdio", "command": "npx", "args": ["-y", 1], "env": {"K": "${K}", "N": 2}, "more": {}}),
            &json!({"command": "npx", "args": ["-y", "1"], "env": {"K": "${K}", "N": "2"}}),
        );
        check(
            Dialect::Gemini,
            &json!({"httpUrl": "https://x/mcp", "headers": {"A": "Bearer $T"}, "timeout": 5000, "excludeTools": ["rm"]}),
            &json!({"url": "https://x/mcp", "headers": {"A": "Bearer ${T}"}, "timeout": 5.0, "toolExposure": {"rm": "hidden"}}),
        );
        check(
            Dialect::OpenCode,
            &json!({"type": "local", "command": ["bun", "x", "s"], "environment": {"K": "v"}, "enabled": true}),
            &json!({"command": "bun", "args": ["x", "s"], "env": {"K": "v"}}),
        );
        check(
            Dialect::Codex,
            &json!({
                "url": "https://x/mcp", "bearer_token_env_var": "T", "http_headers": {"A": "b"}, "env_http_headers": {"C": "V"},
                "tool_timeout_sec": 30, "enabled_tools": ["a", "b"], "disabled_tools": ["b"],
            }),
            &json!({
                "url": "https://x/mcp", "headers": {"A": "b", "C": "${V}", "Authorization": "Bearer ${T}"}, "timeout": 30.0,
                "toolExposure": {"*": "hidden", "a": "deferred", "b": "hidden"},
            }),
        );
        check(
            Dialect::Codex,
            &json!({"command": "c", "env": {"A": "1"}, "env_vars": ["A", "B"]}),
            &json!({"command": "c", "env": {"A": "1", "B": "${B}"}}),
        );
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        let summary = |entry: Value| summary(entry.as_object().unwrap());
        assert_eq!(summary(json!({"command": "/usr/bin/npx", "args": ["hush"]})), "starts npx");
        assert_eq!(summary(json!({"url": "https://u:hush@x.example/hush?k=hush"})), "connects to x.example");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (entry, says) in [
            (json!({"command": "a"}), None),
            (json!({"url": "https://x", "type": "sse"}), Some("sse")),
            (json!({"command": "a", "url": "b"}), Some("both")),
            (json!({}), Some("neither")),
            (json!({"command": "a", "env": {"A": "!x"}}), Some("begins with !")),
        ] {
            let found = unusable(entry.as_object().unwrap());
            assert_eq!(found.is_some(), says.is_some(), "{entry}");
            assert!(found.is_none_or(|text| text.contains(says.unwrap())), "{entry}");
        }
        assert_eq!(own_name("github.com/x y"), "github_com_x_y");
    }
}
