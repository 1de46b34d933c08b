//! Which agents an agent may start. Pure.

use serde_json::Value;

/// Which agents an agent may start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum SpawnPolicy {
    /// Any.
    #[default]
    Any,
    /// None.
    Nobody,
    /// Those of these names; the first is the default.
    Only(Vec<String>),
}

impl SpawnPolicy {
    /// Whether an agent of that name may be started.
    pub(crate) fn permits(&self, agent: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Nobody => false,
            Self::Only(names) => names.iter().any(|name| name == agent),
        }
    }

    /// The agent of an item that names none.
    pub(crate) fn default_agent(&self) -> Option<&str> {
        match self {
            Self::Only(names) => names.first().map(String::as_str),
            Self::Any | Self::Nobody => None,
        }
    }

    /// As a list for people.
    pub(crate) fn listed(&self) -> String {
        match self {
            Self::Any => "all".to_owned(),
            Self::Nobody => "none".to_owned(),
            Self::Only(names) => names.join(", "),
        }
    }

    /// `*`, true: any. An empty text, false: none. Else names.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(true) => Some(Self::Any),
            Value::Bool(false) => Some(Self::Nobody),
            Value::String(text) if text.trim() == "*" => Some(Self::Any),
            Value::String(text) => Some(Self::named(text.split(','))),
            Value::Array(names) => Some(Self::named(names.iter().filter_map(Value::as_str))),
            _ => None,
        }
    }

    pub(crate) fn named<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<String> =
            names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.is_empty() { Self::Nobody } else { Self::Only(names) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies() {
        let check = |value: Value, scout: bool, default: Option<&str>| {
            let policy = SpawnPolicy::of(&value).unwrap();
            assert_eq!((policy.permits("scout"), policy.default_agent()), (scout, default), "{value}");
        };
        check(json!("*"), true, None);
        check(json!(true), true, None);
        check(json!(""), false, None);
        check(json!(false), false, None);
        check(json!("reviewer, scout"), true, Some("reviewer"));
        check(json!(["reviewer"]), false, Some("reviewer"));
    }
}
