//! What the model is told about `bash`, and how a call of it starts.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::{OutputPlace, Shell, ShellJob, Streams};
use agentd_protocol::{
    command::{Work, WorkKind},
    tool::{ConstrainedSampling, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;

use super::call::{self, Timeout};

/// The longest time limit: what fits the milliseconds of the reference's timers.
const MAX_TIMEOUT: Duration = Duration::from_millis(2_147_483_647);

/// What the calls of one session's `bash` have in common.
#[derive(Clone)]
pub struct BashOptions {
    /// What runs the commands.
    pub shell: Arc<dyn Shell>,
    /// The setting `shellCommandPrefix`: a line that comes before every command.
    pub command_prefix: Option<String>,
    /// Where output that is too long to show is kept.
    pub outputs: OutputPlace,
}

/// Runs shell commands.
pub struct BashTool {
    options: BashOptions,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
    name: "bash".into(),
    description: "Runs a bash command in the current working directory and returns what it writes to stdout and \
        stderr. Long output is cut to its last 2000 lines or 50KB, whichever is less; all of it is then kept in a \
        temporary file that the result names. A timeout in seconds can be given; there is none by default."
        .into(),
    parameters: json!({
        "type": "object",
        "properties": {
            "command": { "type": "string", "description": "The bash command to run" },
            "timeout": { "type": "number", "description": "Seconds after which the command is killed (optional; no limit by default)" },
        },
        "required": ["command"],
    }),
    constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
}
});

impl BashTool {
    /// The tool of one session.
    #[must_use]
    pub fn new(options: BashOptions) -> Self {
        Self { options }
    }

    async fn run(&self, invocation: Invocation) -> Result<agentd_protocol::tool::ToolResult, ToolError> {
        let Invocation { call_id, arguments, cwd, session_env, cancel, progress, .. } = invocation;
        let arguments: Arguments = serde_json::from_value(arguments)
            .map_err(|error| ToolError(format!("Invalid arguments for bash: {error}")))?;
        let timeout = arguments.timeout.map(timeout).transpose()?;
        let BashOptions { shell, command_prefix, outputs } = &self.options;
        let command = match command_prefix {
            Some(prefix) => format!("{prefix}\n{}", arguments.command),
            None => arguments.command,
        };
        let job = ShellJob {
            command,
            cwd,
            env: session_env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            timeout: timeout.as_ref().map(|timeout| timeout.time),
            cancel,
            streams: Streams::Output,
            work: Work { kind: WorkKind::Tool, id: Some(call_id.into()), name: Some(SPEC.name.clone()) },
        };
        call::run(&**shell, job, timeout, outputs.clone(), &progress).await
    }
}

impl Tool for BashTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Run bash commands: list files, search, build, test, use git")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "The PI_* environment variables of a bash command tell about this session (its id, file, provider and model); inspect them when that helps.",
        ]
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

fn timeout(seconds: f64) -> Result<Timeout, ToolError> {
    // Written so that NaN is refused as well.
    if !(seconds > 0.0 && seconds.is_finite()) {
        return Err(ToolError("Invalid timeout: must be a finite number of seconds".into()));
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time <= MAX_TIMEOUT => Ok(Timeout { time, seconds }),
        Ok(_) | Err(_) => Err(ToolError("Invalid timeout: maximum is 2147483.647 seconds".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_bounds() {
        let message = |seconds| timeout(seconds).map(|timeout| timeout.time).map_err(|error| error.0);
        assert_eq!(message(0.5), Ok(Duration::from_millis(500)));
        assert_eq!(message(2_147_483.647), Ok(MAX_TIMEOUT));
        let maximum = Err("Invalid timeout: maximum is 2147483.647 seconds".into());
        assert_eq!(message(2_147_483.648), maximum);
        assert_eq!(message(1e300), maximum);
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(message(seconds), Err("Invalid timeout: must be a finite number of seconds".into()));
        }
    }

    #[test]
    fn the_schema_names_the_arguments() {
        assert_eq!(SPEC.parameters["required"], json!(["command"]));
        let properties = SPEC.parameters["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["command", "timeout"]);
        assert_eq!(properties["command"]["type"], "string");
        assert_eq!(properties["timeout"]["type"], "number");
    }
}
