use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(schema: Value, arguments: Value, expected: Value) {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    assert_eq!(ArgumentSchema::new(&schema).check("t", arguments), Ok(expected));
}

fn check_refused(schema: Value, arguments: Value, expected: &str) {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    assert_eq!(ArgumentSchema::new(&schema).check("t", arguments), Err(expected.to_owned()));
}

fn one(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}, "required": ["a"]})
}

#[test]
fn what_fits_is_not_touched() {
    check(one(json!({"type": "string"})), json!({"a": "5", "extra": null}), json!({"a": "5", "extra": null}));
    check(one(json!({})), json!({"a": "5"}), json!({"a": "5"}));
    let either = one(json!({"anyOf": [{"type": "number"}, {"type": "string"}]}));
    check(either, json!({"a": "5"}), json!({"a": "5"}));
}

#[test]
fn simple_values_are_converted() {
    let row = |wanted: &str, given: Value, expected: Value| {
        check(one(json!({"type": wanted})), json!({"a": given}), json!({"a": expected}));
    };
    row("number", json!("5"), json!(5));
    row("number", json!(" -2.5e1 "), json!(-25));
    row("number", json!("0.5"), json!(0.5));
    row("integer", json!("5"), json!(5));
    row("integer", json!("5.0"), json!(5));
    row("string", json!(5), json!("5"));
    row("string", json!(5.0), json!("5"));
    row("string", json!(0.25), json!("0.25"));
    row("string", json!(true), json!("true"));
    row("number", json!(true), json!(1));
    row("boolean", json!("true"), json!(true));
    row("boolean", json!("false"), json!(false));
    row("boolean", json!(1), json!(true));
    row("boolean", json!(0), json!(false));
    row("array", json!("[1, \"x\"]"), json!([1, "x"]));
    row("object", json!("{\"x\": 1}"), json!({"x": 1}));
    check(one(json!({"type": ["null", "integer"]})), json!({"a": "7"}), json!({"a": 7}));
}

#[test]
fn no_text_for_an_optional_number_or_flag_leaves_it_out() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "number"}, "b": {"type": "boolean"}, "s": {"type": "string"}, "any": {}},
    });
    check(schema, json!({"n": "", "b": " ", "s": "", "any": ""}), json!({"s": "", "any": ""}));
    check_refused(
        one(json!({"type": "number"})),
        json!({"a": ""}),
        "Validation failed for tool \"t\":\n  - a: expected number, got string\n\nReceived arguments:\n{\n  \"a\": \"\"\n}",
    );
}

#[test]
fn nested_values_are_converted() {
    let edits =
        json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}});
    check(
        one(edits.clone()),
        json!({"a": [{"n": "1"}, "{\"n\":\"2\"}"]}),
        json!({"a": [{"n": 1}, {"n": 2}]}),
    );
    check(one(edits), json!({"a": "[{\"n\":\"1\"}]"}), json!({"a": [{"n": 1}]}));
    check(
        one(json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
        json!({"a": {"x": "true"}}),
        json!({"a": {"x": true}}),
    );
    check(
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}),
        json!({"a": "3"}),
        json!({"a": 3}),
    );
    check(one(json!({"allOf": [{"type": "integer"}]})), json!({"a": "3"}), json!({"a": 3}));
}

#[test]
fn the_first_alternative_that_can_be_met_is_taken() {
    let schema = one(json!({"anyOf": [{"type": "null"}, {"type": "integer"}, {"type": "boolean"}]}));
    check(schema.clone(), json!({"a": "true"}), json!({"a": true}));
    check(schema, json!({"a": "12"}), json!({"a": 12}));
    let objects = one(json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "x"}, "n": {"type": "integer"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "y"}, "n": {"type": "string"}}, "required": ["kind"]},
    ]}));
    check(objects, json!({"a": {"kind": "y", "n": 4}}), json!({"a": {"kind": "y", "n": "4"}}));
}

#[test]
fn null_is_dropped_only_where_it_stands_for_nothing() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "number"},
            "note": {"type": ["string", "null"]},
            "nested": {"type": "object", "properties": {"deep": {"type": "string"}}},
        },
        "required": ["path"],
    });
    check(
        schema.clone(),
        json!({"path": "x", "limit": null, "note": null, "other": null, "nested": {"deep": null}}),
        json!({"path": "x", "note": null, "other": null, "nested": {}}),
    );
    check_refused(
        schema,
        json!({"path": null}),
        "Validation failed for tool \"t\":\n  - path: expected string, got null\n\nReceived arguments:\n{\n  \"path\": null\n}",
    );
}

#[test]
fn every_misfit_is_named() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": {"type": "array", "items": {
                "type": "object",
                "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                "required": ["oldText", "newText"],
            }},
            "mode": {"enum": ["a", "b"]},
            "size": {"type": "integer", "minimum": 1},
        },
        "required": ["path", "edits"],
    });
    check_refused(
        schema,
        json!({"edits": [{"oldText": ["x"]}], "mode": "c", "size": 0.0}),
        r#"Validation failed for tool "t":
  - path: missing
  - edits.0.newText: missing
  - edits.0.oldText: expected string, got array
  - mode: expected one of ["a","b"]
  - size: is less than the minimum of 1

Received arguments:
{
  "edits": [
    {
      "oldText": [
        "x"
      ]
    }
  ],
  "mode": "c",
  "size": 0
}"#,
    );
}

#[test]
fn misfits_of_the_whole_are_at_the_root() {
    check_refused(
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
        json!({"x": 1}),
        "Validation failed for tool \"t\":\n  - root: must not have properties x\n\nReceived arguments:\n{\n  \"x\": 1\n}",
    );
}

#[test]
fn many_misfits_are_summed_up() {
    let items: Vec<Value> = (0..60).map(|_| json!([])).collect();
    let schema = one(json!({"type": "array", "items": {"type": "string"}}));
    let Value::Object(arguments) = json!({"a": items}) else { unreachable!() };
    let text = ArgumentSchema::new(&schema).check("t", arguments).unwrap_err();
    assert_eq!(text.matches("expected string").count(), 50);
    assert!(text.contains("\n  - root: and 10 more\n\nReceived"), "{text}");
}

#[test]
fn a_schema_that_does_not_compile_accepts_anything() {
    for broken in [
        json!({"type": "nonsense"}),
        json!({"$ref": "https://example.invalid/schema.json"}),
        json!({"$ref": "file:///etc/hostname"}),
        json!(5),
    ] {
        assert!(ArgumentSchema::try_compile(&broken).is_err(), "{broken}");
        check(broken, json!({"a": null}), json!({"a": null}));
    }
}

#[test]
fn a_pattern_of_another_dialect_refuses_nothing() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(?!x)", "maxLength": 2}, "b": {"pattern": "^b+$"}},
        "patternProperties": {"(?=p)": {"type": "integer"}},
        "additionalProperties": false,
    });
    assert_eq!(ArgumentSchema::try_compile(&schema), Ok(()));
    check(schema.clone(), json!({"a": "xy", "b": "bb", "pq": "z"}), json!({"a": "xy", "b": "bb", "pq": "z"}));
    check_refused(
        schema,
        json!({"a": "xyz", "b": "c"}),
        "Validation failed for tool \"t\":\n  - a: is longer than 2 characters\n  - b: does not match ^b+$\n\nReceived arguments:\n{\n  \"a\": \"xyz\",\n  \"b\": \"c\"\n}",
    );
}

#[test]
fn misfits_of_every_kind_are_put_into_words() {
    let row = |schema: Value, value: Value, expected: &str| {
        let text = ArgumentSchema::new(&one(schema.clone()))
            .check("t", [("a".to_owned(), value)].into_iter().collect())
            .unwrap_err();
        assert_eq!(text.lines().nth(1), Some(format!("  - a: {expected}").as_str()), "{schema}");
    };
    row(json!({"type": "array"}), json!(5), "expected array, got integer");
    row(json!({"type": ["array", "object"]}), json!(0.5), "expected array or object, got number");
    row(json!({"type": "integer"}), json!(0.5), "expected integer, got number");
    row(json!({"const": "x"}), json!("y"), "must be \"x\"");
    row(json!({"maximum": 3}), json!(4), "is greater than the maximum of 3");
    row(json!({"exclusiveMaximum": 3}), json!(3), "must be less than 3");
    row(json!({"exclusiveMinimum": 3}), json!(3), "must be greater than 3");
    row(json!({"multipleOf": 2}), json!(3), "is no multiple of 2");
    row(json!({"minLength": 2}), json!("a"), "is shorter than 2 characters");
    row(json!({"minItems": 2}), json!([1]), "has fewer than 2 items");
    row(json!({"maxItems": 0}), json!([1]), "has more than 0 items");
    row(json!({"uniqueItems": true}), json!([1, 2, 1]), "the items 0 and 2 are equal");
    row(
        json!({"anyOf": [{"minimum": 3}, {"type": "null"}]}),
        json!(1),
        "fits none of the forms that are allowed",
    );
    row(
        json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}),
        json!(2),
        "fits more than one of the forms of which it must fit one",
    );
    row(json!({"not": {"const": 1}}), json!(1), "has a form that is not allowed");
    row(json!(false), json!(1), "is not allowed");
}

#[test]
fn references_in_a_circle_end() {
    let tree = json!({
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}},
        "anyOf": [{"$ref": "#/$defs/loop"}, {"required": ["n"]}],
        "$defs": {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"type": "string"}]}},
    });
    let mut value = json!({"child": {"child": {"n": "2"}}});
    coerce::coerce(&tree, &mut value);
    assert_eq!(value["child"]["child"]["n"], json!(2));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[\\[{\"0-9a-z}\\],: ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-d]", inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn what_passes_fits_and_nothing_panics(value in any_json(), name in "[a-d]") {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer"},
            "b": {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"$ref": "#"}]}},
            "c": {"type": ["string", "null"]},
            "d": {"type": "object", "properties": {"a": {"type": "number"}}},
        }});
        let arguments: Map<String, Value> = [(name, value)].into_iter().collect();
        let compiled = ArgumentSchema::new(&schema);
        match compiled.check("t", arguments) {
            Ok(mended) => prop_assert!(jsonschema::is_valid(&schema, &mended)),
            Err(text) => prop_assert!(text.starts_with("Validation failed for tool \"t\":\n  - "), "{text}"),
        }
    }
}

/// A chain of alternatives, each of which is the next level twice.
fn doubling(levels: usize) -> Value {
    let next = |level: usize| json!({"$ref": format!("#/$defs/d{}", level + 1)});
    let mut defs: Map<String, Value> = (0..levels)
        .map(|level| (format!("d{level}"), json!({"anyOf": [next(level), next(level)]})))
        .collect();
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

#[test]
fn a_schema_that_asks_for_too_much_is_refused() {
    let mut nested = json!({"type": "object"});
    for _ in 0..70 {
        nested = json!({"type": "object", "properties": {"a": nested}});
    }
    let mut alternatives = json!({"type": "object"});
    for _ in 0..18 {
        alternatives = json!({"type": "object", "anyOf": [alternatives]});
    }
    let many: Vec<Value> =
        (0..200).map(|number| json!({"pattern": format!("(a{{9}}b{{9}}){{{number}9}}")})).collect();
    for (schema, says) in [
        (doubling(14), "more than 10000 schemas"),
        (doubling(30), "nest deeper than 32"),
        (json!({"anyOf": [{"$ref": "#"}]}), "refers to itself"),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}), "refers to itself"),
        (nested, "nests deeper than 40"),
        (json!({"enum": ["x".repeat(300_000)]}), "bytes, more than"),
        (json!({"pattern": "(a{1000}){1000}"}), "regular expressions are too large"),
        (json!({ "allOf": many }), "regular expressions are too large"),
        (json!({"$ref": "#/nowhere"}), "leads nowhere"),
        (json!({"$ref": "#name"}), "leads nowhere"),
        (json!({"properties": {"a": {"$id": "urn:b"}}}), "another document"),
        (json!({"$defs": {"a": {"$anchor": "n"}, "b": {"$anchor": "n"}}}), "two places"),
    ] {
        let error = ArgumentSchema::try_compile(&schema).unwrap_err();
        assert!(error.contains(says), "{says:?} is missing in {error:?}");
        // It is no tool's whose arguments could be checked.
        check(schema, json!({"a": 1}), json!({"a": 1}));
    }
    assert_eq!(ArgumentSchema::try_compile(&alternatives), Ok(()));
}

#[test]
fn references_by_name_and_in_percent_are_followed() {
    let schema = json!({
        "$id": "urn:x", "type": "object",
        "properties": {"id": {"$ref": "#n"}, "b": {"$ref": "#/$defs/x%20y"}, "c": {"$ref": "urn:x#n"}},
        "$defs": {"x y": {"type": "string"}, "n": {"$anchor": "n", "type": "integer"}},
    });
    assert_eq!(ArgumentSchema::try_compile(&schema), Ok(()));
    check_refused(
        schema,
        json!({"id": "x"}),
        "Validation failed for tool \"t\":\n  - id: expected integer, got string\n\nReceived arguments:\n{\n  \"id\": \"x\"\n}",
    );
}

#[test]
fn arguments_that_take_too_much_work_are_refused_unseen() {
    let branch = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    let schema = json!({"type": "object", "anyOf": [branch, branch]});
    assert_eq!(ArgumentSchema::try_compile(&schema), Ok(()));
    let deep = |levels: usize| (0..levels).fold(json!("x"), |inner, _| json!({ "a": inner }));
    let refusal = |arguments: Value| {
        let Value::Object(arguments) = arguments else { unreachable!() };
        ArgumentSchema::new(&schema).check("t", arguments).unwrap_err()
    };
    assert!(refusal(deep(3)).contains("fits none"), "{}", refusal(deep(3)));
    assert!(refusal(deep(100)).contains("too large or too deeply nested"), "{}", refusal(deep(100)));
    // As deep as may be, on the stack that threads have.
    let straight = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    let deepest = std::thread::spawn(move || {
        let Value::Object(arguments) = (0..78).fold(json!(1), |inner, _| json!({ "a": inner })) else {
            unreachable!()
        };
        ArgumentSchema::new(&straight).check("t", arguments)
    });
    assert!(deepest.join().unwrap().unwrap_err().contains("expected object"));
}

#[test]
fn a_long_list_is_checked() {
    let schema =
        one(json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}));
    let items: Vec<Value> = (0..20_000).map(|number| json!({ "n": number })).collect();
    check(schema, json!({ "a": items }), json!({ "a": items }));
}
