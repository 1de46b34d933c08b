//! `agentctl tools`: which tools a session has, and which of them the model can call.

mod table;

use agentd_protocol::{
    command::NoParams,
    daemon::{AttachSessionParams, Role, SessionInfo},
    tool_list::{SetActiveToolsParams, ToolList},
};

use super::{daemon, live, one_call, which};
use crate::{
    cli::ToolsOptions,
    connect::Start,
    exit::{Exit, Fault},
    render::Screen,
    rpc::{AttachSession, CallError, Client, GetTools, SetActiveTools},
};

/// Changes what is to be changed, and prints the table or the JSON.
pub(crate) fn run(options: &ToolsOptions) -> Exit {
    one_call::conclude(show(options))
}

fn show(options: &ToolsOptions) -> Result<Exit, Fault> {
    let list = match &options.id {
        Some(id) => of_session(&which::session_of_anyone(id)?, options)?,
        None if changes(options) => {
            let text = "agentctl tools: ID is missing: whose tools are to be changed?\n  \
                        agentctl tools 0198c0de --activate grep\nThe setting defaultTools is for every new session.";
            return Err(Fault::usage(text));
        }
        None => one_call::call::<GetTools>(&NoParams {})?,
    };
    if options.json {
        return one_call::print_json(&list);
    }
    one_call::print(&table::table(&list.tools, Screen::of_stdout()))
}

fn changes(options: &ToolsOptions) -> bool {
    !options.activate.is_empty() || !options.deactivate.is_empty()
}

/// Asks the daemon, which opens the session for that if it must; without a daemon, an agentd of our own.
fn of_session(session: &SessionInfo, options: &ToolsOptions) -> Result<ToolList, Fault> {
    let role = if changes(options) { Role::Control } else { Role::Observe };
    let of_daemon = daemon::block_on(async {
        let Some(connection) = live::connect(role).await? else { return Ok(None) };
        let params = AttachSessionParams { session_id: session.id.clone(), since: None };
        let asked = async {
            connection.client.call::<AttachSession>(&params).await?;
            ask(&connection.client, options).await
        };
        asked.await.map(Some).map_err(|error| one_call::fault(&error))
    })?;
    match (of_daemon, &session.path) {
        (Some(list), _) => Ok(list),
        (None, Some(path)) => {
            let start = Start { args: vec!["--session".into(), path.clone()], cwd: None };
            one_call::converse(start, async |client: &Client| ask(client, options).await)
        }
        (None, None) => {
            let text = format!("Error: session {} has no file, and no daemon has it.", session.id);
            Err(Fault::new(Exit::Failed, text))
        }
    }
}

/// The tools of the current session, after the changes.
async fn ask(client: &Client, options: &ToolsOptions) -> Result<ToolList, CallError> {
    let list = client.call::<GetTools>(&NoParams {}).await?;
    if !changes(options) {
        return Ok(list);
    }
    client.call::<SetActiveTools>(&SetActiveToolsParams { tools: wanted(&list, options)? }).await?;
    client.call::<GetTools>(&NoParams {}).await
}

/// The names that are to be active. One that no tool has is left for the daemon to complain about, unless it is one that would be
/// left out anyway.
fn wanted(list: &ToolList, options: &ToolsOptions) -> Result<Vec<String>, CallError> {
    let known = |name: &String| list.tools.iter().any(|tool| tool.name == *name);
    if let Some(unknown) = options.deactivate.iter().find(|name| !known(name)) {
        let names: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
        let error = format!("Unknown tool \"{unknown}\"; this session has {}.", names.join(", "));
        return Err(CallError::Refused { error, code: None, hint: None });
    }
    let active = list.tools.iter().filter(|tool| tool.active).map(|tool| tool.name.clone());
    let mut wanted: Vec<String> = active.chain(options.activate.iter().cloned()).collect();
    wanted.retain(|name| !options.deactivate.contains(name));
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[(&str, bool)]) -> ToolList {
        let tools = tools.iter().map(|(name, active)| table::example(name, *active)).collect();
        ToolList { tools }
    }

    fn options(activate: &[&str], deactivate: &[&str]) -> ToolsOptions {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolsOptions { id: None, activate: names(activate), deactivate: names(deactivate), json: false }
    }

    #[test]
    fn what_is_to_be_active_follows_from_what_is() {
        let list = list(&[("read", true), ("bash", true), ("grep", false)]);
        let check =
            |activate: &[&str], deactivate: &[&str]| wanted(&list, &options(activate, deactivate)).unwrap();
        assert_eq!(check(&["grep"], &[]), ["read", "bash", "grep"]);
        assert_eq!(check(&["grep"], &["bash", "grep"]), ["read"]);
        assert_eq!(check(&["nope"], &[]), ["read", "bash", "nope"], "which the daemon refuses");
        let error = wanted(&list, &options(&[], &["nope"])).unwrap_err().to_string();
        assert_eq!(error, "Unknown tool \"nope\"; this session has read, bash, grep.");
    }
}
