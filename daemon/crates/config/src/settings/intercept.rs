//! Checks the rules of `bash.intercept` one by one: a rule that cannot be used costs only itself.

use regex::Regex;
use serde_json::Value;

/// Takes out the rules that cannot be used. Gives the place of each in the list as it was, and what is wrong with it.
pub(super) fn take_out_bad_rules(bash: &mut Value) -> Vec<(usize, String)> {
    let Some(Value::Array(rules)) = bash.get_mut("intercept") else { return Vec::new() };
    let mut bad = Vec::new();
    let mut index = 0;
    rules.retain(|rule| {
        let problem = problem(rule);
        let is_good = problem.is_none();
        bad.extend(problem.map(|what| (index, what)));
        index += 1;
        is_good
    });
    bad
}

/// The fault in a rule.
fn problem(rule: &Value) -> Option<String> {
    let Some(members) = rule.as_object() else {
        return Some("expected a rule: an object with a \"pattern\"".into());
    };
    for name in ["tool", "message"] {
        if members.get(name).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return Some(format!("expected a string as \"{name}\""));
        }
    }
    let Some(pattern) = members.get("pattern").and_then(Value::as_str) else {
        return Some("expected a string as \"pattern\"".into());
    };
    // The last line of the message says what is wrong; those before it show the place in the pattern.
    let reason = |error: regex::Error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    };
    Regex::new(pattern).err().map(|error| format!("the pattern is no regular expression: {}", reason(error)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bad_rules_go_and_good_ones_stay() {
        let good = json!({"pattern": "^make", "tool": "build", "message": null});
        let mut bash = json!({"pty": true, "intercept": [
            {"pattern": "("}, good, 5, {"tool": "x"}, {"pattern": "a", "message": 1},
        ]});
        let bad = take_out_bad_rules(&mut bash);
        assert_eq!(bash, json!({"pty": true, "intercept": [good]}));
        let expected = [
            (0, "the pattern is no regular expression: unclosed group"),
            (2, "expected a rule: an object with a \"pattern\""),
            (3, "expected a string as \"pattern\""),
            (4, "expected a string as \"message\""),
        ];
        let bad: Vec<(usize, &str)> = bad.iter().map(|(index, what)| (*index, what.as_str())).collect();
        assert_eq!(bad, expected);
    }

    #[test]
    fn what_is_no_list_is_left_to_others() {
        for mut value in [json!(true), json!({}), json!({"intercept": true}), json!({"intercept": 5})] {
            let before = value.clone();
            assert!(take_out_bad_rules(&mut value).is_empty());
            assert_eq!(value, before);
        }
    }
}
