//! `agentctl mcp login` and `agentctl mcp logout`: signing in to MCP servers that are reached by HTTP.

use std::io::{self, IsTerminal};

use agentd_protocol::mcp::{
    McpLoginFinishParams, McpLoginStartParams, McpLoginStarted, McpLogoutParams, McpServerInfo,
    McpServerState, McpServers,
};
use tokio::sync::mpsc;

use super::{
    auth::pasted_lines,
    browser::{has_screen, open},
    daemon_call,
};
use crate::{
    cli::{McpLoginOptions, McpLogoutOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    private_daemon::StartOptions,
    render::one_line,
    rpc::{CallError, Client, McpLoginFinish, McpLoginStart, McpLogout},
};

pub(crate) fn login(options: &McpLoginOptions) -> Exit {
    conclude(signed_in(options))
}

pub(crate) fn logout(options: &McpLogoutOptions) -> Exit {
    conclude(signed_out(options))
}

/// Signs in. Ctrl-C ends agentd, and with it the sign-in that has begun.
fn signed_in(options: &McpLoginOptions) -> Result<Exit, Fault> {
    let flags: &[&str] = if options.approve { &["--no-session", "--approve"] } else { &["--no-session"] };
    let start = StartOptions { args: flags.iter().map(|flag| (*flag).to_owned()).collect(), cwd: None };
    let params = McpLoginStartParams { name: options.name.clone(), timeout_seconds: options.timeout };
    let servers = daemon_call::with_private_quietly(start, async |client: &Client| {
        let started = client.call::<McpLoginStart>(&params).await?;
        show(&started, !options.no_browser);
        wait(client, started).await
    })?;
    let server = servers.servers.iter().find(|server| server.name == options.name);
    let printed = output::print(&report(&options.name, server))?;
    let is_there = server.is_some_and(|server| server.state == McpServerState::Connected);
    Ok(if printed == Exit::Answered && !is_there { Exit::Failed } else { printed })
}

/// Prints the instructions on stderr; stdout is for the result.
fn show(started: &McpLoginStarted, opens: bool) {
    let (name, url) = (one_line(&started.name), one_line(&started.url));
    let minutes = started.expires_in_seconds.div_ceil(60);
    let mut text = format!("To sign in to {name}, open this address in a browser:\n\n  {url}\n");
    if io::stdin().is_terminal() {
        text.push_str("\nIf the browser is on another machine, paste the address that it ends at here.\n");
    }
    text.push_str(&format!("\nWaiting for up to {minutes} min (Ctrl-C to give up) ..."));
    print_stderr(&text);
    if opens && has_screen() {
        open(&started.url);
    }
}

/// Waits for the end of the sign-in, and passes on pasted addresses.
async fn wait(client: &Client, started: McpLoginStarted) -> Result<McpServers, CallError> {
    let params = |code| McpLoginFinishParams { login_id: started.login_id.clone(), code };
    let waiting = params(None);
    let finish = client.call::<McpLoginFinish>(&waiting);
    tokio::pin!(finish);
    let mut lines = if io::stdin().is_terminal() { pasted_lines() } else { mpsc::channel(1).1 };
    loop {
        let line = tokio::select! {
            done = &mut finish => return done,
            Some(line) = lines.recv() => line,
        };
        let pasted = params(Some(line));
        tokio::select! {
            done = &mut finish => return done,
            answered = client.call::<McpLoginFinish>(&pasted) => match answered {
                // The error says what is wrong with the pasted text; the sign-in goes on.
                Err(CallError::Refused { error, .. }) => print_stderr(&one_line(&error)),
                answered => return answered,
            }
        }
    }
}

fn report(name: &str, server: Option<&McpServerInfo>) -> String {
    let name = one_line(name);
    match server {
        Some(server) if server.state == McpServerState::Connected => {
            format!("Signed in to {name}: connected, {} tools.\n", server.tools.len())
        }
        Some(server) => {
            let why = server.error.as_deref().map(one_line).unwrap_or_default();
            format!("Signed in to {name}, but the server is not there: {why}\n")
        }
        None => format!("Signed in to {name}.\n"),
    }
}

fn signed_out(options: &McpLogoutOptions) -> Result<Exit, Fault> {
    let params = McpLogoutParams { name: options.name.clone() };
    let done = daemon_call::private_quietly::<McpLogout>(&params)?;
    output::print(&format!(
        "The sign-in to {} was removed from {}.\n",
        one_line(&done.name),
        one_line(&done.file)
    ))
}

#[cfg(test)]
mod tests {
    use agentd_protocol::mcp::{McpExposure, McpTransport};

    use super::*;

    #[test]
    fn the_end_of_a_sign_in_says_whether_the_server_is_there() {
        let mut server = McpServerInfo {
            name: "s".into(),
            path: "/a/mcp.json".into(),
            transport: McpTransport::Http,
            state: McpServerState::Connected,
            enabled: true,
            exposure: McpExposure::Direct,
            shared: true,
            error: None,
            tools: vec!["mcp__s__a".into(), "mcp__s__b".into()],
            prompts: Vec::new(),
            server_name: None,
            server_version: None,
            protocol_version: None,
            pid: None,
        };
        assert_eq!(report("s", Some(&server)), "Signed in to s: connected, 2 tools.\n");
        server.state = McpServerState::Failed;
        server.error = Some("HTTP\n500".into());
        assert_eq!(report("s", Some(&server)), "Signed in to s, but the server is not there: HTTP 500\n");
        assert_eq!(report("s", None), "Signed in to s.\n");
    }
}
