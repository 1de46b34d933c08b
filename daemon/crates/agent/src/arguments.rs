//! Checks the arguments of a call against the tool's schema, after mending the slips that models make.

mod coerce;
mod fit;
mod report;
mod validator;

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use serde_json::{Map, Value};

use validator::Validator;

/// The schema of a tool's arguments, compiled once, with the first call: most sessions call few of their tools.
///
/// Schemas come from the tools of this program and from others that it is connected to. One that does not compile (or
/// that refers to documents elsewhere, which are never fetched) accepts anything: the tool itself then has to cope.
#[derive(Clone)]
pub struct ArgumentSchema(Arc<Compiled>);

struct Compiled {
    schema: Value,
    validator: OnceLock<Option<Validator>>,
}

impl ArgumentSchema {
    /// Takes `schema`, a JSON Schema of draft 2020-12 unless its `$schema` says otherwise. One that is in use elsewhere in
    /// the process, in another session, is shared with its compiled form.
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

    /// Whether a schema can be used to check arguments. Compiles it, which takes a moment.
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

    /// Checks `arguments`, and gives them back as the tool wants them.
    ///
    /// Arguments that fit are not touched. Others are mended first where that is safe: numbers and booleans in
    /// strings, strings for numbers and booleans, arrays and objects in strings, and `null` for properties that may
    /// be left out.
    ///
    /// # Errors
    /// The message for the model when the arguments do not fit even then: every misfit by its path, and the arguments
    /// as they were received.
    pub fn check(&self, tool_name: &str, arguments: Map<String, Value>) -> Result<Value, String> {
        let received = Value::Object(arguments);
        let Some(validator) = self.validator() else { return Ok(received) };
        if validator.misfits(&received).is_empty() {
            return Ok(received);
        }
        let mut mended = received.clone();
        coerce::coerce(&self.0.schema, &mut mended);
        let misfits = validator.misfits(&mended);
        if misfits.is_empty() {
            return Ok(mended);
        }
        Err(report::failure(tool_name, &misfits, &received))
    }
}

#[cfg(test)]
mod tests;
