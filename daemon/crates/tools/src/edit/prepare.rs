//! Repairs arguments in the forms that models fall back to.

use serde_json::{Map, Value};

/// Makes `edits` a list of edits, also when it is JSON in a string, a single edit, or when `oldText` and `newText` of
/// the tool's earlier form stand beside it.
pub(super) fn prepare(mut arguments: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::String(text)) = arguments.get("edits")
        && let Ok(parsed @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text)
    {
        arguments.insert("edits".to_owned(), parsed);
    }
    if let Some(edit @ Value::Object(_)) = arguments.get_mut("edits") {
        *edit = Value::Array(vec![edit.take()]);
    }
    if let (Some(Value::String(_)), Some(Value::String(_))) =
        (arguments.get("oldText"), arguments.get("newText"))
        && matches!(arguments.get("edits"), None | Some(Value::Null | Value::Array(_)))
    {
        // Keep the order of the rest: it is shown when the arguments do not fit.
        let edit = ["oldText", "newText"]
            .into_iter()
            .filter_map(|name| arguments.shift_remove_entry(name))
            .collect();
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit),
            _ => {
                arguments.insert("edits".to_owned(), Value::Array(vec![edit]));
            }
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(given: Value, expected: Value) {
        let Value::Object(given) = given else { panic!("arguments are an object") };
        assert_eq!(Value::Object(prepare(given)), expected);
    }

    #[test]
    fn edits_become_a_list() {
        let edit = json!({"oldText": "a", "newText": "b"});
        check(json!({"path": "p", "edits": [edit]}), json!({"path": "p", "edits": [edit]}));
        check(json!({"path": "p", "edits": edit}), json!({"path": "p", "edits": [edit]}));
        check(json!({"edits": edit.to_string()}), json!({"edits": [edit]}));
        check(json!({"edits": json!([edit]).to_string()}), json!({"edits": [edit]}));
        check(json!({"path": "p", "oldText": "a", "newText": "b"}), json!({"path": "p", "edits": [edit]}));
        check(json!({"edits": null, "oldText": "a", "newText": "b"}), json!({"edits": [edit]}));
        check(
            json!({"edits": [{"oldText": "1", "newText": "2"}], "oldText": "a", "newText": "b"}),
            json!({"edits": [{"oldText": "1", "newText": "2"}, edit]}),
        );
    }

    #[test]
    fn what_is_none_of_these_stays() {
        for given in [
            json!({"edits": "not json"}),
            json!({"edits": "5"}),
            json!({"edits": 5, "oldText": "a", "newText": "b"}),
            json!({"oldText": "a"}),
            json!({"oldText": "a", "newText": 5}),
            json!({}),
        ] {
            check(given.clone(), given);
        }
    }

    proptest! {
        #[test]
        fn any_string_can_be_there(text in "[\\[\\]{}\":,a0]{0,12}") {
            let arguments: Map<String, Value> = [("edits".to_owned(), Value::String(text))].into_iter().collect();
            prop_assert!(prepare(arguments).contains_key("edits"));
        }
    }
}
