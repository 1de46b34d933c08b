use proptest::prelude::*;

use super::*;

fn check_split(text: &str, yaml: Option<&str>, body: &str) {
    assert_eq!(split(text), Parts { yaml, body }, "{text:?}");
}

#[test]
fn parts_of_a_file() {
    check_split("---\na: b\n---\n\n body \n", Some("\na: b"), "body");
    check_split("--- \na: b\n--- \nbody", Some(" \na: b"), "body");
    check_split("---\n---\nbody\n", Some(""), "body");
    check_split("---\na: b\n---", Some("\na: b"), "");
    check_split("---\na: b\n---\nx\n---\ny", Some("\na: b"), "x\n---\ny");
    check_split("---\na: b\nbody", None, "---\na: b\nbody");
    check_split(" ---\na: b\n---\nbody", None, " ---\na: b\n---\nbody");
    check_split("  body \n", None, "  body \n");
    check_split("", None, "");
}

/// The attributes, and the problems as `LINE: message`.
fn read(yaml: &str) -> (Attributes, Vec<String>) {
    let mut attributes = attributes(yaml).unwrap_or_else(|problem| panic!("{yaml:?}: {problem:?}"));
    let problems = std::mem::take(&mut attributes.problems);
    let shown = problems.into_iter().map(|problem| {
        format!("{}: {}", problem.line.map_or("?".to_owned(), |line| line.to_string()), problem.message)
    });
    let shown = shown.collect();
    (attributes, shown)
}

fn check(yaml: &str, expected: Attributes) {
    assert_eq!(read(yaml), (expected, Vec::new()), "{yaml:?}");
}

fn described(text: &str) -> Attributes {
    Attributes { description: Some(text.to_owned()), ..Attributes::default() }
}

#[test]
fn fields() {
    let all = "\nname: a-b\ndescription: does it\nargument-hint: \"[x]\"\ndisable-model-invocation: true\nother: [1]";
    check(
        all,
        Attributes {
            name: Some("a-b".into()),
            description: Some("does it".into()),
            argument_hint: Some("[x]".into()),
            disable_model_invocation: true,
            problems: Vec::new(),
        },
    );
    check("\ndescription: |\n  one\n  two\n", described("one\ntwo"));
    check("\ndescription: >-\n  one\n  two\n", described("one two"));
    check("\ndescription: 17", described("17"));
    check("\ndescription: true", described("true"));
    check("\ndescription: yes", described("yes"));
    check("\ndescription: 'it''s'", described("it's"));
    check("\ndescription:", Attributes::default());
    check("\n# nothing", Attributes::default());
    check("", Attributes::default());
    check(
        "\nargument-hint: [focus]",
        Attributes { argument_hint: Some("[focus]".into()), ..Attributes::default() },
    );
    check(
        "\ndisable-model-invocation: \"true\"",
        Attributes { disable_model_invocation: true, ..Attributes::default() },
    );
}

#[test]
fn what_is_almost_yaml_is_read_and_reported() {
    let check = |yaml: &str, description: &str, problem: &str| {
        let (attributes, problems) = read(yaml);
        assert_eq!(attributes, described(description), "{yaml:?}");
        assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
    };
    check("\ndescription: Use when: asked", "Use when: asked", "2: the front matter is not valid YAML");
    check("\nx: 1\ndescription: Use: \"now\" \\ 5%", "Use: \"now\" \\ 5%", "3: ");
    check("\ndescription: @me", "@me", "it is read as if the value were in quotes");
    check("\ndescription: *bold* text", "*bold* text", "2: ");
    check("\ndescription: [a] b", "[a] b", "2: ");
    let (attributes, problems) = read("\ndescription: d\nargument-hint: [file] <why>");
    assert_eq!(attributes.argument_hint.as_deref(), Some("[file] <why>"));
    assert!(problems[0].starts_with("3: "), "{problems:?}");
}

#[test]
fn values_of_the_wrong_kind_cost_only_themselves() {
    let (attributes, problems) =
        read("\nname: [a]\ndescription: d\nargument-hint: {a: b}\ndisable-model-invocation: maybe");
    assert_eq!(attributes, described("d"));
    assert_eq!(
        problems,
        [
            "2: \"name\" is a list and is not used; expected a text",
            "4: \"argument-hint\" is an object and is not used; expected a text",
            "5: \"disable-model-invocation\" is neither true nor false and counts as false",
        ]
    );
    for text in ["\n- a\n- b", "\njust text", "\n5", "\ntrue"] {
        let (attributes, problems) = read(text);
        assert_eq!((attributes, problems.len()), (Attributes::default(), 1), "{text:?}");
    }
}

fn check_broken(yaml: &str, line: Option<u32>, part: &str) {
    let problem = attributes(yaml).unwrap_err();
    assert_eq!(problem.line, line, "{problem:?}");
    assert!(problem.message.contains(part) && !problem.message.contains(" at line"), "{problem:?}");
}

#[test]
fn broken_front_matter_names_the_line_of_the_file() {
    check_broken("\na: b\nmetadata:\n  x: y\n z: w", Some(5), "not valid YAML: ");
    check_broken("\nname: x\nname: y", Some(3), "duplicate");
    check_broken("\nname: \"x\ndescription: y", Some(3), "");
    check_broken(&format!("\ndescription: {}", "x".repeat(MAX_BYTES)), None, "more than the 32768");
}

/// A problem may quote the value, which may be very long.
#[test]
fn a_problem_is_no_longer_than_a_few_lines() {
    let problem = attributes(&format!("\na: {{b: {}}}", "1".repeat(20_000))).unwrap_err();
    assert!(problem.message.len() < 400 && problem.message.contains("11…11"), "{problem:?}");
    assert_eq!(problem.line, Some(2));
}

/// Ten lines that would be ten to the tenth values.
#[test]
fn aliases_that_multiply_are_refused() {
    let mut yaml = "\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        yaml.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 10].join(",")));
    }
    yaml.push_str("description: *a9\n");
    let problem = attributes(&yaml).unwrap_err();
    assert!(problem.message.contains("refers to itself too often"), "{problem:?}");
    assert!(problem.line.is_some());
    let problem = attributes(&format!("\nx: [{}]", "1,".repeat(12_000))).unwrap_err();
    assert!(problem.message.contains("too many values"), "{problem:?}");
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in "(---|\n|a: |\\[|\\]|\\{|&a|\\*a|'|\"|- |\t| |\\?|!!|%|\u{e9}|x){0,40}") {
        let parts = split(&text);
        if let Some(yaml) = parts.yaml {
            let _ = attributes(yaml);
        }
    }

    #[test]
    fn quoting_keeps_the_lines(text in "[a-z:\\[\\]\"'\\\\\n ]{0,80}") {
        prop_assert_eq!(quote_values(&text).matches('\n').count(), text.matches('\n').count());
    }
}
