//! Variables in the values of MCP entries: the ways of other tools to write them, as `${NAME}` and `${NAME:-default}`.

use agentd_config::Environment;
use serde_json::{Map, Value};

use crate::place::DiscoveryPlace;

/// A value that needs an answer of the user, which only its own tool asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeedsInput;

/// The value in agentd's form. `bare` is true where `$NAME` without braces is a variable, too.
///
/// # Errors
/// [`NeedsInput`] for `${input:…}` and `${command:…}`.
pub(crate) fn in_own_form(value: &str, bare: bool, place: &DiscoveryPlace) -> Result<String, NeedsInput> {
    let mut result = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        result.push_str(before);
        if let Some((inside, behind)) = after.strip_prefix('{').and_then(|after| after.split_once('}')) {
            result.push_str(&braced(inside, place)?);
            rest = behind;
            continue;
        }
        let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (name, behind) = after.split_at(end.unwrap_or(after.len()));
        if bare && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            result.push_str(&format!("${{{name}}}"));
            rest = behind;
        } else {
            result.push('$');
            rest = after;
        }
    }
    result.push_str(rest);
    Ok(result)
}

/// What stands for `${inside}`.
fn braced(inside: &str, place: &DiscoveryPlace) -> Result<String, NeedsInput> {
    let folder = |path: &std::path::Path| path.display().to_string();
    Ok(match inside {
        "workspaceFolder" | "workspaceRoot" | "CLAUDE_PROJECT_DIR" => folder(&place.cwd),
        "workspaceFolderBasename" => place.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        "userHome" => place.home.as_deref().map(folder).unwrap_or_default(),
        "pathSeparator" | "/" => "/".to_owned(),
        _ if inside.starts_with("input:") || inside.starts_with("command:") => return Err(NeedsInput),
        _ => format!("${{{}}}", inside.strip_prefix("env:").unwrap_or(inside)),
    })
}

/// The value with its defaults: `${NAME:-text}` is `${NAME}` where that is set, else the text.
pub(crate) fn with_defaults(value: &str, environment: &Environment) -> String {
    let mut result = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        result.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            result.push_str("${");
            rest = after;
            continue;
        };
        match inside.split_once(":-") {
            Some((name, default)) if environment.non_empty(name).is_none() => result.push_str(default),
            Some((name, _)) => result.push_str(&format!("${{{name}}}")),
            None => result.push_str(&format!("${{{inside}}}")),
        }
        rest = behind;
    }
    result.push_str(rest);
    result
}

/// [`with_defaults`] of all texts of an entry.
pub(crate) fn entry_with_defaults(
    entry: &Map<String, Value>,
    environment: &Environment,
) -> Map<String, Value> {
    fn of(value: &Value, environment: &Environment) -> Value {
        match value {
            Value::String(text) if text.contains("${") => with_defaults(text, environment).into(),
            Value::Array(items) => items.iter().map(|item| of(item, environment)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), of(value, environment))).collect()
            }
            other => other.clone(),
        }
    }
    entry.iter().map(|(key, value)| (key.clone(), of(value, environment))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::TestFolder;

    #[test]
    fn variables_of_all_tools_are_understood() {
        let folder = TestFolder::new(&[("p/x", ""), ("home/x", "")]);
        let place = folder.place("p");
        let cwd = place.cwd.display().to_string();
        for (value, bare, expected) in [
            ("plain $5 $", true, "plain $5 $".to_owned()),
            ("${A}-${env:B}", false, "${A}-${B}".to_owned()),
            ("$A/$B", true, "${A}/${B}".to_owned()),
            ("$A", false, "$A".to_owned()),
            ("${workspaceFolder}/x${/}y", false, format!("{cwd}/x/y")),
            ("${A:-b}", false, "${A:-b}".to_owned()),
            ("${A", false, "${A".to_owned()),
        ] {
            assert_eq!(in_own_form(value, bare, &place), Ok(expected), "{value}");
        }
        assert_eq!(in_own_form("x ${input:key}", false, &place), Err(NeedsInput));
    }

    #[test]
    fn defaults_count_where_a_variable_is_not_set() {
        let environment: Environment = [("A", "a"), ("E", "")].into_iter().collect();
        for (value, expected) in [
            ("${A:-b}", "${A}"),
            ("${B:-b}/${E:-e}", "b/e"),
            ("${B:-}", ""),
            ("${B}", "${B}"),
            ("${B:-", "${B:-"),
        ] {
            assert_eq!(with_defaults(value, &environment), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn values_without_variables_stay(value in "[^$]{0,40}") {
            let folder = TestFolder::new(&[("p/x", "")]);
            prop_assert_eq!(in_own_form(&value, true, &folder.place("p")), Ok(value.clone()));
            prop_assert_eq!(with_defaults(&value, &Environment::default()), value);
        }

        #[test]
        fn any_value_is_read(value in "[${}a-c:\\-/é]{0,30}") {
            let folder = TestFolder::new(&[("p/x", "")]);
            let _ = in_own_form(&value, true, &folder.place("p"));
            let _ = with_defaults(&value, &Environment::default());
        }
    }
}
