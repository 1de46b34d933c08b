//! Flags of the command line that extensions register.

use std::ffi::OsString;

use serde_json::{Map, Value};

/// A flag of the command line that is none of agentd's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFlag {
    /// The name, without the dashes.
    pub name: String,
    /// Its value, if it was given one.
    pub value: Option<String>,
    /// The error where no extension has such a flag.
    pub unknown: String,
}

impl GivenFlag {
    /// The flag as words of a command line.
    pub fn words(&self) -> impl Iterator<Item = OsString> {
        let value = self.value.clone().map(OsString::from);
        std::iter::once(OsString::from(format!("--{}", self.name))).chain(value)
    }
}

/// A flag that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// No extension has it.
    #[error("{0}")]
    Unknown(String),
    /// It needs a value.
    #[error("Extension flag \"--{0}\" requires a value")]
    NeedsValue(String),
}

/// A flag that an extension registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredFlag {
    pub(crate) name: String,
    /// Whether it takes no value.
    pub(crate) is_switch: bool,
}

/// The values of the flags that were given. A switch that was given is on, whatever stands behind it, as in pi.
///
/// # Errors
/// The first flag that cannot be used.
pub(crate) fn values<'a>(
    given: &[GivenFlag],
    registered: impl Fn(&str) -> Option<&'a RegisteredFlag>,
) -> Result<Map<String, Value>, FlagError> {
    let value = |flag: &GivenFlag| match (registered(&flag.name), &flag.value) {
        (None, _) => Err(FlagError::Unknown(flag.unknown.clone())),
        (Some(RegisteredFlag { is_switch: true, .. }), _) => Ok(Value::Bool(true)),
        (Some(_), Some(value)) => Ok(Value::String(value.clone())),
        (Some(_), None) => Err(FlagError::NeedsValue(flag.name.clone())),
    };
    given.iter().map(|flag| value(flag).map(|value| (flag.name.clone(), value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(given: &[(&str, Option<&str>)], expected: Result<Value, &str>) {
        let registered = [
            RegisteredFlag { name: "plan".to_owned(), is_switch: true },
            RegisteredFlag { name: "config".to_owned(), is_switch: false },
        ];
        let given: Vec<GivenFlag> = given
            .iter()
            .map(|(name, value)| GivenFlag {
                name: (*name).to_owned(),
                value: value.map(str::to_owned),
                unknown: format!("Unknown option: --{name}"),
            })
            .collect();
        let found = values(&given, |name| registered.iter().find(|flag| flag.name == name));
        let found = found.map(Value::Object).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn flags_have_the_values_of_their_type() {
        check(&[("plan", None), ("config", Some("a.json"))], Ok(json!({"plan": true, "config": "a.json"})));
        check(&[("plan", Some("no"))], Ok(json!({"plan": true})));
        check(&[("config", Some("a")), ("config", Some("b"))], Ok(json!({"config": "b"})));
        check(&[("config", None)], Err("Extension flag \"--config\" requires a value"));
        check(&[("other", Some("x"))], Err("Unknown option: --other"));
    }
}
