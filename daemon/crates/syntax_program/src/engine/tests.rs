use proptest::prelude::*;

use super::*;

fn query(language: &str, pattern: &str, rewrite: Option<&str>) -> Query {
    Query {
        language: language.into(),
        pattern: pattern.into(),
        selector: None,
        rewrite: rewrite.map(str::to_owned),
    }
}

fn found(language: &str, pattern: &str, text: &str) -> Vec<String> {
    let compiled = CompiledQuery::new(&query(language, pattern, None)).unwrap();
    let matches = compiled.matches(text, &mut 0).unwrap();
    for literal in compiled.literals() {
        assert!(matches.is_empty() || text.contains(&literal), "{literal}");
    }
    matches.iter().map(|found| text[found.start..found.end].to_owned()).collect()
}

fn rewritten(language: &str, pattern: &str, rewrite: &str, text: &str) -> String {
    let compiled = CompiledQuery::new(&query(language, pattern, Some(rewrite))).unwrap();
    let mut result = String::new();
    let mut at = 0;
    for found in compiled.matches(text, &mut 0).unwrap() {
        result.push_str(&text[at..found.start]);
        result.push_str(&found.replacement.unwrap());
        at = found.end;
    }
    result + &text[at..]
}

#[test]
fn patterns_find_code_in_every_language() {
    for (language, pattern, text, expected) in [
        ("bash", "echo $A", "echo hi; ls", &["echo hi"][..]),
        ("c", "free($P)", "int f(void) { free(x); }", &[]),
        ("c", "free($P);", "int f(void) { free(x); }", &["free(x);"]),
        ("cpp", "std::move($X);", "int f() { std::move(y); }", &["std::move(y);"]),
        (
            "csharp",
            "Console.WriteLine($X)",
            "class A { void F() { Console.WriteLine(1); } }",
            &["Console.WriteLine(1)"],
        ),
        ("css", "a { color: $C; }", "a { color: red; }", &["a { color: red; }"]),
        ("elixir", "IO.puts($X)", "IO.puts(\"a\")", &["IO.puts(\"a\")"]),
        ("go", "fmt.Println($$$A)", "package a\nfunc f() { fmt.Println(1, 2) }", &[]),
        ("hcl", "count = $N", "resource \"a\" \"b\" {\n  count = 3\n}", &["count = 3"]),
        ("html", "<b>$T</b>", "<p><b>x</b></p>", &["<b>x</b>"]),
        ("java", "foo($A)", "class A { void f() { foo(1); } }", &["foo(1)"]),
        ("javascript", "console.log($$$A)", "console.log(1, 2); log(3)", &["console.log(1, 2)"]),
        ("json", "[$A]", "{\"a\": [1]}", &["[1]"]),
        ("kotlin", "println($A)", "fun main() { println(1) }", &["println(1)"]),
        ("lua", "print($A)", "print(1)", &["print(1)"]),
        ("php", "foo($A)", "<?php foo(1);", &["foo(1)"]),
        ("python", "print($A)", "print(1)\nprint(1, 2)\n", &["print(1)"]),
        ("ruby", "puts $A", "puts 1", &["puts 1"]),
        ("rust", "$X.unwrap()", "fn f() { a.b().unwrap(); }", &["a.b().unwrap()"]),
        ("scala", "println($A)", "object A { println(1) }", &["println(1)"]),
        ("swift", "print($A)", "print(1)", &["print(1)"]),
        ("toml", "a = 1", "a = 1\nb = 2\n", &["a = 1"]),
        ("tsx", "<A b={$C} />", "const x = <A b={1} />;", &["<A b={1} />"]),
        ("typescript", "let $A: $T = $V", "let a: number = 1", &["let a: number = 1"]),
        ("yaml", "a: $V", "a: 1\nb: 2\n", &["a: 1"]),
    ] {
        let found = found(language, pattern, text);
        if !expected.is_empty() {
            assert_eq!(found, expected, "{language}: {pattern}");
        }
    }
}

#[test]
fn names_stand_for_the_same_code_and_several_nodes() {
    assert_eq!(found("javascript", "$A == $A", "a == a; a == b"), ["a == a"]);
    assert_eq!(found("rust", "fn $N($$$A) { $$$B }", "fn a() {}\nfn b(x: u8) { x; y }").len(), 2);
    assert_eq!(found("rust", "f($A)", "fn a() { f(f(1)) }"), ["f(f(1))", "f(1)"]);
}

#[test]
fn matches_are_rewritten_with_what_the_names_stand_for() {
    assert_eq!(
        rewritten("rust", "$X.unwrap()", "$X?", "fn f() { a.b(c).unwrap(); d.unwrap() }"),
        "fn f() { a.b(c)?; d? }"
    );
    assert_eq!(rewritten("python", "foo($$$A)", "bar($$$A, x=1)", "foo(1, 2)\n"), "bar(1, 2, x=1)\n");
    // The outer one of two.
    assert_eq!(rewritten("rust", "f($A)", "g($A)", "fn a() { f(f(1)) }"), "fn a() { g(f(1)) }");
    let code = "if x:\n    foo(1)\n";
    assert_eq!(rewritten("python", "foo($A)", "a($A)\nb($A)", code), "if x:\n    a(1)\n    b(1)\n");
    assert_eq!(rewritten("javascript", "var $A = $B", "let $A = $B", "var é = '日本';"), "let é = '日本';");
}

#[test]
fn a_selector_names_the_part_that_is_meant() {
    let query = Query {
        selector: Some("public_field_definition".into()),
        ..query("typescript", "class A { $F = 1 }", None)
    };
    let compiled = CompiledQuery::new(&query).unwrap();
    assert_eq!(compiled.matches("class B { x = 1; y = 2 }", &mut 0).unwrap().len(), 1);
    let unknown = Query { selector: Some("nothing".into()), ..query };
    assert!(CompiledQuery::new(&unknown).is_err());
}

#[test]
fn what_cannot_be_used_says_why() {
    for (language, pattern, rewrite, why) in [
        ("cobol", "x", None, "no grammar"),
        ("rust", "", None, "empty"),
        ("rust", " \n", None, "empty"),
        ("rust", "fn (", None, "no code in rust"),
        ("rust", "f(); g()", None, "Multiple AST nodes"),
        ("rust", "$$$A", None, "Standalone multi"),
        ("rust", "f($A)", Some("g($B)"), "rewrite has $B, which the pattern does not have"),
    ] {
        let error = CompiledQuery::new(&query(language, pattern, rewrite)).err().unwrap_or_default();
        assert!(error.contains(why), "{language} {pattern:?}: {error:?}");
    }
    assert!(CompiledQuery::new(&query("rust", &"x".repeat(MAX_PATTERN + 1), None)).is_err());
    let one = CompiledQuery::new(&query("rust", "x", None)).unwrap();
    assert!(one.matches(&" ".repeat(MAX_TEXT + 1), &mut 0).unwrap_err().contains("longer"));
    assert!(one.matches(&"x;".repeat(MAX_MATCHES + 1), &mut 0).unwrap_err().contains("more than"));
}

#[test]
fn deep_code_is_walked() {
    let deep = format!("fn a() {{ {}1{} }}", "(".repeat(2000), ")".repeat(2000));
    let walked =
        std::thread::Builder::new().stack_size(64 << 20).spawn(move || found("rust", "($A)", &deep).len());
    assert!(walked.unwrap().join().unwrap() >= 2000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any pattern in any language over any text has an answer, whose matches are parts of the text that hold the literals.
    #[test]
    fn any_pattern_and_text_have_an_answer(
        language in proptest::sample::select(agentd_syntax::LANGUAGES),
        pattern in "[a-z$A-Z(){}=;.,<>\"'é\n ]{0,24}",
        rewrite in proptest::option::of("[a-z$A(){}\n ]{0,12}"),
        text in "[a-z$A-Z(){}=;.,<>\"'é\n\u{0} ]{0,80}",
    ) {
        let query = query(language.name, &pattern, rewrite.as_deref());
        match guarded(|| CompiledQuery::new(&query)) {
            Err(why) => prop_assert!(!why.is_empty()),
            Ok(compiled) => {
                let literals = compiled.literals();
                if let Ok(matches) = guarded(|| compiled.matches(&text, &mut 0)) {
                    let mut at = 0;
                    for found in matches {
                        prop_assert!(text.get(found.start..found.end).is_some());
                        prop_assert!(literals.iter().all(|literal| text.contains(literal)), "{:?}", literals);
                        if rewrite.is_some() {
                            prop_assert!(found.start >= at);
                            at = found.end;
                        }
                    }
                }
            }
        }
    }
}
