//! Checks the arguments of a `bash` call.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use agentd_agent::{ToolError, hooks::OUTSIDE_SANDBOX};
use agentd_process::TerminalSize;
use serde::Deserialize;
use serde_json::Value;

use super::{
    features::BashFeatures,
    ready::{Readiness, ReadyArguments},
    timeout::BashTimeout,
};
use crate::path::{Base, resolve};

/// Arguments that are meant for one command alone.
const OF_ONE_COMMAND: [&str; 8] =
    ["cwd", "env", "pty", "background", "async", "name", "ready", "outsideSandbox"];

/// Whether a call of `bash` has a shell of its own, in the session's folder, even where there is one that stays: it says something that is
/// meant for one command alone.
#[must_use]
pub fn has_own_shell(arguments: &Value) -> bool {
    OF_ONE_COMMAND.iter().any(|name| arguments.get(*name).is_some())
}

/// A checked call. Arguments of disabled features count as not given.
#[derive(Debug)]
pub(super) struct BashCall {
    pub(super) command: String,
    pub(super) timeout: Option<BashTimeout>,
    /// The size of the terminal to run on, if any.
    pub(super) terminal: Option<TerminalSize>,
    pub(super) background: bool,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) outside_sandbox: bool,
    /// It is to be a job.
    pub(super) job: Option<JobArguments>,
}

/// What a call says of the job that it starts.
#[derive(Debug, Default)]
pub(super) struct JobArguments {
    /// The name of a service.
    pub(super) name: Option<String>,
    /// How a service shows that it is ready.
    pub(super) ready: Option<Readiness>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BashArguments {
    command: String,
    timeout: Option<f64>,
    pty: Option<bool>,
    rows: Option<f64>,
    cols: Option<f64>,
    background: Option<bool>,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    outside_sandbox: Option<bool>,
    r#async: Option<bool>,
    name: Option<String>,
    ready: Option<ReadyArguments>,
}

impl BashCall {
    /// Reads the arguments of a call in a session whose working directory is `base.cwd`.
    ///
    /// # Errors
    /// The message for the model.
    pub(super) fn read(arguments: Value, features: &BashFeatures, base: Base<'_>) -> Result<Self, ToolError> {
        let BashArguments {
            command,
            timeout: seconds,
            pty,
            rows,
            cols,
            background,
            cwd,
            env,
            outside_sandbox,
            r#async,
            name,
            ready,
        } = serde_json::from_value(without_unknown(arguments, features))
            .map_err(|error| ToolError(format!("Invalid arguments for bash: {error}")))?;
        let job = job(r#async, name, ready)?;
        let in_background = background == Some(true) || job.is_some();
        let terminal = match features.pty.filter(|_| pty == Some(true)) {
            Some(plain) => Some(TerminalSize {
                rows: lines("rows", rows)?.unwrap_or(plain.rows),
                cols: lines("cols", cols)?.unwrap_or(plain.cols),
            }),
            None => None,
        };
        Ok(Self {
            command,
            timeout: match seconds {
                Some(seconds) => Some(BashTimeout::of_call(seconds)?),
                None if in_background => None,
                None => features.default_timeout.map(BashTimeout::by_default),
            },
            terminal,
            background: background == Some(true),
            cwd: folder(cwd.as_deref(), base)?,
            env: env.unwrap_or_default().into_iter().map(variable).collect::<Result<_, _>>()?,
            outside_sandbox: outside_sandbox == Some(true),
            job,
        })
    }
}

/// What the call says of a job. A name or a sign of readiness makes it one, too.
fn job(
    is_async: Option<bool>,
    name: Option<String>,
    ready: Option<ReadyArguments>,
) -> Result<Option<JobArguments>, ToolError> {
    let name = name.filter(|name| !name.is_empty());
    if is_async == Some(false) && (name.is_some() || ready.is_some()) {
        return Err(ToolError("name and ready are for services, which need async: true.".to_owned()));
    }
    if is_async != Some(true) && name.is_none() && ready.is_none() {
        return Ok(None);
    }
    if let Some(name) = &name {
        checked_name(name)?;
    }
    Ok(Some(JobArguments { name, ready: ready.map(Readiness::of).transpose()? }))
}

/// The longest name of a service.
const MAX_NAME: usize = 32;

fn checked_name(name: &str) -> Result<(), ToolError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.len() > MAX_NAME
        || !name.chars().all(is_plain)
        || !name.chars().any(|it| it.is_ascii_alphanumeric())
    {
        return Err(ToolError(format!(
            "Invalid name: {name:?}. Names of services have at most {MAX_NAME} letters, digits, dots, dashes and underscores."
        )));
    }
    // These are the ids of jobs.
    if name.strip_prefix("bg-").is_some_and(|number| number.chars().all(|it| it.is_ascii_digit())) {
        return Err(ToolError(format!("Invalid name: {name:?} is the form of the ids of jobs.")));
    }
    Ok(())
}

/// Removes arguments that are not in the schema. Their values are ignored, whatever they are.
fn without_unknown(mut arguments: Value, features: &BashFeatures) -> Value {
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.retain(|name, _| match name.as_str() {
            "command" | "timeout" => true,
            "pty" | "rows" | "cols" => features.pty.is_some(),
            "background" => features.background.is_some(),
            "async" | "name" | "ready" => features.jobs.is_some(),
            "cwd" => features.cwd,
            "env" => features.env,
            OUTSIDE_SANDBOX => features.sandbox.is_some(),
            _ => false,
        });
    }
    arguments
}

fn folder(cwd: Option<&str>, base: Base<'_>) -> Result<PathBuf, ToolError> {
    match cwd {
        None | Some("") => Ok(Path::to_owned(base.cwd)),
        Some(cwd) => resolve(cwd, base).map_err(|error| ToolError(error.to_string())),
    }
}

fn lines(name: &str, count: Option<f64>) -> Result<Option<u16>, ToolError> {
    let Some(count) = count else { return Ok(None) };
    // A whole number within these limits fits 16 bits.
    if (1.0..=1000.0).contains(&count) && count.fract() == 0.0 {
        return Ok(Some(count as u16));
    }
    Err(ToolError(format!("Invalid {name}: must be a whole number from 1 to 1000")))
}

fn variable((name, value): (String, String)) -> Result<(OsString, OsString), ToolError> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err(ToolError(format!(
            "Invalid environment variable name: {name:?}. Names have letters, digits and underscores, and do not begin \
             with a digit."
        )));
    }
    if value.contains('\0') {
        // The value may be a secret.
        return Err(ToolError(format!(
            "Invalid value of the environment variable {name}: it has a NUL character"
        )));
    }
    Ok((name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all() -> BashFeatures {
        BashFeatures { pty: Some(TerminalSize::default()), cwd: true, env: true, ..BashFeatures::default() }
    }

    fn read(arguments: Value, features: &BashFeatures) -> Result<BashCall, String> {
        let base = Base { cwd: Path::new("/w"), home: Some(Path::new("/home/me")) };
        BashCall::read(arguments, features, base).map_err(|error| error.0)
    }

    #[test]
    fn what_is_off_counts_as_not_given() {
        let arguments = json!({
            "command": "c", "pty": 5, "background": "x", "cwd": 1, "env": {"1": 2}, "other": [],
            "outsideSandbox": 3,
        });
        let call = read(arguments, &BashFeatures::default()).unwrap();
        assert_eq!((call.terminal, call.background, call.env.len()), (None, false, 0));
        assert_eq!(call.cwd, Path::new("/w"));
    }

    #[test]
    fn names_and_signs_make_jobs() {
        let of = |is_async, name: Option<&str>, ready: Option<Value>| {
            let ready = ready.map(|ready| serde_json::from_value(ready).unwrap());
            job(is_async, name.map(str::to_owned), ready).map(|job| job.is_some()).map_err(|error| error.0)
        };
        assert_eq!(of(None, None, None), Ok(false));
        assert_eq!(of(Some(false), Some(""), None), Ok(false));
        assert_eq!(of(Some(true), None, None), Ok(true));
        assert_eq!(of(None, Some("web-1.x"), None), Ok(true));
        assert_eq!(of(None, None, Some(json!({"port": 80}))), Ok(true));
        let refused = of(Some(false), Some("web"), None).unwrap_err();
        assert!(refused.contains("need async: true"), "{refused}");
        for name in ["a b", "ä", "../x", "...", "bg-1", &"x".repeat(33)] {
            let refused = of(Some(true), Some(name), None).unwrap_err();
            assert!(refused.starts_with("Invalid name: "), "{refused}");
        }
    }

    #[test]
    fn folders_are_those_of_tools() {
        let cwd = |cwd: &str| read(json!({"command": "c", "cwd": cwd}), &all()).unwrap().cwd;
        for (given, meant) in
            [("", "/w"), ("a/..", "/w"), ("sub", "/w/sub"), ("/x", "/x"), ("~/y", "/home/me/y")]
        {
            assert_eq!(cwd(given), Path::new(meant));
        }
    }

    #[test]
    fn variables_are_checked() {
        let env = |env: Value| read(json!({"command": "c", "env": env}), &all()).map(|call| call.env);
        assert_eq!(
            env(json!({"A_1": "x", "_": ""})),
            Ok(vec![("A_1".into(), "x".into()), ("_".into(), "".into())])
        );
        for name in ["", "1A", "A-B", "A=B", "Ä", "A B"] {
            let error = env(json!({name: "secret"})).unwrap_err();
            assert!(
                error.starts_with("Invalid environment variable name: ") && !error.contains("secret"),
                "{error}"
            );
        }
        let error = env(json!({"A": "secret\0"})).unwrap_err();
        assert_eq!(error, "Invalid value of the environment variable A: it has a NUL character");
    }

    #[test]
    fn terminals_have_a_size() {
        let terminal = |rows: Value| {
            read(json!({"command": "c", "pty": true, "rows": rows, "cols": null}), &all())
                .map(|call| call.terminal)
        };
        assert_eq!(terminal(json!(50)), Ok(Some(TerminalSize { rows: 50, cols: 80 })));
        assert_eq!(terminal(Value::Null), Ok(Some(TerminalSize::default())));
        for rows in [json!(0), json!(-1), json!(1.5), json!(1001)] {
            assert_eq!(terminal(rows), Err("Invalid rows: must be a whole number from 1 to 1000".into()));
        }
    }
}
