//! `agentctl tools`: which tools a session has, and which of them the model can call.

use agentd_protocol::{
    command::NoParams,
    daemon::{AttachSessionParams, Role, SessionInfo},
    tool_list::{SetActiveToolsParams, ToolInfo, ToolList, ToolSource},
};

use super::{daemon_call, last_session};
use crate::{
    cli::ToolsOptions,
    exit::{Exit, Fault, conclude},
    output,
    private_daemon::StartOptions,
    render::{Screen, cut, one_line},
    rpc::{AttachSession, CallError, Client, GetTools, SetActiveTools},
};

/// The width of a line where nothing limits it.
const DEFAULT_WIDTH: usize = 120;

/// The least width of a description.
const MIN_TEXT: usize = 20;

/// Makes the changes, and prints the table or the JSON.
pub(crate) fn run(options: &ToolsOptions) -> Exit {
    conclude(show(options))
}

fn show(options: &ToolsOptions) -> Result<Exit, Fault> {
    let given = options.id.as_deref();
    let list = if given.is_some() || changes(options) {
        of_session(&last_session::given_or_last(given)?, options)?
    } else {
        daemon_call::private::<GetTools>(&NoParams {})?
    };
    if options.json {
        return output::print_json(&list);
    }
    output::print(&table(&list.tools, Screen::of_stdout()))
}

fn changes(options: &ToolsOptions) -> bool {
    !options.activate.is_empty() || !options.deactivate.is_empty()
}

/// Asks the daemon, which opens the session if necessary; without a daemon, an agentd of our own.
fn of_session(session: &SessionInfo, options: &ToolsOptions) -> Result<ToolList, Fault> {
    let role = if changes(options) { Role::Control } else { Role::Observe };
    let of_daemon = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(role).await? else { return Ok(None) };
        let params = AttachSessionParams { session_id: session.id.clone(), since: None };
        let asked = async {
            connection.client.call::<AttachSession>(&params).await?;
            ask(&connection.client, options).await
        };
        asked.await.map(Some).map_err(Fault::from)
    })?;
    match (of_daemon, &session.path) {
        (Some(list), _) => Ok(list),
        (None, Some(path)) => {
            let start = StartOptions { args: vec!["--session".into(), path.clone()], cwd: None };
            daemon_call::with_private(start, async |client: &Client| ask(client, options).await)
        }
        (None, None) => {
            let text = format!("Error: session {} has no file and is in no daemon's memory.", session.id);
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

/// The names that are to be active. An unknown name in `--activate` is refused by the daemon; one in `--deactivate` has
/// to be refused here, since the daemon would not see it.
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

/// A line for each tool, cut to the width; nothing for no tools.
fn table(tools: &[ToolInfo], screen: Screen) -> String {
    let rows: Vec<[String; 3]> = tools.iter().map(row).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, sources) = (widest(0), widest(1));
    let width = screen.width.unwrap_or(DEFAULT_WIDTH);
    let room = width.saturating_sub(names + sources + 6).max(MIN_TEXT);
    let lines = rows.iter().zip(tools).map(|([name, source, does], tool)| {
        let mark = if tool.active { screen.paint("32", "*") } else { " ".to_owned() };
        let line = format!("{mark} {name:<names$}  {source:<sources$}  {}", cut(does, room));
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn row(tool: &ToolInfo) -> [String; 3] {
    let source = match (tool.source, &tool.client) {
        (ToolSource::Builtin, _) => "built in".to_owned(),
        (ToolSource::Client, Some(client)) => one_line(client),
        (ToolSource::Client, None) => "a client".to_owned(),
        (ToolSource::Mcp, _) => match &tool.server {
            Some(server) => format!("MCP server {}", one_line(server)),
            None => "an MCP server".to_owned(),
        },
        (ToolSource::Extension, _) => "an extension".to_owned(),
        (ToolSource::File, _) => "a file".to_owned(),
    };
    // The whole description is for the model, and long.
    let does = tool.snippet.as_deref().unwrap_or(&tool.description);
    [one_line(&tool.name), source, one_line(does)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(name: &str, active: bool) -> ToolInfo {
        ToolInfo {
            name: name.into(),
            label: name.into(),
            description: format!("Does\n{name}."),
            parameters: serde_json::Value::Null,
            active,
            source: ToolSource::Builtin,
            client: None,
            server: None,
            snippet: None,
            guidelines: Vec::new(),
            execution: agentd_protocol::tool_list::ToolExecution::Parallel,
            timeout_ms: None,
            constrained_sampling: None,
            annotations: None,
        }
    }

    fn list(tools: &[(&str, bool)]) -> ToolList {
        let tools = tools.iter().map(|(name, active)| example(name, *active)).collect();
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

    #[test]
    fn a_line_for_each() {
        let mut deploy = example("deploy", true);
        deploy.source = ToolSource::Client;
        deploy.client = Some("edi\u{1b}tor".into());
        deploy.snippet = Some("long ".repeat(20));
        let tools = [example("read", true), example("ls", false), deploy];
        let screen = Screen { width: Some(50), ..Screen::default() };
        assert_eq!(
            table(&tools, screen),
            "* read    built in  Does read.\n\
             \u{20} ls      built in  Does ls.\n\
             * deploy  edi tor   long long long long long long…\n"
        );
        assert_eq!(table(&[], screen), "");
    }
}
