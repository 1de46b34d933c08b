//! What a subagent hands in by the tool `yield`: its result, a part of it, or that it gives up.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agentd_agent::ArgumentSchema;
use agentd_protocol::subagent::{SchemaMode, SchemaSource, StructuredOutput, StructuredStatus};
use serde_json::{Map, Value};

/// How often a result that does not fit is refused before it counts all the same.
const MISFITS: u32 = 3;

/// How often a call without anything is refused before the subagent is stopped.
const EMPTY_CALLS: u32 = 3;

/// The errors in a row after which it is stopped.
const ERRORS_IN_A_ROW: u32 = 6;

/// The schema that a result has to fit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutputSchema {
    pub(crate) schema: Value,
    pub(crate) source: SchemaSource,
    pub(crate) mode: SchemaMode,
}

/// What a subagent has handed in.
pub(crate) struct HandedIn {
    output: Option<(OutputSchema, ArgumentSchema)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Parts by their labels.
    sections: Map<String, Value>,
    end: Option<End>,
    /// Why the result does not fit, where it counts all the same.
    misfit: Option<String>,
    misfits: u32,
    empty_calls: u32,
    errors: u32,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// With a result.
    Data(Value),
    /// Its last answer is the result.
    LastAnswer,
    /// It gave up by itself.
    GaveUp(String),
    /// It called the tool wrongly too often.
    Stopped(String),
}

/// What a call of the tool came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Handing {
    /// Nothing more is to come.
    Ended,
    /// A part was taken.
    Section(String),
}

impl HandedIn {
    pub(crate) fn new(output: Option<OutputSchema>) -> Self {
        let output = output.map(|output| {
            let checked = ArgumentSchema::new(&output.schema);
            (output, checked)
        });
        Self { output, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Changed by single assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is nothing more to come.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }

    /// Takes another result, as if there had been none.
    pub(super) fn restart(&self) {
        *self.state() = State::default();
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// The schema, for the subagent to know.
    pub(crate) fn schema(&self) -> Option<&Value> {
        self.output.as_ref().map(|(output, _)| &output.schema)
    }

    /// A call of the tool. A result takes the place of one of before, which a hook has not let pass.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(crate) fn take(&self, arguments: &Value) -> Result<Handing, String> {
        let taken = self.try_take(arguments);
        let mut state = self.state();
        match &taken {
            Ok(_) => state.errors = 0,
            Err(error) => {
                state.errors += 1;
                if state.errors >= ERRORS_IN_A_ROW && state.end.is_none() {
                    state.end = Some(End::Stopped(format!(
                        "It called yield wrongly {ERRORS_IN_A_ROW} times: {error}"
                    )));
                }
            }
        }
        taken
    }

    fn try_take(&self, arguments: &Value) -> Result<Handing, String> {
        let field = |name: &str| arguments.get(name).filter(|value| !value.is_null());
        let (data, error, kind) = (field("data"), field("error"), field("type"));
        let label = match kind {
            None => None,
            Some(Value::String(kind)) if kind == "result" => None,
            Some(Value::String(label)) => Some(label.clone()),
            Some(Value::Array(labels)) => match labels.as_slice() {
                [Value::String(label)] => Some(label.clone()),
                _ => return Err("type is \"result\", or a list of one label.".to_owned()),
            },
            Some(_) => return Err("type is \"result\", or a list of one label.".to_owned()),
        };
        match (data, error, label) {
            (Some(_), Some(_), _) => Err("Give data or error, not both.".to_owned()),
            (None, Some(error), _) => {
                let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
                self.state().end = Some(End::GaveUp(text));
                Ok(Handing::Ended)
            }
            (Some(data), None, Some(label)) => self.take_section(label, data.clone()),
            (None, None, Some(label)) => Err(format!("data is missing for the part \"{label}\".")),
            (Some(data), None, None) => self.take_result(data.clone()),
            (None, None, None) => self.take_rest(kind.is_some()),
        }
    }

    fn take_section(&self, label: String, data: Value) -> Result<Handing, String> {
        let data = self.parsed(data, |schema| property(schema, &label));
        if let Some((output, _)) = &self.output
            && is_closed(&output.schema)
            && property(&output.schema, &label).is_none()
        {
            return Err(format!("The schema of the result has no property \"{label}\"."));
        }
        let collects = self.output.as_ref().is_some_and(|(output, _)| {
            property(&output.schema, &label).is_some_and(|schema| schema["type"] == "array")
        });
        let mut state = self.state();
        match state.sections.get_mut(&label) {
            Some(Value::Array(items)) if collects => match data {
                Value::Array(more) => items.extend(more),
                one => items.push(one),
            },
            _ => {
                let data = if collects && !data.is_array() { Value::Array(vec![data]) } else { data };
                state.sections.insert(label.clone(), data);
            }
        }
        Ok(Handing::Section(label))
    }

    /// The end without data: what was handed in before, or the last answer.
    fn take_rest(&self, is_named: bool) -> Result<Handing, String> {
        let sections = self.state().sections.clone();
        if !sections.is_empty() {
            return self.take_result(Value::Object(sections));
        }
        if is_named && self.output.is_none() {
            self.state().end = Some(End::LastAnswer);
            return Ok(Handing::Ended);
        }
        let mut state = self.state();
        state.empty_calls += 1;
        if state.empty_calls > EMPTY_CALLS {
            state.end = Some(End::Stopped("It called yield without a result again and again.".to_owned()));
        }
        Err(match &self.output {
            Some(_) => "data is missing: hand in the result as the schema says.".to_owned(),
            None => "Nothing was handed in: give data, or error, or type \"result\" if the last answer is the result.".to_owned(),
        })
    }

    fn take_result(&self, data: Value) -> Result<Handing, String> {
        let data = self.parsed(data, Some);
        let misfits = match &self.output {
            Some((_, checked)) => checked.misfits(&data).unwrap_or_else(|error| vec![error]),
            None => Vec::new(),
        };
        let mut state = self.state();
        if !misfits.is_empty() {
            state.misfits += 1;
            let told = misfits.join("\n");
            if state.misfits <= MISFITS {
                return Err(format!("The result does not fit its schema:\n{told}"));
            }
            state.misfit = Some(told);
        }
        state.end = Some(End::Data(data));
        Ok(Handing::Ended)
    }

    /// A value that was written as a text, where the schema wants something else.
    fn parsed<'a>(&'a self, data: Value, of: impl FnOnce(&'a Value) -> Option<&'a Value>) -> Value {
        let Value::String(text) = &data else { return data };
        let Some(schema) = self.output.as_ref().and_then(|(output, _)| of(&output.schema)) else {
            return data;
        };
        let checked = ArgumentSchema::new(schema);
        let fits = |value: &Value| checked.misfits(value).is_ok_and(|misfits| misfits.is_empty());
        if fits(&data) {
            return data;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) if fits(&value) => value,
            _ => data,
        }
    }

    /// The result with what its schema says of it; `None` without a schema. `data`: the result, if there is one.
    pub(crate) fn structured(&self, data: Option<&Value>) -> Option<StructuredOutput> {
        let (output, _) = self.output.as_ref()?;
        let error = self.state().misfit.clone();
        let status = match (data, &error) {
            (None, _) => StructuredStatus::Unavailable,
            (Some(_), None) => StructuredStatus::Valid,
            (Some(_), Some(_)) => StructuredStatus::Invalid,
        };
        Some(StructuredOutput {
            source: output.source,
            mode: output.mode,
            status,
            data: data.cloned(),
            error,
        })
    }

    /// A last answer that is a fitting result as it stands.
    pub(crate) fn fitting(&self, text: &str) -> Option<Value> {
        let (_, checked) = self.output.as_ref()?;
        let value: Value = serde_json::from_str(text.trim()).ok()?;
        checked.misfits(&value).is_ok_and(|misfits| misfits.is_empty()).then_some(value)
    }
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(schema: Value) -> HandedIn {
        HandedIn::new(Some(OutputSchema { schema, source: SchemaSource::Call, mode: SchemaMode::Permissive }))
    }

    fn number() -> HandedIn {
        with(json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}))
    }

    #[test]
    fn a_result_ends_it_and_a_second_takes_its_place() {
        let handed_in = HandedIn::new(None);
        assert_eq!(handed_in.take(&json!({"data": "x"})), Ok(Handing::Ended));
        assert!(handed_in.has_ended());
        assert_eq!(handed_in.end(), Some(End::Data(json!("x"))));
        assert_eq!(handed_in.take(&json!({"data": "y"})), Ok(Handing::Ended));
        assert_eq!(handed_in.end(), Some(End::Data(json!("y"))));
        assert_eq!(handed_in.structured(Some(&json!("y"))), None);
    }

    #[test]
    fn what_does_not_fit_counts_after_three_attempts() {
        let handed_in = number();
        for _ in 0..3 {
            assert!(handed_in.take(&json!({"data": {"n": "x"}})).unwrap_err().contains("does not fit"));
        }
        assert_eq!(handed_in.take(&json!({"data": {"n": "x"}})), Ok(Handing::Ended));
        let structured = handed_in.structured(Some(&json!({"n": "x"}))).unwrap();
        assert_eq!(structured.status, StructuredStatus::Invalid);
        assert!(structured.error.is_some());
    }

    #[test]
    fn a_text_that_is_a_fitting_value_is_taken_as_that() {
        let handed_in = number();
        assert_eq!(handed_in.take(&json!({"data": "{\"n\": 3}"})), Ok(Handing::Ended));
        assert_eq!(handed_in.end(), Some(End::Data(json!({"n": 3}))));
        assert_eq!(handed_in.fitting(" {\"n\": 3}\n"), Some(json!({"n": 3})));
        assert_eq!(handed_in.fitting("3"), None);
    }

    #[test]
    fn sections_make_the_result() {
        let schema = json!({"type": "object", "additionalProperties": false,
            "properties": {"findings": {"type": "array"}, "verdict": {"type": "string"}}});
        let handed_in = with(schema);
        assert!(handed_in.take(&json!({"type": ["other"], "data": 1})).unwrap_err().contains("no property"));
        for finding in ["a", "b"] {
            let taken = handed_in.take(&json!({"type": ["findings"], "data": finding}));
            assert_eq!(taken, Ok(Handing::Section("findings".into())));
        }
        for verdict in ["no", "yes"] {
            handed_in.take(&json!({"type": ["verdict"], "data": verdict})).unwrap();
        }
        assert_eq!(handed_in.take(&json!({"type": "result"})), Ok(Handing::Ended));
        assert_eq!(handed_in.end(), Some(End::Data(json!({"findings": ["a", "b"], "verdict": "yes"}))));
    }

    #[test]
    fn the_last_answer_counts_only_without_a_schema() {
        let handed_in = HandedIn::new(None);
        assert_eq!(handed_in.take(&json!({"type": "result"})), Ok(Handing::Ended));
        assert_eq!(handed_in.end(), Some(End::LastAnswer));
        assert!(number().take(&json!({"type": "result"})).unwrap_err().contains("data is missing"));
    }

    #[test]
    fn one_who_hands_in_nothing_is_stopped() {
        let handed_in = HandedIn::new(None);
        for _ in 0..=EMPTY_CALLS {
            assert!(handed_in.take(&json!({})).is_err());
        }
        assert!(matches!(handed_in.end(), Some(End::Stopped(_))));
        let handed_in = HandedIn::new(None);
        for _ in 0..ERRORS_IN_A_ROW {
            assert!(handed_in.take(&json!({"data": 1, "error": "e"})).is_err());
        }
        assert!(matches!(handed_in.end(), Some(End::Stopped(_))));
        assert!(handed_in.has_ended());
    }

    #[test]
    fn one_may_give_up() {
        let handed_in = HandedIn::new(None);
        assert_eq!(handed_in.take(&json!({"error": "no way"})), Ok(Handing::Ended));
        assert_eq!(handed_in.end(), Some(End::GaveUp("no way".into())));
    }
}
