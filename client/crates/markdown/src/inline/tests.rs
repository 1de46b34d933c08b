use super::*;

/// Pieces as text with marks: `b(…)` is bold, `i(…)` italic, `s(…)` struck through, `c(…)` code, `d(…)` dim, `u(…)` underlined.
fn shown(text: &str, hyperlinks: bool, goes_on: bool) -> String {
    let spans = parse(text, &Style::default(), InlineOptions { hyperlinks, goes_on });
    let mark = |span: &Span| {
        let style = &span.style;
        let code = style.color == Some(crate::style::Color::Cyan);
        let marks = [
            (style.bold, "b"),
            (style.italic, "i"),
            (style.strikethrough, "s"),
            (code, "c"),
            (style.dim, "d"),
            (style.underline, "u"),
        ];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let link = style.link.as_ref().map(|link| format!("@{link}")).unwrap_or_default();
        if marks.is_empty() { span.text.clone() } else { format!("{marks}({}{link})", span.text) }
    };
    spans.iter().map(mark).collect()
}

fn check(text: &str, expected: &str) {
    assert_eq!(shown(text, false, false), expected, "{text}");
}

#[test]
fn emphasis_is_that_of_commonmark() {
    check("*a* **b** ***c***", "i(a) b(b) bi(c)");
    check("a * b * c", "a * b * c");
    check("snake_case_name _a_", "snake_case_name i(a)");
    check("**a *b* c**", "b(a )bi(b)b( c)");
    check("*a **b***", "i(a )bi(b)");
    check("**a", "**a");
    check("***a** b*", "bi(a)i( b)");
    check("~~a~~ ~b~ a~b", "s(a) ~b~ a~b");
    check("**中文。**中文", "b(中文。)中文");
    check("\\*a\\* &amp; &lt;", "*a* & <");
}

#[test]
fn code_is_as_it_is() {
    check("`a*b*` ``c`d``", "c(a*b*) c(c`d)");
    check("` a ` `` ` ``", "c(a) c(`)");
    check("`a", "`a");
}

#[test]
fn links_spell_their_target_where_it_cannot_be_followed() {
    check("[a *b*](https://x.y)", "u(a )iu(b)d( (https://x.y))");
    check("[https://x.y](https://x.y)", "u(https://x.y)");
    check("[a](src/a.rs \"t\") [b] [c][d]", "u(a)d( (src/a.rs)) [b] [c][d]");
    check("![alt](a.png)", "u(alt)d( (a.png))");
    check("<https://x.y> <a@b.c> https://x.y.", "u(https://x.y) u(a@b.c) u(https://x.y).");
    assert_eq!(shown("[a](https://x.y)", true, false), "u(a@https://x.y)");
    assert_eq!(shown("[a](javascript:b)", true, false), "u(a)d( (javascript:b))");
    assert_eq!(
        shown("[https://good.x](https://bad.y)", true, false),
        "u(https://good.x@https://bad.y)d( (https://bad.y))"
    );
}

#[test]
fn tags_are_faint_and_comments_left_out() {
    check("a <b>c</b> <!-- no -->d <!-- e", "a d(<b>)cd(</b>) d <!-- e");
    check("1 < 2 > 1", "1 < 2 > 1");
    check("a<br>b<br/>c", "a\nb\nc");
}

#[test]
fn lines_end_softly_or_hard() {
    check("a\nb", "a b");
    check("a  \nb\\\nc", "a\nb\nc");
}

#[test]
fn what_is_open_at_the_end_is_closed_where_the_text_goes_on() {
    for (text, expected) in [
        ("a **b", "a b(b)"),
        ("a `b", "a c(b)"),
        ("a *b **c", "a i(b )bi(c)"),
        ("[a](http", "u(a)"),
        ("2 * 3", "2 * 3"),
    ] {
        assert_eq!(shown(text, false, true), expected, "{text}");
    }
}
