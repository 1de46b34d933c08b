//! The arguments of a call.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::language::Language;

/// Seconds that a cell may take whose call says nothing about it.
pub(crate) const DEFAULT_TIMEOUT: f64 = 30.0;

/// The longest time that a call can ask for, in seconds.
const MAX_TIMEOUT: f64 = 3600.0;

/// The longest code of a cell, in bytes.
const MAX_CODE: usize = 1 << 20;

/// A call, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvalCall {
    pub(crate) language: Language,
    pub(crate) code: String,
    pub(crate) title: Option<String>,
    /// `None`: without a limit.
    pub(crate) timeout: Option<Duration>,
    pub(crate) reset: bool,
}

impl EvalCall {
    /// Reads the arguments of a call where these languages are available.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub(crate) fn read(arguments: &Value, available: &[Language]) -> Result<Self, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let named = text("language").unwrap_or_default();
        let language = Language::of(named).filter(|language| available.contains(language));
        let Some(language) = language else {
            let names: Vec<&str> = available.iter().map(Language::name).collect();
            return Err(format!(
                "The language {named:?} is not available here; there is: {}.",
                names.join(", ")
            ));
        };
        let code = text("code").unwrap_or_default().to_owned();
        if code.len() > MAX_CODE {
            return Err(format!(
                "The code has {} bytes, and {MAX_CODE} are the most: write it to a file, and run that.",
                code.len()
            ));
        }
        let timeout = match arguments.get("timeout").and_then(Value::as_f64) {
            None => Some(DEFAULT_TIMEOUT),
            Some(0.0) => None,
            Some(seconds) if (1.0..=MAX_TIMEOUT).contains(&seconds) => Some(seconds),
            Some(seconds) => {
                return Err(format!(
                    "timeout must be 0 for none, or from 1 to {MAX_TIMEOUT} seconds, and is {seconds}."
                ));
            }
        };
        Ok(Self {
            language,
            code,
            title: text("title").map(str::to_owned),
            timeout: timeout.map(Duration::from_secs_f64),
            reset: arguments.get("reset") == Some(&Value::Bool(true)),
        })
    }
}

/// Repairs what models commonly get wrong: the name of the language.
pub(crate) fn prepared(mut arguments: Map<String, Value>) -> Map<String, Value> {
    let language = arguments.get("language").and_then(Value::as_str).and_then(Language::of);
    if let Some(language) = language {
        arguments.insert("language".to_owned(), language.name().into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_checked() {
        let read = |arguments: Value| EvalCall::read(&arguments, &[Language::Python]);
        let call = read(json!({"language": "py", "code": "1"})).unwrap();
        assert_eq!((call.language, call.timeout), (Language::Python, Some(Duration::from_secs(30))));
        assert_eq!(read(json!({"language": "py", "code": "1", "timeout": 0})).unwrap().timeout, None);
        let error = read(json!({"language": "js", "code": "1"})).unwrap_err();
        assert_eq!(error, "The language \"js\" is not available here; there is: py.");
        for timeout in [json!(0.5), json!(3601), json!(-1)] {
            let error = read(json!({"language": "py", "code": "1", "timeout": timeout})).unwrap_err();
            assert!(error.starts_with("timeout must be 0 for none"), "{error}");
        }
        assert!(read(json!({"language": "py", "code": "x".repeat(MAX_CODE + 1)})).is_err());
    }

    #[test]
    fn other_names_of_languages_are_taken() {
        let arguments = json!({"language": "Python", "code": "1"}).as_object().unwrap().clone();
        assert_eq!(prepared(arguments)["language"], "py");
    }
}
