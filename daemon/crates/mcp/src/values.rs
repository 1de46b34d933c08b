//! Values of `env` and `headers`: texts with variables in them, or what a command prints.

use agentd_auth::run_command;
use agentd_config::Environment;
use agentd_http::{Redactor, register_secret};

/// The command of a value that is one as a whole: `!command`.
pub(crate) fn command_of(value: &str) -> Option<&str> {
    value.strip_prefix('!')
}

/// A value with every `${NAME}` filled in, or the output of its command. What comes from a variable or a command, or has a telling name,
/// is a secret from here on.
///
/// # Errors
/// What is missing. Neither the value nor the command is quoted.
///
/// Cancel safety: a command that runs is killed with all that it started when this is dropped.
pub(crate) async fn filled_in(name: &str, value: &str, variables: &Environment) -> Result<String, String> {
    let filled = match command_of(value) {
        Some(command) => {
            let output = run_command(command, variables).await;
            let output = output.map_err(|error| format!("\"{name}\": {error}"))?;
            register_secret(output.expose());
            output.expose().to_owned()
        }
        None => with_variables(value, |variable| {
            let found = variables.get(variable).ok_or_else(|| {
                format!("\"{name}\": the variable {variable} is not set: set it where agentd is started")
            })?;
            register_secret(found);
            Ok(found.to_owned())
        })
        .map_err(|problem| problem.unwrap_or_else(|| format!("\"{name}\": \"${{\" without \"}}\"")))?,
    };
    if Redactor::hides(name) {
        register_secret(&filled);
    }
    Ok(filled)
}

/// A value of an entry of another tool with every `${NAME}` filled in. What comes from a variable is a secret from here on.
///
/// # Errors
/// What is missing. The value is not quoted.
pub(crate) fn filled_in_place(name: &str, value: &str, variables: &Environment) -> Result<String, String> {
    let found = |variable: &str| {
        let found = variables.get(variable).ok_or_else(|| {
            format!("\"{name}\": the variable {variable} is not set: set it where agentd is started")
        })?;
        register_secret(found);
        Ok(found.to_owned())
    };
    with_variables(value, found)
        .map_err(|problem| problem.unwrap_or_else(|| format!("\"{name}\": \"${{\" without \"}}\"")))
}

/// The variables of a value that are not set.
pub(crate) fn unset_variables(value: &str, variables: &Environment) -> Vec<String> {
    let mut unset = Vec::new();
    if command_of(value).is_none() {
        // A value that is broken is reported where it is used.
        let _ = with_variables(value, |variable| {
            if variables.get(variable).is_none() {
                unset.push(variable.to_owned());
            }
            Ok(String::new())
        });
    }
    unset
}

/// Puts what `find` has in the place of each `${NAME}`. `Err(None)`: one has no end.
fn with_variables(
    value: &str,
    mut find: impl FnMut(&str) -> Result<String, String>,
) -> Result<String, Option<String>> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (variable, behind) = after.split_once('}').ok_or(None)?;
        filled.push_str(before);
        filled.push_str(&find(variable)?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use agentd_http::scrub;

    use super::*;

    fn variables() -> Environment {
        [("PATH", "/usr/bin:/bin"), ("K", "value-of-k")].into_iter().collect()
    }

    #[tokio::test]
    async fn variables_and_commands_are_filled_in() {
        for (value, expected) in [
            ("plain", Ok("plain")),
            ("<${K}${K}>", Ok("<value-of-kvalue-of-k>")),
            ("$K a!b", Ok("$K a!b")),
            ("!printf ' out-of-%s \\n' \"$K\"", Ok("out-of-value-of-k")),
            ("${NOT_SET}", Err("the variable NOT_SET is not set")),
            ("${K", Err("without")),
            ("!echo hush >&2; exit 3", Err("failed with exit status: 3")),
            ("!true", Err("printed nothing")),
        ] {
            let got = filled_in("A", value, &variables()).await;
            match expected {
                Ok(text) => assert_eq!(got.as_deref(), Ok(text), "{value}"),
                Err(says) => {
                    let problem = got.unwrap_err();
                    assert!(problem.contains(says) && problem.contains("\"A\""), "{problem}");
                    assert!(!problem.contains("hush"), "{problem}");
                }
            }
        }
    }

    #[tokio::test]
    async fn what_a_command_prints_is_a_secret() {
        let value = filled_in("A", "!echo printed-by-a-command-9876", &variables()).await.unwrap();
        assert_eq!(value, "printed-by-a-command-9876");
        assert!(!scrub("it is printed-by-a-command-9876").contains("printed-by-a-command-9876"));
    }

    #[test]
    fn variables_that_are_not_set_are_found() {
        assert_eq!(unset_variables("${A}${K}${B}", &variables()), ["A", "B"]);
        assert!(unset_variables("!echo ${A}", &variables()).is_empty());
    }
}
