//! Checks the arguments of a call against the tool's schema, after coercing values of the wrong type.

mod bounds;
mod coerce;
mod keywords;
mod validator;

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use agentd_protocol::number;
use serde_json::{Map, Value};
use validator::{MAX_STEPS, Misfit, Validator};

/// A check of more steps than this runs on a thread of its own, so that it does not block the runtime.
const STEPS_AT_ONCE: u64 = 5_000;

/// The schema of a tool's arguments. It is compiled with the first call, since most sessions call few of their tools.
///
/// Schemas come from built-in tools and from client tools. A schema that does not compile (or that refers to other documents, which are
/// never fetched) accepts anything; the tool then has to check its arguments itself.
#[derive(Clone)]
pub struct ArgumentSchema(Arc<Compiled>);

struct Compiled {
    schema: Value,
    validator: OnceLock<Option<Validator>>,
}

impl ArgumentSchema {
    /// Takes `schema`, a JSON Schema of draft 2020-12 unless its `$schema` names another. Sessions share equal schemas with their compiled
    /// form.
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        static IN_USE: Mutex<Vec<Weak<Compiled>>> = Mutex::new(Vec::new());
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|known| known.strong_count() > 0);
        let same = in_use.iter().filter_map(Weak::upgrade).find(|known| known.schema == *schema);
        Self(same.unwrap_or_else(|| {
            let new = Arc::new(Compiled { schema: schema.clone(), validator: OnceLock::new() });
            in_use.push(Arc::downgrade(&new));
            new
        }))
    }

    /// Checks that a schema can be used: it is valid and within the bounds. Compiles it, which takes a moment.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn try_compile(schema: &Value) -> Result<(), String> {
        Validator::compile(schema).map(drop)
    }

    fn validator(&self) -> Option<&Validator> {
        let compile = || {
            Validator::compile(&self.0.schema)
                .inspect_err(|error| {
                    tracing::warn!(
                        error,
                        "a tool's argument schema does not compile; its arguments are not checked"
                    );
                })
                .ok()
        };
        self.0.validator.get_or_init(compile).as_ref()
    }

    /// Checks `arguments` and returns them as the tool expects them.
    ///
    /// Arguments that fit stay unchanged. Others are coerced first if that is safe: numbers and booleans in strings, strings for numbers
    /// and booleans, arrays and objects in strings, and `null` for optional properties.
    ///
    /// The work is limited: arguments that would take more are refused without a check.
    ///
    /// # Errors
    /// The message for the model if the arguments do not fit even then: every misfit by its path, and the arguments as received.
    pub fn check(&self, tool_name: &str, arguments: Map<String, Value>) -> Result<Value, String> {
        let received = Value::Object(arguments);
        let Some(validator) = self.validator() else { return Ok(received) };
        if validator.work(&self.0.schema, &received).is_none() {
            return Err(too_much(tool_name));
        }
        if validator.misfits(&received).is_empty() {
            return Ok(received);
        }
        let mut mended = received.clone();
        coerce::coerce(&self.0.schema, &mut mended);
        // A text may have become a list.
        if validator.work(&self.0.schema, &mended).is_none() {
            return Err(too_much(tool_name));
        }
        let misfits = validator.misfits(&mended);
        if misfits.is_empty() {
            return Ok(mended);
        }
        Err(failure(tool_name, &misfits, &received))
    }

    /// Where a value does not fit, by its paths, at most 50 places. Nothing is coerced. A schema that does not compile takes anything.
    ///
    /// # Errors
    /// When the check would take too much work.
    pub fn misfits(&self, value: &Value) -> Result<Vec<String>, String> {
        let Some(validator) = self.validator() else { return Ok(Vec::new()) };
        if validator.work(&self.0.schema, value).is_none() {
            return Err("it is too large to be checked against its schema".to_owned());
        }
        let place = |path: &[String]| if path.is_empty() { "root".to_owned() } else { path.join(".") };
        let told = |misfit: Misfit| format!("{}: {}", place(&misfit.path), misfit.message);
        Ok(validator.misfits(value).into_iter().take(MAX_MISFITS).map(told).collect())
    }

    /// [`Self::check`] on another thread if it takes more than a moment. Needs a runtime.
    ///
    /// Cancel safety: after a drop, a check that has begun goes on to its near end.
    ///
    /// # Errors
    /// As [`Self::check`]; a check that panicked refuses the arguments.
    pub async fn check_beside(
        &self,
        tool_name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, String> {
        let arguments = Value::Object(arguments);
        // The schema is compiled with the first check.
        let is_compiled = self.0.validator.get().is_some() || bounds::is_small(&self.0.schema);
        let is_short = is_compiled
            && self.validator().is_none_or(|validator| {
                validator.work(&self.0.schema, &arguments).is_none_or(|steps| steps < STEPS_AT_ONCE)
            });
        let Value::Object(arguments) = arguments else { return Ok(arguments) };
        if is_short {
            return self.check(tool_name, arguments);
        }
        let (schema, name) = (self.clone(), tool_name.to_owned());
        let checked = tokio::task::spawn_blocking(move || schema.check(&name, arguments)).await;
        checked.unwrap_or_else(|error| {
            tracing::error!(%error, "the check of a tool's arguments broke down");
            Err(format!("The arguments of \"{tool_name}\" could not be checked."))
        })
    }
}

/// The most misfits that are reported one by one. A thousand bad items teach no more than the first few.
const MAX_MISFITS: usize = 50;

/// The text for arguments that do not fit, in the form that clients and models know.
fn failure(tool_name: &str, misfits: &[Misfit], received: &Value) -> String {
    let mut text = format!("Validation failed for tool \"{tool_name}\":\n");
    for Misfit { path, message } in misfits.iter().take(MAX_MISFITS) {
        let path = if path.is_empty() { "root".to_owned() } else { path.join(".") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - {path}: {message}");
    }
    let untold = misfits.len().saturating_sub(MAX_MISFITS);
    if untold > 0 {
        let _ = writeln!(text, "  - root: and {untold} more");
    }
    let mut received = received.clone();
    number::normalize(&mut received);
    let _ = write!(text, "\nReceived arguments:\n{received:#}");
    text
}

/// The text for arguments that would take too much work to check.
fn too_much(tool_name: &str) -> String {
    format!(
        "Validation failed for tool \"{tool_name}\":\n  - root: too large or too deeply nested to be checked against the tool's \
         schema (more than {MAX_STEPS} steps); send less at once"
    )
}

#[cfg(test)]
mod tests;
