//! Laws for whatever a server sends: nothing panics, and what is made of it is bounded.

use proptest::{collection::vec, prelude::*, sample::select};
use reqwest::Url;

use crate::{charset, content, feed, html, json, net::robots::Robots};

/// Pieces of documents: what is put together of them is nearly one.
const PIECES: [&str; 40] = [
    "<rss>",
    "<channel>",
    "<item>",
    "</item>",
    "<title>",
    "</title>",
    "<link>",
    "<link href='x' rel=alternate/>",
    "<description>",
    "<![CDATA[",
    "]]>",
    "</description>",
    "<feed>",
    "<entry>",
    "</entry>",
    "<content type='xhtml'>",
    "</content>",
    "<author><name>",
    "&lt;p&gt;",
    "&amp;",
    "&#x41;",
    "&#1114112;",
    "&nope;",
    "<?xml version='1.0' encoding='latin1'?>",
    "<!DOCTYPE html>",
    "<p>",
    "<table><tr><td>",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "1e5",
    "User-agent: *\n",
    "Disallow: /*a$\n",
    "é",
    "text ",
];

fn documents() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(select(&PIECES[..]), 0..60).prop_map(|pieces| pieces.concat().into_bytes()),
        vec(any::<u8>(), 0..300),
        (vec(any::<u8>(), 0..40), vec(select(&PIECES[..]), 0..30))
            .prop_map(|(bytes, pieces)| { [pieces.concat().into_bytes(), bytes].concat() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_a_server_sends_becomes_bounded_text(body in documents(), media_type in select(vec!["", "text/html", "text/plain; charset=gbk", "application/xml; charset=\"utf-16\"", "application/json"])) {
        let url = Url::parse("https://example.org/a/").unwrap();
        content::kind(media_type, &body);
        let text = charset::decode(&body, media_type, true);
        prop_assert!(text.len() <= 3 * body.len() + 3);
        if let Some(feed) = feed::xml(&text).or_else(|| feed::json(&text)) {
            // Each text of a feed is there once, with its address; markup in it may take several letters.
            prop_assert!(feed.markdown(&url).len() <= 200 + 60 * text.len());
        }
        if let Some(pretty) = json::pretty(&text, 1000) {
            prop_assert!(pretty.len() <= 1000 || pretty.len() <= 100 * text.len());
        }
        prop_assert!(html::fragment(&text, &url, 400).len() <= 400);
    }

    #[test]
    fn pretty_json_is_the_same_json(value in json_values()) {
        let text = value.to_string();
        let pretty = json::pretty(&text, usize::MAX).unwrap();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&pretty).unwrap(), value);
    }

    #[test]
    fn any_robots_file_decides(text in ".{0,200}", path in "/[a-z*$]{0,20}") {
        Robots::parse(&text, "agentd").permits(&path);
        prop_assert!(!Robots::parse("User-agent: agentd\nDisallow: /", "agentd").permits(&path));
    }
}

fn json_values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Into::into),
            vec((".{0,6}", inner), 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}
