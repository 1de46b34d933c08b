use serde_json::json;

use super::*;

fn plan(url: &str) -> Option<(&'static str, String)> {
    let plan = Sites::default().plan(&Url::parse(url).unwrap())?;
    let url = match plan.form {
        Form::Page(url) | Form::Feed(url) | Form::Text(url, _) => url,
        Form::Json(urls, _) => urls[0].clone(),
    };
    Some((plan.method, url.into()))
}

#[test]
fn each_handler_knows_its_pages() {
    for (url, expected) in [
        (
            "https://github.com/o/r/issues/12#x",
            Some(("github-thread", "https://api.github.com/repos/o/r/issues/12")),
        ),
        (
            "https://github.com/o/r/pull/3/files",
            Some(("github-thread", "https://api.github.com/repos/o/r/issues/3")),
        ),
        (
            "https://github.com/o/r/blob/main/a/b.rs",
            Some(("github-raw", "https://raw.githubusercontent.com/o/r/main/a/b.rs")),
        ),
        ("https://github.com/o/r", Some(("github-readme", "https://api.github.com/repos/o/r/readme"))),
        ("https://github.com/o/r/issues", None),
        ("https://github.com/topics/rust", None),
        (
            "https://gitlab.com/g/s/p/-/blob/main/x",
            Some(("git-raw", "https://gitlab.com/g/s/p/-/raw/main/x")),
        ),
        ("https://gitlab.com/g/s", None),
        (
            "https://crates.io/crates/serde/1.0.0",
            Some(("crates.io", "https://crates.io/api/v1/crates/serde")),
        ),
        ("https://pypi.org/project/requests/", Some(("pypi", "https://pypi.org/pypi/requests/json"))),
        (
            "https://rubygems.org/gems/rails",
            Some(("rubygems", "https://rubygems.org/api/v1/gems/rails.json")),
        ),
        (
            "https://arxiv.org/abs/2301.00001v2",
            Some(("arxiv", "https://export.arxiv.org/api/query?id_list=2301.00001v2")),
        ),
        ("https://arxiv.org/pdf/2301.00001", None),
        (
            "https://de.m.wikipedia.org/wiki/Rust_(X)",
            Some(("wikipedia", "https://de.wikipedia.org/api/rest_v1/page/html/Rust_(X)")),
        ),
        (
            "https://datatracker.ietf.org/doc/html/rfc9110",
            Some(("rfc-text", "https://www.rfc-editor.org/rfc/rfc9110.txt")),
        ),
        ("https://www.rfc-editor.org/rfc/rfc9110.txt", None),
        ("https://example.org/o/r/issues/12", None),
    ] {
        assert_eq!(plan(url), expected.map(|(method, to)| (method, to.to_owned())), "{url}");
    }
}

#[test]
fn a_thread_has_its_comments() {
    let Some(Plan { form: Form::Json(_, shown), .. }) =
        Sites::default().plan(&Url::parse("https://github.com/o/r/pull/1").unwrap())
    else {
        panic!("no thread")
    };
    let issue = json!({"title": "T", "number": 1, "state": "open", "user": {"login": "u"}, "body": "B", "comments": 2,
                       "labels": [{"name": "bug"}], "pull_request": {"diff_url": "d"}});
    let comments = json!([{"user": {"login": "v"}, "created_at": "2024", "body": "C"}]);
    let text = shown(&[issue, comments]).unwrap();
    assert_eq!(
        text,
        "# T (#1)\n\n- Kind: pull request\n- State: open\n- Author: u\n- Labels: bug\n- Diff: d\n\nB\n\n## v, 2024\n\nC\n\n\
         (1 of 2 comments are shown.)\n"
    );
    assert_eq!(shown(&[json!({"message": "Not Found"})]), None);
}
