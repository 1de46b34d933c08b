//! Calls one of the tools that search, as an agent would, and prints what a model would see:
//!
//! ```sh
//! cargo run -p agentd-tools --example search -- grep '{"pattern": "TODO"}' src
//! ```
//!
//! The exit code is 1 where the call fails; the message goes to stderr then.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{env, path::PathBuf, process::ExitCode, sync::Arc};

use agentd_agent::{ArgumentSchema, Invocation, Tool, ToolProgress};
use agentd_protocol::message::ContentBlock;
use agentd_tools::{FindTool, GrepTool, LsTool};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match call().await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

async fn call() -> Result<String, String> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, arguments, folder] = arguments.as_slice() else {
        return Err("usage: search grep|find|ls ARGUMENTS FOLDER".to_owned());
    };
    let tool: Arc<dyn Tool> = match name.as_str() {
        "grep" => Arc::new(GrepTool::new()),
        "find" => Arc::new(FindTool::new()),
        "ls" => Arc::new(LsTool::new()),
        other => return Err(format!("no tool is called {other}")),
    };
    let arguments: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    let arguments = ArgumentSchema::new(&tool.spec().parameters).check(name, tool.prepare(arguments))?;
    let cwd = PathBuf::from(folder).canonicalize().map_err(|error| error.to_string())?;
    let invocation = Invocation {
        call_id: "call".to_owned(),
        arguments,
        cwd,
        sees_images: false,
        images: agentd_images::Images::default(),
        session_env: Vec::new(),
        environment: None,
        cancel: CancellationToken::new(),
        progress: ToolProgress::new(|_| ()),
    };
    let result = tool.execute(invocation).await.map_err(|error| error.0)?;
    let texts = result.content.iter().map(|block| match block {
        ContentBlock::Text { text, .. } => text.as_str(),
        _ => "",
    });
    Ok(texts.collect())
}
