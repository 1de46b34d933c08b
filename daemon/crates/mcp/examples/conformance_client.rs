//! The client that the official MCP conformance runner starts (`conformance client --command`): it connects to the server of a scenario as a
//! session does, through `mcp.json` and [`McpSession`], and calls what the scenario wants to be called.
//!
//! Usage: `conformance_client URL`, with `MCP_CONFORMANCE_SCENARIO` and `MCP_CONFORMANCE_PROTOCOL_VERSION` as the runner sets them.

#![allow(clippy::print_stderr, reason = "the runner shows it where a scenario fails")]

#[path = "conformance_client/sign_in.rs"]
mod sign_in;

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use agentd_agent::{Invocation, ToolProgress};
use agentd_config::{AgentDir, Environment};
use agentd_http::Network;
use agentd_images::Images;
use agentd_mcp::{
    MCP_LOG, McpConfig, McpSession, ServerContext, ServerTool, SharedServers, UserAnswer, UserInput,
};
use agentd_memory::MemoryAccount;
use agentd_process::{GuardCommand, Launcher, OutputStorage};
use agentd_program_log::ProgramLogs;
use serde_json::{Map, Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A user who agrees to everything, and types nothing.
struct Agreeing;

impl UserInput for Agreeing {
    fn is_there(&self) -> bool {
        true
    }

    fn select(&self, _title: String, options: Vec<String>) -> UserAnswer<'_> {
        Box::pin(async move { options.into_iter().next() })
    }

    fn input(&self, _title: String, _placeholder: Option<String>) -> UserAnswer<'_> {
        Box::pin(async { Some(String::new()) })
    }
}

/// How often a call is made that wants another sign-in each time.
const MAX_CALLS: usize = 3;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let url = env::args()
        .next_back()
        .filter(|url| url.starts_with("http"))
        .ok_or("usage: conformance_client URL")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let home = tempfile::tempdir()?;
    let (session, tasks) = open(&url, home.path(), &scenario)?;
    let tools: Arc<Mutex<Vec<ServerTool>>> = Arc::default();
    let sink = {
        let tools = Arc::clone(&tools);
        move |found| *tools.lock().unwrap_or_else(PoisonError::into_inner) = found
    };
    session.start([], Some(Arc::new(Agreeing)), Box::new(sink));
    session.ready().await;
    sign_in::sign_in_where_wanted(&session).await;
    for server in session.list() {
        eprintln!("{}: {:?} {}", server.name, server.state, server.error.unwrap_or_default());
    }
    for (name, arguments) in calls(&scenario, &tools) {
        for _ in 0..MAX_CALLS {
            let tool = {
                let tools = tools.lock().unwrap_or_else(PoisonError::into_inner);
                let wanted = tools.iter().find(|it| it.tool.spec().name == format!("mcp__test__{name}"));
                wanted
                    .map(|it| Arc::clone(&it.tool))
                    .ok_or_else(|| format!("the server has no tool {name}"))?
            };
            let outcome = tool.execute(invocation(arguments.clone(), home.path())).await;
            eprintln!("{name}: {outcome:?}");
            // A call that wants a sign-in did not run.
            if !outcome.is_err_and(|error| error.0.contains("requires sign-in")) {
                break;
            }
            sign_in::sign_in(&session).await?;
        }
    }
    drop(session);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// A session with one server.
fn open(url: &str, home: &Path, scenario: &str) -> Result<(Arc<McpSession>, TaskTracker), Box<dyn Error>> {
    let oauth = sign_in::oauth(scenario);
    let entry = json!({"url": url, "exposure": "direct", "roots": true, "oauth": oauth});
    std::fs::write(home.join("mcp.json"), json!({"mcpServers": {"test": entry}}).to_string())?;
    let mut found = Vec::new();
    let config = McpConfig::load(&AgentDir::at(home), None, &mut found);
    if !found.is_empty() {
        return Err(format!("{found:?}").into());
    }
    let shared = SharedServers::default();
    let tasks = TaskTracker::new();
    let context = ServerContext {
        cwd: home.to_owned(),
        folders: Vec::new(),
        variables: Environment::from_iter(BTreeMap::<String, String>::new()),
        child_environment: Vec::new().into(),
        launcher: Launcher::new(GuardCommand::this_program()),
        tasks: tasks.clone(),
        http: Arc::clone(shared.http()),
        network: Arc::new(Network::default()),
        agent_dir: AgentDir::at(home),
        auth: None,
        log: ProgramLogs::default().at(home.join(MCP_LOG)),
        memory: MemoryAccount::default(),
    };
    let session = McpSession::new(config, &context, OutputStorage::from(home), &shared, false);
    Ok((session.ok_or("mcp.json has no server")?, tasks))
}

/// The calls that a scenario wants, by the server's own names: where it names none, the first tool is called.
fn calls(scenario: &str, tools: &Mutex<Vec<ServerTool>>) -> Vec<(String, Value)> {
    let names: Vec<String> = {
        let tools = tools.lock().unwrap_or_else(PoisonError::into_inner);
        let own = |it: &ServerTool| it.tool.spec().name.strip_prefix("mcp__test__").map(str::to_owned);
        tools.iter().filter_map(own).collect()
    };
    if let Ok(context) = env::var("MCP_CONFORMANCE_CONTEXT")
        && let Ok(context) = serde_json::from_str::<Value>(&context)
        && let Some(calls) = context.get("toolCalls").and_then(Value::as_array)
    {
        let call =
            |call: &Value| Some((call.get("name")?.as_str()?.to_owned(), call.get("arguments")?.clone()));
        return calls.iter().filter_map(call).collect();
    }
    match scenario {
        "initialize" => Vec::new(),
        // What came of a schema is sent back.
        "json-schema-2020-12-preservation" => {
            let tools = tools.lock().unwrap_or_else(PoisonError::into_inner);
            let tool = tools.iter().find(|it| it.tool.spec().name.ends_with("json_schema_2020_12_tool"));
            let schema = tool.map(|it| it.tool.spec().parameters.clone());
            vec![("json_schema_echo".to_owned(), json!({"schema": schema}))]
        }
        "tools_call" => vec![("add_numbers".to_owned(), json!({"a": 2, "b": 3}))],
        _ => names.into_iter().map(|name| (name, json!({}))).collect(),
    }
}

fn invocation(arguments: Value, cwd: &Path) -> Invocation {
    Invocation {
        call_id: "call".to_owned(),
        arguments: if arguments.is_null() { Value::Object(Map::new()) } else { arguments },
        cwd: cwd.to_owned(),
        sees_images: true,
        images: Images::default(),
        session_env: Vec::new(),
        environment: None,
        cancel: CancellationToken::new(),
        progress: ToolProgress::new(|_| {}),
    }
}
