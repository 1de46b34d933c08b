//! Pure. Requests about the editor's terminals, and its answers.

use std::path::PathBuf;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::tool_calls::shortened;

/// The tool whose calls have terminals.
pub(crate) const BASH: &str = "bash";

/// A request about a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalRequest {
    /// Run a command in a new one.
    Create(TerminalCommand),
    /// Wait for the end of the command in this one.
    Exit(String),
    /// The output of this one so far.
    Output(String),
    /// Kill the command in this one.
    Kill(String),
    /// Give this one up. Nobody waits for the answer.
    Release(String),
}

/// A command for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The tool call that it belongs to, which shows the terminal.
    pub call: String,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables besides those of the editor.
    pub env: Vec<(String, String)>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The most bytes of output to keep.
    pub output_limit: u64,
}

/// The editor's answer about a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalAnswer {
    /// The id of a new one.
    Created(String),
    /// How the command ended, as far as the editor says.
    Ended {
        /// Its exit code.
        code: Option<u32>,
        /// The name of the signal that ended it.
        signal: Option<String>,
    },
    /// The end of the output.
    Output {
        /// The text.
        text: String,
        /// Whether its beginning is missing.
        is_cut: bool,
    },
    /// It is done.
    Done,
}

/// A request about a terminal that the editor has not answered.
#[derive(Debug)]
pub(crate) enum TerminalCall {
    /// A new one for this call, whose title is known.
    Create {
        call: String,
        title: String,
    },
    /// A new one that nobody waits for any more.
    Unwanted,
    /// The end of this one.
    Exit(String),
    Output,
    /// One whose answer says nothing.
    Other,
}

/// The method and parameters of a request, and what is kept of it.
pub(crate) fn request(session: &str, request: TerminalRequest) -> (&'static str, Value, TerminalCall) {
    let of = |terminal: &str| json!({"sessionId": session, "terminalId": terminal});
    match request {
        TerminalRequest::Create(command) => {
            let TerminalCommand { call, program, args, env, cwd, output_limit } = command;
            let env: Vec<Value> =
                env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            let script = args.last().and_then(|script| script.trim().lines().next());
            let title = shortened(script.unwrap_or(BASH));
            let params = json!({
                "sessionId": session, "command": program, "args": args, "env": env, "cwd": cwd,
                "outputByteLimit": output_limit,
            });
            ("terminal/create", params, TerminalCall::Create { call, title })
        }
        TerminalRequest::Exit(terminal) => {
            ("terminal/wait_for_exit", of(&terminal), TerminalCall::Exit(terminal))
        }
        TerminalRequest::Output(terminal) => ("terminal/output", of(&terminal), TerminalCall::Output),
        TerminalRequest::Kill(terminal) => ("terminal/kill", of(&terminal), TerminalCall::Other),
        TerminalRequest::Release(terminal) => ("terminal/release", of(&terminal), TerminalCall::Other),
    }
}

/// The editor's answer to a request. Optional fields are read leniently.
pub(crate) fn answer(
    call: &TerminalCall,
    given: &Result<&RawValue, String>,
) -> Result<TerminalAnswer, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Created {
        terminal_id: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ended {
        #[serde(default)]
        exit_code: Value,
        #[serde(default)]
        signal: Value,
    }
    #[derive(Deserialize)]
    struct Output {
        output: String,
        truncated: bool,
    }
    fn read<T: DeserializeOwned>(answer: &RawValue) -> Result<T, String> {
        serde_json::from_str(answer.get()).map_err(|error| format!("its answer cannot be read: {error}"))
    }
    let given = given.as_ref().map_err(Clone::clone)?;
    match call {
        TerminalCall::Create { .. } | TerminalCall::Unwanted => {
            read(given).map(|Created { terminal_id }| TerminalAnswer::Created(terminal_id))
        }
        TerminalCall::Exit(_) => read(given).map(|Ended { exit_code, signal }| TerminalAnswer::Ended {
            code: exit_code.as_u64().and_then(|code| code.try_into().ok()),
            signal: signal.as_str().map(str::to_owned),
        }),
        TerminalCall::Output => read(given)
            .map(|Output { output, truncated }| TerminalAnswer::Output { text: output, is_cut: truncated }),
        TerminalCall::Other => Ok(TerminalAnswer::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(&value).unwrap()
    }

    #[test]
    fn answers_are_read_leniently_but_for_what_they_are_about() {
        let exit = TerminalCall::Exit("t".into());
        let ended = |code, signal: Option<&str>| {
            Ok(TerminalAnswer::Ended { code, signal: signal.map(str::to_owned) })
        };
        for (given, expected) in [
            (json!({"exitCode": 3}), ended(Some(3), None)),
            (json!({"exitCode": null, "signal": "SIGTERM"}), ended(None, Some("SIGTERM"))),
            (json!({"exitCode": -1, "signal": 9}), ended(None, None)),
            (json!({}), ended(None, None)),
        ] {
            assert_eq!(answer(&exit, &Ok(&raw(given.clone()))), expected, "{given}");
        }
        let output = raw(json!({"output": "a", "truncated": true, "exitStatus": 5}));
        let expected = TerminalAnswer::Output { text: "a".into(), is_cut: true };
        assert_eq!(answer(&TerminalCall::Output, &Ok(&output)), Ok(expected));
        let create = TerminalCall::Create { call: "c".into(), title: "t".into() };
        for wrong in [json!({}), json!(null), json!({"terminalId": 1})] {
            assert!(
                answer(&create, &Ok(&raw(wrong.clone()))).unwrap_err().contains("cannot be read"),
                "{wrong}"
            );
        }
        assert_eq!(answer(&TerminalCall::Other, &Err("no".into())), Err("no".into()));
        assert_eq!(answer(&TerminalCall::Other, &Ok(&raw(json!(null)))), Ok(TerminalAnswer::Done));
    }
}
