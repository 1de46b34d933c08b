//! The tree beside that of html5ever alone, and its bounds.

use std::fmt::Write as _;

use html5ever::{ParseOpts, parse_document, tendril::TendrilSink as _};
use proptest::prelude::*;

use super::*;

/// The tree as text.
fn shown(dom: &Dom) -> String {
    let mut text = String::new();
    let mut waiting = vec![(dom.root(), 0)];
    while let Some((id, depth)) = waiting.pop() {
        let _ = match &dom.node(id).content {
            Content::Other => writeln!(text, "{depth} -"),
            Content::Text(content) => writeln!(text, "{depth} {:?}", &**content),
            Content::Element { name, attributes, .. } => {
                writeln!(text, "{depth} {name:?} {attributes:?}")
            }
        };
        let children: Vec<NodeId> = dom.children(id).collect();
        waiting.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
    }
    text
}

/// The tree that html5ever makes by itself.
fn by_html5ever(text: &str) -> Dom {
    let sink = Sink::new(Rc::new(Cell::new(false)));
    Dom { nodes: parse_document(sink, ParseOpts::default()).one(text), is_cut: false }
}

fn piece() -> impl Strategy<Value = String> {
    const NAMES: [&str; 30] = [
        "p",
        "b",
        "i",
        "a",
        "table",
        "tr",
        "td",
        "caption",
        "select",
        "option",
        "svg",
        "math",
        "mi",
        "desc",
        "foreignObject",
        "title",
        "textarea",
        "script",
        "style",
        "plaintext",
        "template",
        "form",
        "frameset",
        "noscript",
        "iframe",
        "xmp",
        "ul",
        "li",
        "body",
        "head",
    ];
    const TEXTS: [&str; 24] = [
        "x",
        " ",
        "\n",
        "\r\n",
        "\0",
        "&amp;",
        "&lt",
        "&#65;",
        "&#x80;",
        "&notit;",
        "&nosuch;",
        "<!-- c -->",
        "<!--",
        "-->",
        "<![CDATA[x]]>",
        "<!DOCTYPE html>",
        "<?pi?>",
        "</",
        "<",
        "</ x>",
        "<x y=\"1\" y='2' z=3 Y>",
        "<br/>",
        "é\u{10000}",
        "]]>",
    ];
    prop_oneof![
        prop::sample::select(&NAMES[..]).prop_map(|name| format!("<{name}>")),
        prop::sample::select(&NAMES[..]).prop_map(|name| format!("<{name} class=\"a &amp; b\" ID=x>")),
        prop::sample::select(&NAMES[..]).prop_map(|name| format!("</{name}>")),
        prop::sample::select(&TEXTS[..]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_tree_is_that_of_html5ever(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        prop_assert_eq!(shown(&Dom::parse(&text)), shown(&by_html5ever(&text)), "{:?}", text);
    }
}

#[test]
fn the_tree_is_that_of_the_parser() {
    let dom = Dom::parse("<table>x<tr><td>a<b>b</td></table><p>c<template><i>t</i></template>");
    assert_eq!(dom.plain_text(dom.root(), 100), "x ab c");
    let cell = dom.find(dom.root(), Tag::Td).unwrap();
    assert_eq!(dom.children(cell).count(), 2);
    assert!(dom.ancestors(cell).any(|above| dom.tag(above) == Some(Tag::Table)));
    assert!(!dom.is_cut);
}

#[test]
fn what_is_nested_without_end_is_cut() {
    for text in ["<div>".repeat(100_000), "<b id=1><i id=2>".repeat(4_000) + &"<p>".repeat(50_000)] {
        let dom = Dom::parse(&text);
        assert!(dom.is_cut && dom.len() < 3_000_000, "{}", dom.len());
    }
}

#[test]
fn of_many_attributes_of_one_name_the_first_counts() {
    for count in [1, 10, 1000] {
        let others: String = (0..count).map(|index| format!("a{index}={index} A=2 ")).collect();
        let text = format!("<p a=1 {others}>x");
        let dom = Dom::parse(&text);
        assert_eq!(shown(&dom), shown(&by_html5ever(&text)));
        let p = dom.find(dom.root(), Tag::P).unwrap();
        assert_eq!((dom.attribute(p, "a"), dom.attributes(p).count()), (Some("1"), count + 1));
    }
}
