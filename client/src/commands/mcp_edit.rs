//! `agentctl mcp add`, `remove`, `enable` and `disable`: agentd changes `mcp.json`.

use std::io;

use agentd_protocol::mcp_edit::{McpChange, McpEditRequest, McpEdited};
use serde_json::{Map, Value, json};

use super::ask_agentd;
use crate::{
    cli::{McpAddOptions, McpDisableOptions, McpEnableOptions, McpEntryOptions, McpRemoveOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::one_line,
};

/// Adds a server.
pub(crate) fn add(options: &McpAddOptions) -> Exit {
    conclude(added(options))
}

/// Takes a server out.
pub(crate) fn remove(options: &McpRemoveOptions) -> Exit {
    let McpEntryOptions { name, local } = &options.entry;
    conclude(edited(*local, name, McpChange::Remove, |edited| {
        format!("Removed the MCP server \"{name}\" from {}.\n", edited.path)
    }))
}

/// Has sessions use a server.
pub(crate) fn enable(options: &McpEnableOptions) -> Exit {
    conclude(switched(&options.entry, true))
}

/// Has sessions not use a server.
pub(crate) fn disable(options: &McpDisableOptions) -> Exit {
    conclude(switched(&options.entry, false))
}

fn added(options: &McpAddOptions) -> Result<Exit, Fault> {
    let name = options.name.clone();
    let change = McpChange::Add { entry: entry(options)?, force: options.force };
    edited(options.local, &name, change, |edited| {
        let test = format!("agentctl mcp test {name}{}", if edited.used { "" } else { " --approve" });
        format!("Added the MCP server \"{name}\" to {}. Try it: {test}\n", edited.path)
    })
}

fn switched(entry: &McpEntryOptions, on: bool) -> Result<Exit, Fault> {
    let McpEntryOptions { name, local } = entry;
    edited(*local, name, McpChange::SetEnabled(on), |edited| {
        let again = if edited.changed { "" } else { "already " };
        let state = if on { "enabled" } else { "disabled" };
        format!("The MCP server \"{name}\" is {again}{state} in {}.\n", edited.path)
    })
}

/// Has agentd make the change, and tells what came of it.
fn edited(
    project: bool,
    name: &str,
    change: McpChange,
    tell: impl FnOnce(&McpEdited) -> String,
) -> Result<Exit, Fault> {
    let request = McpEditRequest { project, name: name.to_owned(), change };
    let mut answer = None;
    let mut take = |edited: McpEdited| {
        answer = Some(edited);
        Ok::<(), io::Error>(())
    };
    ask_agentd::lines("--mcp-edit", &request, Exit::Failed, &mut take)?.map_err(|error| {
        Fault::new(Exit::NoDaemon, format!("agentctl: agentd's answer cannot be read: {error}"))
    })?;
    let edited = answer.ok_or_else(|| Fault::new(Exit::NoDaemon, "agentctl: agentd gave no answer"))?;
    for warning in &edited.warnings {
        print_stderr(&format!("Note: {}", one_line(warning)));
    }
    if !edited.used {
        print_stderr(
            "Note: the project's file counts once the project is trusted: agentctl prompt asks, and --approve says so.",
        );
    }
    output::print(&tell(&edited))
}

/// The entry of a new server.
fn entry(options: &McpAddOptions) -> Result<Map<String, Value>, Fault> {
    let McpAddOptions { args, url, env, cwd, header, bearer_token_env_var, .. } = options;
    let wrong = |text: &str| Err(Fault::usage(format!("agentctl: {text}")));
    let mut entry = Map::new();
    match (url, args.split_first()) {
        (Some(_), Some(_)) => return wrong("a server has a --url or a command, not both: leave one out"),
        (None, None) => {
            return wrong(
                "what is the server? Give its program after --, such as -- npx -y NAME, or its --url",
            );
        }
        (None, Some((command, args))) => {
            if !header.is_empty() || bearer_token_env_var.is_some() {
                return wrong("--header and --bearer-token-env-var are for a server with a --url: use --env");
            }
            entry.insert("command".into(), json!(command));
            if !args.is_empty() {
                entry.insert("args".into(), json!(args));
            }
            let env = pairs("--env", "=", env)?;
            if !env.is_empty() {
                entry.insert("env".into(), Value::Object(env));
            }
            if let Some(cwd) = cwd {
                entry.insert("cwd".into(), json!(cwd));
            }
        }
        (Some(url), None) => {
            if !env.is_empty() || cwd.is_some() {
                return wrong("--env and --cwd are for a server with a command: use --header");
            }
            entry.insert("url".into(), json!(url));
            let mut headers = pairs("--header", "=:", header)?;
            if let Some(variable) = bearer_token_env_var {
                if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
                    return wrong(
                        "--bearer-token-env-var sets the header Authorization, and so does --header",
                    );
                }
                headers.insert("Authorization".into(), json!(format!("Bearer ${{{variable}}}")));
            }
            if !headers.is_empty() {
                entry.insert("headers".into(), Value::Object(headers));
            }
        }
    }
    let texts = [("description", &options.description), ("exposure", &options.exposure)];
    entry.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?)))));
    if let Some(seconds) = options.timeout {
        // A whole number is written as one.
        let whole = seconds as u64;
        entry.insert("timeout".into(), if whole as f64 == seconds { json!(whole) } else { json!(seconds) });
    }
    if options.shared {
        entry.insert("shared".into(), json!(true));
    }
    if options.trust_hints {
        entry.insert("trustHints".into(), json!(true));
    }
    Ok(entry)
}

/// Parses `NAME=VALUE`; a header may be written with a colon, as it is sent. A value may be a secret, so errors do not repeat it.
fn pairs(flag: &str, separators: &str, given: &[String]) -> Result<Map<String, Value>, Fault> {
    let pair = |text: &String| match text.split_once(|letter| separators.contains(letter)) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), json!(value.trim_start())))
        }
        _ => Err(Fault::usage(format!(
            "agentctl: {flag} takes NAME=VALUE, such as {flag} 'NAME=${{VARIABLE}}'"
        ))),
    };
    given.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command, Mcp};

    fn entry_of(args: &[&str]) -> Result<Value, Fault> {
        let cli = Cli::try_parse_from(["agentctl", "mcp", "add"].iter().chain(args)).unwrap();
        let Command::Mcp(Mcp::Add(options)) = cli.command else { panic!("another verb") };
        entry(&options).map(Value::Object)
    }

    #[test]
    fn flags_make_an_entry() {
        let entry = entry_of(&[
            "-l",
            "--env",
            "A=b=c",
            "--cwd",
            "~/x",
            "--exposure",
            "direct",
            "--timeout",
            "90",
            "--shared",
            "--description",
            "D",
            "name",
            "--",
            "npx",
            "-y",
            "x",
        ]);
        let expected = json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b=c"}, "cwd": "~/x", "description": "D",
            "exposure": "direct", "timeout": 90, "shared": true});
        assert_eq!(entry.unwrap(), expected);
        let entry = entry_of(&[
            "name",
            "--url",
            "https://x",
            "--header",
            "A=b",
            "--header",
            "C: d=e",
            "--bearer-token-env-var",
            "T",
            "--timeout",
            "0.5",
            "--trust-hints",
        ]);
        let headers = json!({"A": "b", "C": "d=e", "Authorization": "Bearer ${T}"});
        assert_eq!(
            entry.unwrap(),
            json!({"url": "https://x", "headers": headers, "timeout": 0.5, "trustHints": true})
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (args, says) in [
            (&["n"][..], "what is the server"),
            (&["n", "--url", "https://x", "--", "y"], "not both"),
            (&["n", "--header", "A=b", "--", "y"], "use --env"),
            (&["n", "--url", "https://x", "--env", "A=b"], "use --header"),
            (&["n", "--env", "hush", "--", "y"], "--env takes NAME=VALUE"),
            (
                &["n", "--url", "https://x", "--header", "authorization=hush", "--bearer-token-env-var", "T"],
                "so does --header",
            ),
        ] {
            let fault = entry_of(args).unwrap_err();
            assert!(fault.exit == Exit::Usage && fault.message.contains(says), "{fault}");
            assert!(!fault.message.contains("hush"), "{fault}");
        }
        assert!(Cli::try_parse_from(["agentctl", "mcp", "add", "n", "--exposure", "x", "--", "y"]).is_err());
    }
}
