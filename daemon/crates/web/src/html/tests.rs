use super::*;

fn url() -> Url {
    Url::parse("https://example.org/docs/page.html").unwrap()
}

fn markdown(html: &str) -> String {
    read(html, &url(), 1 << 20).markdown
}

fn piece(html: &str) -> String {
    fragment(html, &url(), 1 << 20)
}

const TEXT: &str =
    "This sentence is here so that the page has something to say, with a comma, and some more words. ";

#[test]
fn blocks_and_words() {
    assert_eq!(
        piece("<h2>A <em>b</em><a href='#x'>¶</a></h2><p>One\n  two<br>three</p>"),
        "## A *b*\n\nOne two\nthree\n"
    );
    assert_eq!(piece("a<b> c </b>d <i></i><code>x  y</code> <code>`</code>"), "a **c** d `x y` `` ` ``\n");
    assert_eq!(
        piece(
            "<a href='../x y?a=(1)'>t</a> <a href='#y'>z</a> <a href='javascript:x'>j</a> <a href=/q><img src=a.png></a>"
        ),
        "[t](https://example.org/x%20y?a=%281%29) z j\n"
    );
    assert_eq!(
        piece("<img src=i.png alt='An  image'><img src=j.png>"),
        "![An image](https://example.org/docs/i.png)\n"
    );
    assert_eq!(
        piece("<blockquote><p>a</p><blockquote>b</blockquote></blockquote>c"),
        "> a\n> >\n> > b\n\nc\n"
    );
    assert_eq!(piece("<dl><dt>T</dt><dd>D</dd></dl><hr>x"), "**T**\n: D\n\n---\n\nx\n");
    assert_eq!(piece("<math alttext='x^2'><mi>x</mi></math>"), "$x^2$\n");
}

#[test]
fn lists_are_nested_by_their_markers() {
    assert_eq!(
        piece(
            "<ul><li>a<ul><li>b</li></ul></li><li><p>c</p><p>d</p></li></ul><ol start=9><li>x<li>y<br>z</ol>"
        ),
        "- a\n  - b\n- c\n\n  d\n\n9. x\n10. y\n    z\n"
    );
    assert_eq!(
        piece("<ul><li><input type=checkbox checked>a<li><pre>b\n  c</pre></ul>"),
        "- [x] a\n- ```\n  b\n    c\n  ```\n"
    );
}

#[test]
fn code_keeps_its_lines_and_its_language() {
    assert_eq!(
        piece(
            "<div class='highlight-source-rust'><pre><span class=lineno>1</span>fn <b>a</b>() {\n}\n</pre></div>"
        ),
        "```rust\nfn a() {\n}\n```\n"
    );
    assert_eq!(piece("<pre><code class='language-sh x'>a\n```\nb</code></pre>"), "````sh\na\n```\nb\n````\n");
}

#[test]
fn tables_with_data_are_tables() {
    assert_eq!(
        piece("<table><tr><th>A<th>B<tr><td>1|2<td><p>x</p><p>y</p><tr><td colspan=2>z</table>"),
        "| A | B |\n| --- | --- |\n| 1\\|2 | x y |\n| z |  |\n"
    );
    assert_eq!(piece("<table><tr><td>only</table>"), "only\n");
    let nested = "<table><tr><td><h2>H</h2><td><table><tr><td>a<td>b<tr><td>c<td>d</table></table>";
    assert_eq!(piece(nested), "## H\n\n| a | b |\n| --- | --- |\n| c | d |\n");
}

#[test]
fn what_surrounds_the_content_is_left_out() {
    let page = format!(
        "<title>T &amp; U</title><body><nav><a href=/>Home</a></nav><div class=cookie-banner>Accept</div>\
         <div id=wrapper><div class=sidebar><ul><li><a href=/a>A</a></ul></div>\
         <div class=post><h1>Head</h1><p>{TEXT}<p>{TEXT}<pre>code</pre><div class=share>Share</div></div></div>\
         <footer>Foot</footer>"
    );
    let read = read(&page, &url(), 1 << 20);
    assert_eq!(read.markdown, format!("# Head\n\n{0}\n\n{0}\n\n```\ncode\n```\n", TEXT.trim()));
}

#[test]
fn marked_content_comes_first_and_short_pages_are_shown_whole() {
    let page = format!("<body><div>{}</div><main><h2>M</h2><p>{}</main>", TEXT, TEXT.repeat(4));
    assert!(markdown(&page).starts_with("## M"), "{}", markdown(&page));
    assert_eq!(markdown("<title>Only</title><p>Hello"), "# Only\n\nHello\n");
    let list = format!("<main>{}</main>", format!("<article><h2>x</h2><p>{TEXT}</article>").repeat(3));
    assert_eq!(markdown(&list).matches("## x").count(), 3);
    let index = format!("<body><ul>{}</ul>", "<li><a href=/a>A story with a title</a>".repeat(30));
    assert_eq!(markdown(&index).lines().count(), 30);
    assert_eq!(markdown("<nav><a href=/a>only a menu</a></nav>"), "[only a menu](https://example.org/a)\n");
}

#[test]
fn the_head_names_other_forms() {
    let page = "<base href=/b/><link rel='alternate' type='text/markdown' href=p.md><link rel=alternate type=application/rss+xml href=f>\
                <link rel=stylesheet type=text/markdown href=no><noscript>Please enable JavaScript</noscript><a href=x.pdf>p</a>";
    let read = read(page, &url(), 1000);
    let found: Vec<(AlternateKind, &str)> =
        read.alternates.iter().map(|it| (it.kind, it.url.as_str())).collect();
    assert_eq!(
        found,
        [
            (AlternateKind::Markdown, "https://example.org/b/p.md"),
            (AlternateKind::Feed, "https://example.org/b/f")
        ]
    );
    assert!(is_low(&read.markdown, &read.without_scripts));
    assert_eq!(read.document_links[0].as_str(), "https://example.org/b/x.pdf");
}

#[test]
fn the_output_is_bounded_and_depth_does_no_harm() {
    let long = format!("<p>{}", "word ".repeat(100_000));
    let cut = read(&long, &url(), 1000);
    assert!(cut.markdown.len() <= 1000 && cut.is_cut);
    for tag in ["div", "b", "blockquote", "ul><li", "table><tr><td", "font", "a", "span", "pre", "dl><dd"] {
        let deep = format!("<{tag}>").repeat(20_000) + "x";
        assert!(fragment(&deep, &url(), 10_000).len() <= 10_000, "{tag}");
    }
    let wide = "<b>x".repeat(20_000);
    assert!(read(&wide, &url(), 1000).markdown.len() <= 1000);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn no_text_breaks_it(parts in proptest::collection::vec(proptest::sample::select(vec![
        "<div>", "</div>", "<p", ">", "<table>", "<td>", "<tr>", "</table>", "<b>", "</b>", "<ul>", "<li>", "<pre>", "<a href='", "'>",
        "</a>", "x", " ", "\n", "é", "&lt;", "&#0;", "<svg>", "<math>", "<template>", "<select>", "<option>", "<script>", "</script>", "\u{0}",
        "<!--", "-->", "<![CDATA[", "]]>", "<html>", "<body>", "<frameset>", "<h1>", "|", "`", "*", "<img alt='y' src=", "<br/>", "<caption>",
        "<noscript>", "<textarea>", "</p>", "<dl><dt>", "<blockquote>", "<input type=checkbox>", "</template>", "<form>", "<button>",
    ]), 0..60), any in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        for text in [parts.concat(), String::from_utf8_lossy(&any).into_owned()] {
            let page = read(&text, &url(), 500);
            assert!(page.markdown.len() <= 500 + 310);
        }
    }
}
