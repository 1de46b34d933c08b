//! One entry of `mcp.json`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_protocol::mcp::McpExposure;
use serde_json::{Map, Value};

use super::{
    server_config::{DEFAULT_TIMEOUT, Endpoint, RevisionChoice, ServerConfig},
    sign_in::sign_in,
};
use crate::{revision::STATELESS, values::command_of};

/// A timeout from here on is probably meant in milliseconds.
const PROBABLY_MILLISECONDS: f64 = 1000.0;

/// The key that has the server's claims about its tools count. In the user's file alone: it can make permissions less strict.
pub(super) const TRUST_HINTS: &str = "trustHints";

/// An entry.
pub(super) enum Entry {
    /// A server of its own.
    Server(Box<ServerConfig>),
    /// A change of a server of the user.
    Override(Override),
}

/// The fields that an entry may change without being a server of its own.
pub(super) struct Override {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) enabled: Option<bool>,
    pub(super) exposure: Option<McpExposure>,
    pub(super) tool_exposure: Option<Vec<(String, McpExposure)>>,
}

/// Reads the entry `name` of the file at `path`: with warnings.
///
/// # Errors
/// Why it cannot be used. The text quotes no value that could be a secret.
pub(super) fn parse(name: &str, entry: &Value, path: &Path) -> Result<(Entry, Vec<String>), String> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        return Err("a name has letters, digits, _ and - only".to_owned());
    }
    let Value::Object(fields) = entry else { return Err("it must be an object".to_owned()) };
    let fields = Fields(fields);
    let mut warnings = Vec::new();
    let exposure = fields.exposure(&mut warnings)?;
    let tool_exposure = fields.tool_exposure(&mut warnings)?;
    let enabled = fields.boolean("enabled")?;
    if !["command", "url", "type"].iter().any(|key| fields.0.contains_key(*key)) {
        let others =
            fields.0.keys().find(|key| !["enabled", "exposure", "toolExposure"].contains(&key.as_str()));
        if let Some(other) = others {
            return Err(format!(
                "it has neither \"command\" nor \"url\"; without them only \"enabled\", \"exposure\" and \"toolExposure\" can \
                 be changed, not \"{other}\""
            ));
        }
        let (name, path) = (name.to_owned(), path.to_owned());
        return Ok((Entry::Override(Override { name, path, enabled, exposure, tool_exposure }), warnings));
    }
    let endpoint = fields.endpoint()?;
    let shared_by_default = matches!(endpoint, Endpoint::Http { .. });
    let revision = fields.revision(&endpoint)?;
    let shared = fields.boolean("shared")?.unwrap_or(shared_by_default);
    let config = ServerConfig {
        name: name.to_owned(),
        path: path.to_owned(),
        endpoint,
        enabled: enabled.unwrap_or(true),
        exposure: exposure.unwrap_or_default(),
        tool_exposure: tool_exposure.unwrap_or_default(),
        timeout: fields.timeout(&mut warnings)?,
        revision,
        shared,
        // Which folder would a server be told that works for several sessions?
        roots: fields.boolean("roots")?.unwrap_or(true) && !shared,
        trusts_hints: fields.boolean(TRUST_HINTS)?.unwrap_or(false),
        description: fields.text("description")?,
        is_literal: false,
    };
    Ok((Entry::Server(Box::new(config)), warnings))
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("\"{key}\" must be a text")),
        }
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(format!("\"{key}\" must be true or false")),
        }
    }

    /// An object of texts.
    fn texts(&self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong = || format!("\"{key}\" must be an object of texts");
        let Some(value) = self.0.get(key) else { return Ok(BTreeMap::new()) };
        let object = value.as_object().ok_or_else(wrong)?;
        let text = |(name, value): (&String, &Value)| {
            let value = value.as_str().ok_or_else(wrong)?;
            if command_of(value).is_some_and(|command| command.trim().is_empty()) {
                return Err(format!("\"{key}.{name}\" has no command after the !"));
            }
            Ok((name.clone(), value.to_owned()))
        };
        object.iter().map(text).collect()
    }

    fn endpoint(&self) -> Result<Endpoint, String> {
        let (command, url) = (self.text("command")?, self.text("url")?);
        let kind = self.text("type")?;
        let kind = match (kind.as_deref(), &command, &url) {
            (_, Some(_), Some(_)) => return Err("it has both \"command\" and \"url\": keep one".to_owned()),
            (Some("sse"), ..) => {
                return Err("the transport \"sse\" is not supported: try the server's streamable HTTP URL, which often \
                            ends with /mcp"
                    .to_owned());
            }
            (Some("stdio"), ..) | (None, Some(_), None) => "stdio",
            (Some("http" | "streamable-http"), ..) | (None, None, Some(_)) => "http",
            (Some(_), ..) => return Err("\"type\" must be \"stdio\" or \"http\"".to_owned()),
            (None, None, None) => return Err("it has neither \"command\" nor \"url\"".to_owned()),
        };
        let missing = |key: &str| format!("a server of type {kind} needs \"{key}\"");
        let not_blank = |text: &String| !text.trim().is_empty();
        if kind == "stdio" {
            let command = command.filter(not_blank).ok_or_else(|| missing("command"))?;
            let args = match self.0.get("args") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(args)) => {
                    let text = |arg: &Value| arg.as_str().map(str::to_owned);
                    args.iter()
                        .map(text)
                        .collect::<Option<_>>()
                        .ok_or_else(|| "\"args\" must be a list of texts".to_owned())?
                }
                Some(_) => return Err("\"args\" must be a list of texts".to_owned()),
            };
            return Ok(Endpoint::Stdio { command, args, env: self.texts("env")?, cwd: self.text("cwd")? });
        }
        let url = url.filter(not_blank).ok_or_else(|| missing("url"))?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err("\"url\" must begin with https:// or http://".to_owned());
        }
        let headers = self.texts("headers")?;
        let sign_in = sign_in(self.0, &url, &headers)?;
        Ok(Endpoint::Http { url, headers, sign_in })
    }

    /// A program is not asked for the stateless revision by default: one that does not know it may end, or never answer.
    fn revision(&self, endpoint: &Endpoint) -> Result<RevisionChoice, String> {
        match (self.text("protocol")?.as_deref(), endpoint) {
            (Some("auto"), _) | (None, Endpoint::Http { .. }) => Ok(RevisionChoice::Auto),
            (Some("legacy"), _) | (None, Endpoint::Stdio { .. }) => Ok(RevisionChoice::WithInitialize),
            (Some(STATELESS), _) => Ok(RevisionChoice::Stateless),
            (Some(_), _) => Err(format!("\"protocol\" must be \"auto\", \"legacy\" or \"{STATELESS}\"")),
        }
    }

    fn timeout(&self, warnings: &mut Vec<String>) -> Result<Duration, String> {
        let Some(value) = self.0.get("timeout") else { return Ok(DEFAULT_TIMEOUT) };
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
        let seconds = seconds.ok_or_else(|| "\"timeout\" must be a number of seconds above 0".to_owned())?;
        if seconds >= PROBABLY_MILLISECONDS {
            warnings.push(format!("\"timeout\" is in seconds: {seconds} are {} minutes", seconds / 60.0));
        }
        // More than a year is no limit that anyone means.
        Ok(Duration::from_secs_f64(seconds.min(31_536_000.0)))
    }

    fn exposure(&self, warnings: &mut Vec<String>) -> Result<Option<McpExposure>, String> {
        self.text("exposure")?.map(|text| exposure(&text, "exposure", warnings)).transpose()
    }

    fn tool_exposure(
        &self,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Vec<(String, McpExposure)>>, String> {
        let Some(value) = self.0.get("toolExposure") else { return Ok(None) };
        let wrong = || "\"toolExposure\" must be an object of exposures by tool names".to_owned();
        let object = value.as_object().ok_or_else(wrong)?;
        let one = |(tool, value): (&String, &Value)| {
            let text = value.as_str().ok_or_else(wrong)?;
            Ok((tool.clone(), exposure(text, "toolExposure", warnings)?))
        };
        object.iter().map(one).collect::<Result<_, String>>().map(Some)
    }
}

fn exposure(text: &str, key: &str, warnings: &mut Vec<String>) -> Result<McpExposure, String> {
    match text {
        "direct" => Ok(McpExposure::Direct),
        "deferred" => Ok(McpExposure::Deferred),
        "hidden" => Ok(McpExposure::Hidden),
        "codemode" | "codemode-deferred" => {
            warnings.push(format!("\"{key}\": agentd has no code mode; \"{text}\" counts as \"deferred\""));
            Ok(McpExposure::Deferred)
        }
        _ => Err(format!("\"{key}\" must be \"direct\", \"deferred\" or \"hidden\"")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(entry: &Value) -> Result<(ServerConfig, Vec<String>), String> {
        match parse("s", entry, Path::new("/m"))? {
            (Entry::Server(config), warnings) => Ok((*config, warnings)),
            (Entry::Override(_), _) => Err("an override".to_owned()),
        }
    }

    #[test]
    fn entries_are_read_with_their_defaults() {
        let (config, warnings) =
            server(&json!({"command": "npx", "args": ["-y", "x"], "env": {"K": "${K}"}, "more": 1})).unwrap();
        let env = BTreeMap::from([("K".to_owned(), "${K}".to_owned())]);
        let args = vec!["-y".to_owned(), "x".to_owned()];
        assert_eq!(config.endpoint, Endpoint::Stdio { command: "npx".into(), args, env, cwd: None });
        assert_eq!((config.timeout, config.enabled), (Duration::from_secs(60), true));
        assert_eq!((config.shared, config.roots, config.exposure), (false, true, McpExposure::Deferred));
        assert!(warnings.is_empty());
        let (config, _) =
            server(&json!({"url": "https://x.example/mcp", "type": "streamable-http"})).unwrap();
        assert!(config.shared && !config.roots);
        assert_eq!(config.revision, RevisionChoice::Auto);
        let revision = |entry: Value| server(&entry).unwrap().0.revision;
        assert_eq!(revision(json!({"command": "x"})), RevisionChoice::WithInitialize);
        assert_eq!(revision(json!({"command": "x", "protocol": "2026-07-28"})), RevisionChoice::Stateless);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_value_quoted() {
        for (entry, says) in [
            (json!(3), "must be an object"),
            (json!({"type": "stdio"}), "needs \"command\""),
            (json!({"command": " "}), "needs \"command\""),
            (json!({"command": "a", "url": "https://b"}), "keep one"),
            (json!({"type": "sse", "url": "https://b/sse"}), "/mcp"),
            (json!({"type": "pipe", "command": "hush"}), "\"type\" must be"),
            (json!({"command": "a", "args": ["hush", 1]}), "\"args\" must be a list"),
            (json!({"command": "a", "env": {"K": 1}}), "\"env\" must be an object of texts"),
            (json!({"command": "a", "env": {"K": "! "}}), "\"env.K\" has no command"),
            (json!({"url": "ftp://hush"}), "https:// or http://"),
            (json!({"command": "a", "timeout": 0}), "\"timeout\" must be"),
            (json!({"command": "a", "timeout": "hush"}), "\"timeout\" must be"),
            (json!({"command": "a", "exposure": "hush"}), "\"exposure\" must be"),
            (json!({"command": "a", "toolExposure": ["hush"]}), "\"toolExposure\" must be"),
            (json!({"command": "a", "enabled": "hush"}), "true or false"),
            (json!({"command": "a", "trustHints": "hush"}), "\"trustHints\" must be true or false"),
            (json!({"trustHints": true, "enabled": true}), "not \"trustHints\""),
            (json!({"enabled": true, "timeout": 3}), "not \"timeout\""),
            (json!({"command": "a", "protocol": "hush"}), "\"protocol\" must be"),
        ] {
            let problem = server(&entry).unwrap_err();
            assert!(problem.contains(says), "{says:?} is missing in {problem}");
            assert!(!problem.contains("hush"), "{problem}");
        }
        assert!(parse("a b", &json!({"command": "x"}), Path::new("/m")).is_err());
    }

    #[test]
    fn what_has_another_effect_than_meant_is_told() {
        for (entry, says) in [
            (json!({"command": "a", "timeout": 30000}), "is in seconds"),
            (json!({"command": "a", "exposure": "codemode"}), "counts as \"deferred\""),
        ] {
            let (_, warnings) = server(&entry).unwrap();
            assert!(warnings.iter().any(|text| text.contains(says)), "{says:?} is missing in {warnings:?}");
        }
    }
}
