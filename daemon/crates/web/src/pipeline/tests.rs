use std::io::Write as _;

use super::*;
use crate::{
    AllowedHosts, HostRules,
    net::resolver::testing::FixedLookup,
    testing::{Reply, Site},
};

const WORDS: &str =
    "This is a sentence of a page that has something to say about its subject, and says it in some words. ";

fn reader(site: &Site, change: impl FnOnce(&mut WebOptions)) -> WebReader {
    let host = site.base.strip_prefix("http://").unwrap().to_owned();
    let mut options = WebOptions { allowed: AllowedHosts::parse(&[host]).unwrap(), ..WebOptions::default() };
    change(&mut options);
    WebReader::new(WebStore::default(), options, None)
}

async fn read(reader: &WebReader, url: &str) -> Page {
    reader.read(url, false, None, &CancellationToken::new()).await.unwrap()
}

async fn error(reader: &WebReader, url: &str) -> String {
    reader.read(url, false, None, &CancellationToken::new()).await.unwrap_err().to_string()
}

fn text(page: &Page) -> &str {
    match &page.content {
        PageContent::Text(text) => text,
        PageContent::Image(_) => panic!("an image"),
    }
}

fn html(body: &str) -> Reply {
    Reply::new("text/html; charset=utf-8", body)
}

#[tokio::test]
async fn each_rung_of_the_ladder_has_its_page() {
    let site = Site::start().await;
    let long = WORDS.repeat(5);
    let app = "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>";
    site.route("/plain", html(&format!("<main><h1>H</h1><p>{long}</main>")));
    site.route("/a", html(&format!("<link rel=alternate type=text/markdown href=/a-source><p>{long}")));
    site.route("/a-source", Reply::new("text/markdown", format!("# A\n\n{long}")));
    site.route("/b", html(app));
    site.route("/b.md", Reply::new("text/markdown", format!("# B\n\n{long}")));
    site.answer("/c", |head| match head.to_ascii_lowercase().contains("accept: text/markdown") {
        true => Reply::new("text/markdown", "# C"),
        false => html("<p>c"),
    });
    site.route("/d/app", html(&format!("<link rel=alternate type=application/rss+xml href=/d/feed>{app}")));
    site.route("/d/feed", Reply::new("application/rss+xml", format!("<rss><channel><title>D</title><item><title>I</title><description>{long}</description></item></channel></rss>")));
    site.route("/e/app", html(&format!("{app}<a href=/e/doc.txt>doc</a>")));
    site.route("/e/doc.txt", Reply::new("text/plain", format!("E {long}")));
    site.route("/f/deep/app", html(app));
    site.route("/f/llms.txt", Reply::new("text/plain", format!("F {long}")));
    site.route("/g/app", html(app));
    let reader = reader(&site, |_| {});
    for (path, method, part) in [
        ("/plain", "html", "# H"),
        ("/a", "alternate-markdown", "# A"),
        ("/b", "md-suffix", "# B"),
        ("/c", "content-negotiation", "# C"),
        ("/d/app", "page-feed", "## I"),
        ("/e/app", "linked-document", "E This"),
        ("/f/deep/app", "llms.txt", "F This"),
        ("/g/app", "raw-html", "<noscript>"),
    ] {
        let page = read(&reader, &site.url(path)).await;
        assert_eq!(page.method, method, "{path}: {}", page.shown());
        assert!(text(&page).contains(part), "{path}: {}", page.shown());
    }
    site.route("/llms.txt", Reply::new("text/plain", format!("Root {long}")));
    assert_eq!(read(&reader, &site.url("/g/other")).await.method, "failed");
    site.route("/g/again", html(app));
    assert!(text(&read(&reader, &site.url("/g/again")).await).starts_with("Root"));
}

#[tokio::test]
async fn other_kinds_are_shown_as_text_and_errors_as_such() {
    let site = Site::start().await;
    site.route("/j", Reply::new("application/json", "{\"a\":[1.50]}"));
    site.route("/feed", Reply::new("application/atom+xml", "<feed><title>T</title></feed>"));
    site.route("/t", Reply::new("text/plain; charset=latin1", b"caf\xe9".to_vec()));
    site.route("/z", Reply::new("application/x-font", b"\0\x01\0\0\0\0".to_vec()));
    site.route("/h", html("<p>raw"));
    site.route("/gone", Reply::new("application/json", "{\"message\":\"Gone\"}").status("410 Gone"));
    let reader = reader(&site, |_| {});
    let shown = |path: &'static str| {
        let (reader, url) = (reader.clone(), site.url(path));
        async move { read(&reader, &url).await }
    };
    assert_eq!(text(&shown("/j").await), "{\n  \"a\": [\n    1.50\n  ]\n}");
    assert_eq!((shown("/feed").await.method.as_str(), text(&shown("/t").await)), ("feed", "café"));
    assert!(text(&shown("/z").await).contains("binary, of the kind application/x-font, 6 bytes"));
    let raw = reader.read(&site.url("/h"), true, None, &CancellationToken::new()).await.unwrap();
    assert_eq!((raw.method.as_str(), text(&raw)), ("raw", "<p>raw"));
    let gone = shown("/gone").await;
    assert_eq!((gone.method.as_str(), gone.notes[0].as_str()), ("failed", "HTTP 410 Gone"));
    assert!(text(&gone).contains("Gone"));
    let shown = shown("/j").await.shown();
    assert!(
        shown.starts_with(&format!(
            "URL: {}\nContent-Type: application/json\nMethod: json\nUntrusted: ",
            site.url("/j")
        )),
        "{shown}"
    );
}

#[tokio::test]
async fn redirects_are_followed_to_public_addresses_alone() {
    let site = Site::start().await;
    site.route("/1", Reply::to("/2"));
    site.route("/2", Reply::to("http://user:secret@127.0.0.1:1/3"));
    site.route("/3", Reply::to("http://169.254.169.254/latest/meta-data"));
    site.route("/4", Reply::to("file:///etc/passwd"));
    site.route("/5", Reply::to("/5"));
    site.route("/6", Reply::to("/7#x"));
    site.route("/7", Reply::new("text/plain", "there"));
    site.route("/8", Reply::to("http://[::ffff:127.0.0.1]:9/"));
    site.route("/9", Reply::to("http://rebound.example/"));
    let mut reader = reader(&site, |options| options.max_redirects = 3);
    reader.lookup = Arc::new(FixedLookup(vec![("rebound.example", vec!["10.0.0.1"])]));
    let of = async |path: &str| error(&reader, &site.url(path)).await;
    let private = of("/1").await;
    assert!(private.contains("http://127.0.0.1:1/3 is not read") && !private.contains("secret"), "{private}");
    assert!(of("/3").await.contains("169.254.169.254 is not a public address"));
    assert!(of("/4").await.contains("no http:// or https:// URL"));
    assert!(of("/5").await.contains("more than 3 times (setting web.maxRedirects)"));
    assert!(of("/8").await.contains("not a public address"));
    assert!(of("/9").await.contains("rebound.example leads to 10.0.0.1"));
    let page = read(&reader, &site.url("/6")).await;
    assert_eq!((page.url, page.notes), (site.url("/7"), vec![format!("redirected from {}", site.url("/6"))]));
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://[::1]/",
        "http://10.0.0.1/",
    ] {
        assert!(error(&reader, url).await.contains("is not read"), "{url}");
    }
}

#[tokio::test]
async fn permissions_are_asked_about_other_hosts() {
    struct Never;
    impl HostRules for Never {
        fn check(&self, host: &str) -> Result<(), String> {
            Err(format!("the permissions refuse {host}"))
        }
    }
    let site = Site::start().await;
    site.route("/1", Reply::to("https://other.example/x"));
    site.route("/2", Reply::new("text/plain", "own"));
    let reader = reader(&site, |options| options.hosts = Arc::new(Never));
    assert_eq!(text(&read(&reader, &site.url("/2")).await), "own");
    assert!(error(&reader, &site.url("/1")).await.contains("the permissions refuse other.example"));
}

#[tokio::test]
async fn sizes_and_times_are_bounded() {
    let site = Site::start().await;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        bomb.write_all(&[b'x'; 1 << 16]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 10_000);
    site.route("/bomb", Reply::new("text/plain", bomb).header("content-encoding", "gzip"));
    site.route("/long", Reply::new("text/plain", "x".repeat(2 << 20)));
    site.route("/slow", Reply { hangs: true, ..Reply::new("text/plain", "begin") });
    let reader = reader(&site, |options| options.max_body = 1 << 20);
    assert!(
        error(&reader, &site.url("/bomb"))
            .await
            .contains("longer than 1048576 bytes (setting web.maxBodyBytes)")
    );
    assert!(error(&reader, &site.url("/long")).await.contains("setting web.maxBodyBytes"));
    let limit = Some(Duration::from_millis(200));
    let late = reader.read(&site.url("/slow"), false, limit, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(late, WebError::TimedOut { .. }), "{late}");
    let cancel = CancellationToken::new();
    let slow = site.url("/slow");
    let (work, stop) = (reader.read(&slow, false, None, &cancel), async {
        while site.asked("/slow").len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(tokio::join!(work, stop).0.unwrap_err(), WebError::Aborted);
}

#[tokio::test]
async fn answers_are_used_again_and_asked_about() {
    let site = Site::start().await;
    site.route("/fresh", Reply::new("text/plain", "one").header("cache-control", "max-age=100"));
    site.answer("/tagged", |head| match head.to_ascii_lowercase().contains("if-none-match: \"t\"") {
        true => Reply::new("text/plain", "").status("304 Not Modified").header("etag", "\"t\""),
        false => Reply::new("text/plain", "two").header("etag", "\"t\"").header("cache-control", "no-cache"),
    });
    site.route("/none", Reply::new("text/plain", "three").header("cache-control", "no-store"));
    let kept = reader(&site, |_| {});
    let off = WebReader { store: kept.store.clone(), ..reader(&site, |options| options.cache_bytes = 0) };
    for _ in 0..2 {
        for (path, expected) in [("/fresh", "one"), ("/tagged", "two"), ("/none", "three")] {
            assert_eq!(text(&read(&kept, &site.url(path)).await), expected);
        }
    }
    assert_eq!(["/fresh", "/tagged", "/none"].map(|path| site.asked(path).len()), [1, 2, 2]);
    assert!(site.asked("/tagged")[1].to_ascii_lowercase().contains("if-none-match"));
    let mut other = reader(&site, |options| options.allowed = AllowedHosts::default());
    other.store = kept.store.clone();
    assert!(error(&other, &site.url("/fresh")).await.contains("is not a public address"));
    read(&off, &site.url("/fresh")).await;
    assert_eq!(site.asked("/fresh").len(), 2);
    let head = site.asked("/fresh")[0].to_ascii_lowercase();
    assert!(
        head.contains("user-agent: agentd/") && !head.contains("cookie") && !head.contains("authorization"),
        "{head}"
    );
}

#[tokio::test]
async fn robots_are_respected_unless_the_user_says_otherwise() {
    let site = Site::start().await;
    site.route("/robots.txt", Reply::new("text/plain", "User-agent: agentd\nDisallow: /private"));
    site.route("/private/x", Reply::new("text/plain", "secret"));
    site.route("/open", Reply::new("text/plain", "open"));
    let polite = reader(&site, |_| {});
    for _ in 0..2 {
        assert_eq!(text(&read(&polite, &site.url("/open")).await), "open");
    }
    let refused = error(&polite, &site.url("/private/x")).await;
    assert!(refused.contains("robots.txt") && refused.contains("web.respectRobots"), "{refused}");
    assert_eq!((site.asked("/robots.txt").len(), site.asked("/private/x").len()), (1, 0));
    let other = reader(&site, |options| options.respect_robots = false);
    assert_eq!(text(&read(&other, &site.url("/private/x")).await), "secret");
}

#[tokio::test]
async fn sites_have_better_forms() {
    let site = Site::start().await;
    let host = |name: &str| format!("{}/{name}", site.base);
    site.route(
        "/api/repos/o/r/issues/7",
        Reply::new(
            "application/json",
            "{\"title\":\"T\",\"number\":7,\"state\":\"open\",\"body\":\"B\",\"comments\":1}",
        ),
    );
    site.route(
        "/api/repos/o/r/issues/7/comments?per_page=100",
        Reply::new("application/json", "[{\"user\":{\"login\":\"u\"},\"created_at\":\"d\",\"body\":\"C\"}]"),
    );
    site.route("/raw/o/r/main/a.rs", Reply::new("text/plain", "fn main() {}"));
    site.route("/arxiv/api/query?id_list=1", Reply::new("application/atom+xml", "<feed><title>Q</title><entry><title>Paper</title><author><name>A</name></author><author><name>B</name></author><summary>S</summary></entry></feed>"));
    site.route("/wp/api/rest_v1/page/html/Rust", html(&format!("<h1>Rust</h1><p>{}", WORDS.repeat(4))));
    site.route("/rfc/rfc/rfc9.txt", Reply::new("text/plain", "RFC 9"));
    site.route(
        "/crates/api/v1/crates/c",
        Reply::new(
            "application/json",
            "{\"crate\":{\"name\":\"c\",\"max_stable_version\":\"1.2\"},\"versions\":[]}",
        ),
    );
    let mut reader = reader(&site, |_| {});
    reader.sites.bases = vec![
        ("github.com", host("gh")),
        ("api.github.com", host("api")),
        ("raw.githubusercontent.com", host("raw")),
        ("export.arxiv.org", host("arxiv")),
        ("en.wikipedia.org", host("wp")),
        ("www.rfc-editor.org", host("rfc")),
        ("crates.io", host("crates")),
    ];
    let read = async |path: &str| read(&reader, path).await;
    let thread = read("https://github.com/o/r/issues/7").await;
    assert_eq!(thread.method, "github-thread");
    assert!(
        text(&thread).contains("# T (#7)") && text(&thread).contains("## u, d\n\nC"),
        "{}",
        thread.shown()
    );
    assert_eq!(text(&read("https://github.com/o/r/blob/main/a.rs").await).trim(), "fn main() {}");
    let paper = read("https://arxiv.org/abs/1").await;
    assert!(text(&paper).contains("## Paper\n\nby A, B\n\nS"), "{}", paper.shown());
    assert!(text(&read("https://en.wikipedia.org/wiki/Rust").await).starts_with("# Rust"));
    assert_eq!(text(&read("https://tools.ietf.org/html/rfc9").await), "RFC 9");
    assert!(text(&read("https://crates.io/crates/c").await).contains("- Newest version: 1.2"));
}

#[tokio::test]
async fn nothing_is_sent_where_the_web_is_off() {
    let site = Site::start().await;
    let reader = reader(&site, |options| options.refused = Some("the network is off".to_owned()));
    assert!(error(&reader, &site.url("/x")).await.contains("the network is off"));
    assert!(site.asked("/x").is_empty());
}
