//! `agentctl extensions list` and `restart`.

use agentd_protocol::{
    command::NoParams,
    daemon::{AttachSessionParams, Role},
    extensions::{ExtensionHostKind, ExtensionList, ExtensionState, ExtensionStatus},
};

use super::{daemon_call, last_session};
use crate::{
    cli::{ExtensionsListOptions, ExtensionsRestartOptions},
    exit::{Exit, Fault, conclude},
    output,
    private_daemon::StartOptions,
    render::one_line,
    rpc::{AttachSession, Client, ListExtensions, RestartExtensions},
};

/// Shows the extensions of a session, or those that one in this folder would have.
pub(crate) fn list(options: &ExtensionsListOptions) -> Exit {
    conclude(listed(options))
}

/// Starts the extensions of a session anew.
pub(crate) fn restart(options: &ExtensionsRestartOptions) -> Exit {
    conclude(restarted(options))
}

fn listed(options: &ExtensionsListOptions) -> Result<Exit, Fault> {
    let list = match &options.id {
        Some(id) => of_session(Some(id), Role::Observe, async |client| {
            Ok(client.call::<ListExtensions>(&NoParams {}).await?)
        })?,
        None => loaded_here(options.approve)?,
    };
    shown(&list, options.json)
}

/// Loads them in an agentd of our own.
fn loaded_here(approve: bool) -> Result<ExtensionList, Fault> {
    let flags: &[&str] = if approve { &["--no-session", "--approve"] } else { &["--no-session"] };
    let start = StartOptions { args: flags.iter().map(|flag| (*flag).to_owned()).collect(), cwd: None };
    daemon_call::with_private_quietly(start, async |client: &Client| {
        client.call::<ListExtensions>(&NoParams {}).await
    })
}

fn restarted(options: &ExtensionsRestartOptions) -> Result<Exit, Fault> {
    let list = of_session(options.id.as_deref(), Role::Control, async |client| {
        Ok(client.call::<RestartExtensions>(&NoParams {}).await?)
    })?;
    shown(&list, false)
}

/// Asks the daemon about a session in its memory.
fn of_session(
    given: Option<&str>,
    role: Role,
    ask: impl AsyncFnOnce(&Client) -> Result<ExtensionList, Fault>,
) -> Result<ExtensionList, Fault> {
    daemon_call::block_on(async {
        let connection = daemon_call::require(role).await?;
        let client = &connection.client;
        let session = last_session::given_or_last_on(client, given).await?;
        let params = AttachSessionParams { session_id: session.id.clone(), since: None };
        client.call::<AttachSession>(&params).await?;
        ask(client).await
    })
}

fn shown(list: &ExtensionList, json: bool) -> Result<Exit, Fault> {
    let printed = if json { output::print_json(list)? } else { output::print(&report(list))? };
    let is_well = list.extensions.iter().all(|extension| extension.state == ExtensionState::Running);
    Ok(if printed == Exit::Answered && !is_well { Exit::Failed } else { printed })
}

fn state(extension: &ExtensionStatus) -> &'static str {
    match extension.state {
        ExtensionState::Running => "running",
        ExtensionState::Restarting => "restarting",
        ExtensionState::Failed => "failed",
    }
}

/// A line for each extension, and below it what it brings.
fn report(list: &ExtensionList) -> String {
    if list.extensions.is_empty() {
        return "No extensions. `agentctl extensions new NAME` makes one, `agentctl install` gets others'.\n"
            .to_owned();
    }
    list.extensions.iter().map(lines).collect()
}

fn lines(extension: &ExtensionStatus) -> String {
    let host = match extension.kind {
        ExtensionHostKind::Node => "Node",
        ExtensionHostKind::Native => "its own program",
    };
    let pid = extension.host_pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let took = extension.load_ms.map(|ms| format!(", loaded in {ms:.0} ms")).unwrap_or_default();
    let mut text = format!("{:<10}  {}  ({host}{pid}{took})\n", state(extension), one_line(&extension.path));
    for (what, names) in [
        ("tools", &extension.tools),
        ("commands", &extension.commands),
        ("flags", &extension.flags),
        ("events", &extension.events),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("            {what:<9} {}\n", one_line(&names.join(", "))));
        }
    }
    if let Some(error) = &extension.last_error {
        text.push_str(&format!("            error     {}\n", one_line(error)));
    }
    text
}

#[cfg(test)]
mod tests {
    use agentd_protocol::resources::{SourceInfo, SourceOrigin, SourceScope};

    use super::*;

    #[test]
    fn an_extension_is_shown_with_what_it_brings() {
        let extension = ExtensionStatus {
            path: "/a/extensions/guard.ts".to_owned(),
            source_info: SourceInfo {
                path: "/a/extensions/guard.ts".to_owned(),
                source: "auto".to_owned(),
                scope: SourceScope::User,
                origin: SourceOrigin::TopLevel,
                base_dir: None,
            },
            kind: ExtensionHostKind::Node,
            host_pid: Some(7),
            state: ExtensionState::Failed,
            tools: vec!["count".to_owned(), "add".to_owned()],
            commands: Vec::new(),
            flags: vec!["plan".to_owned()],
            events: Vec::new(),
            load_ms: Some(12.4),
            last_error: Some("it\nended".to_owned()),
        };
        let text = report(&ExtensionList { extensions: vec![extension] });
        assert_eq!(
            text,
            "failed      /a/extensions/guard.ts  (Node, pid 7, loaded in 12 ms)\n            tools     count, add\n            \
             flags     plan\n            error     it ended\n"
        );
        assert!(report(&ExtensionList::default()).contains("agentctl extensions new"));
    }
}
