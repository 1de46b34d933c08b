//! The web on the real binaries: pages of a site on loopback, what is refused, permissions by host, searching.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    images::PIXEL,
    support::{assert_says, ended, text},
};

/// A page: its path, its media type, further headers, its body.
type Page = (&'static str, &'static str, &'static str, Vec<u8>);

/// A site on loopback, with the first lines of the requests that it got.
struct Site {
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start(pages: Vec<Page>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, pages) = (Arc::clone(&asked), Arc::new(pages));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, pages) = (Arc::clone(&seen), Arc::clone(&pages));
                thread::spawn(move || serve(&stream, &pages, &seen));
            }
        });
        Self { base, asked }
    }

    fn host(&self) -> &str {
        self.base.strip_prefix("http://").expect("a URL")
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// How often a path was asked for.
    fn count(&self, path: &str) -> usize {
        let start = format!(" {path} ");
        self.asked.lock().expect("no panic").iter().filter(|line| line.contains(&start)).count()
    }
}

/// Answers one request.
fn serve(stream: &TcpStream, pages: &[Page], seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0_usize);
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().expect("no panic").push(first);
    let found = pages.iter().find(|(known, ..)| path.split('?').next() == Some(known));
    let (status, kind, headers, body) = match found {
        Some((_, kind, headers, body)) if headers.starts_with("location") => {
            ("302 Found", *kind, *headers, body.clone())
        }
        Some((_, kind, headers, body)) => ("200 OK", *kind, *headers, body.clone()),
        None => ("404 Not Found", "text/plain", "x-none: 1", b"nothing here".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
}

/// A page of documentation, with more lines than a call shows.
fn manual() -> Page {
    let items: String = (1..=400)
        .map(|index| format!("<p>Paragraph {index} says something about the subject.</p>"))
        .collect();
    let page = format!(
        "<title>Manual</title><nav><a href=/>Home</a></nav><main><h1>The manual</h1><pre><code class=language-rust>fn main() {{}}</code></pre>\
         <table><tr><th>A<th>B<tr><td>1<td>2</table>{items}</main>"
    );
    ("/manual", "text/html", "cache-control: max-age=600", page.into_bytes())
}

/// A home whose sessions may read a site.
fn home_for(site: &Site, more: Value) -> (MockServer, Home) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut settings = json!({"web": {"enabled": true, "allowedHosts": [site.host()]}});
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        settings[key] = value;
    }
    home.settings(&settings);
    (model, home)
}

/// Has the model make a call; its result.
fn call(daemon: &mut Daemon, model: &MockServer, tool: &str, arguments: Value) -> Value {
    model.push(Reply::stream(sse::calls(&[("c1", tool, arguments)])));
    model.push(Reply::stream(sse::answer("Ok.")));
    ended(&daemon.prompt("Go."), "toolResult")[0].clone()
}

/// The names of the tools that the model was told of in the last request.
fn declared(model: &MockServer) -> Vec<String> {
    let request = model.requests().pop().expect("a request");
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_page_is_read_as_markdown_and_on_without_asking_again() {
    let site = Site::start(vec![manual()]);
    let (model, home) = home_for(&site, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let result = call(&mut daemon, &model, "web_fetch", json!({"url": site.url("/manual")}));
    assert_eq!(result["isError"], false, "{result}");
    let shown = text(&result);
    assert_says(
        &shown,
        &[
            &format!("URL: {}\nContent-Type: text/html\nMethod: html\nUntrusted: ", site.url("/manual")),
            "# The manual\n\n```rust\nfn main() {}\n```\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\nParagraph 1 says",
            "[Lines 1-300 of ",
            "as artifact://",
        ],
    );
    assert!(!shown.contains("Home") && !shown.contains("Paragraph 400"), "{shown}");
    let id = result["details"]["meta"]["artifactId"].as_str().expect("an id").to_owned();
    assert_says(
        &text(&call(&mut daemon, &model, "read", json!({"path": format!("artifact://{id}:800-820")}))),
        &["Paragraph 400"],
    );
    let more = call(&mut daemon, &model, "read", json!({"path": format!("{}:301-310", site.url("/manual"))}));
    assert!(text(&more).contains("Paragraph 14") && !text(&more).contains("URL:"), "{more}");
    assert_eq!(site.count("/manual"), 1);
    let whole = call(&mut daemon, &model, "read", json!({"path": site.url("/manual")}));
    assert!(text(&whole).starts_with("URL: ") && text(&whole).contains("Paragraph 400"), "{whole}");
    assert_eq!((site.count("/manual"), site.count("/robots.txt")), (1, 1), "the cache has it");
}

#[test]
fn images_pdf_and_errors_are_shown_as_what_they_are() {
    let png = BASE64_STANDARD.decode(PIXEL).expect("Base64");
    let pdf = one_page_pdf("Hello from a PDF");
    let site = Site::start(vec![
        ("/a.png", "image/png", "x-a: 1", png),
        ("/a.pdf", "application/pdf", "x-a: 1", pdf),
        ("/away", "text/plain", "location: http://169.254.169.254/latest", Vec::new()),
    ]);
    let (model, home) = home_for(&site, json!({}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let pdf = call(&mut daemon, &model, "read", json!({"path": site.url("/a.pdf")}));
    assert_says(&text(&pdf), &["Method: pdf", "Hello from a PDF"]);
    let image = call(&mut daemon, &model, "web_fetch", json!({"url": site.url("/a.png")}));
    assert_says(&text(&image), &["Method: image"]);
    assert_eq!(image["content"][1]["type"], "image", "{image}");
    let missing = call(&mut daemon, &model, "web_fetch", json!({"url": site.url("/nothing")}));
    assert_says(&text(&missing), &["Method: failed", "HTTP 404", "nothing here"]);
    for (url, says) in [
        (site.url("/away"), "169.254.169.254 is not a public address"),
        ("http://localhost:1/".to_owned(), "web.allowedHosts"),
        ("ftp://example.org/".to_owned(), "only http:// and https://"),
        ("https://a:b@example.org/".to_owned(), "never sent"),
    ] {
        let refused = call(&mut daemon, &model, "web_fetch", json!({"url": url}));
        assert_eq!(refused["isError"], true, "{refused}");
        assert_says(&text(&refused), &[says]);
    }
}

/// A PDF with a page that says this.
fn one_page_pdf(says: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 700 Td ({says}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (index, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = file.len();
    file.push_str(&format!("xref\n0 6\n0000000000 65535 f \n{places}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"));
    file.into_bytes()
}

#[test]
fn without_the_setting_nothing_of_it_is_there() {
    let site = Site::start(vec![manual()]);
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut daemon = Daemon::start_with(&home, &["--no-session"], |command| {
        command.env("BRAVE_API_KEY", "key-of-brave-0123456789");
    });
    let result = call(&mut daemon, &model, "read", json!({"path": site.url("/manual")}));
    assert_says(&text(&result), &["Unknown URL scheme: http://"]);
    assert_eq!(declared(&model), ["read", "bash", "edit", "write"]);
    assert_eq!(site.count("/manual"), 0);
    let prompt = model.requests()[0].messages()[0]["content"].to_string();
    assert!(!prompt.contains("web_fetch"), "{prompt}");
    drop(daemon);
    let mut daemon = Daemon::start(&home, &["--no-session", "--web"]);
    call(&mut daemon, &model, "ls", json!({}));
    assert_eq!(declared(&model), ["read", "bash", "edit", "write", "web_fetch"]);
}

#[test]
fn permissions_know_hosts_and_a_sandbox_without_network_refuses() {
    let site =
        Site::start(vec![manual(), ("/to", "text/plain", "location: http://other.example/", Vec::new())]);
    let rules = json!({"permissions": {"preset": "read-only", "rules": [
        {"tool": "web_fetch", "domain": "127.0.0.1", "action": "allow"},
        {"tool": "web_fetch", "domain": "evil.example", "action": "deny", "reason": "it is evil"},
    ]}});
    let (model, home) = home_for(&site, rules);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    for (tool, key) in [("web_fetch", "url"), ("read", "path")] {
        let allowed = call(&mut daemon, &model, tool, json!({key: site.url("/manual")}));
        assert_eq!(allowed["isError"], false, "{allowed}");
        let refused = call(&mut daemon, &model, tool, json!({key: "https://docs.evil.example/x"}));
        assert_says(&text(&refused), &["Permission denied", "it is evil"]);
    }
    let led = call(&mut daemon, &model, "web_fetch", json!({"url": site.url("/to")}));
    assert_says(&text(&led), &["the permissions do not allow other.example unasked"]);
    drop(daemon);

    let (model, home) =
        home_for(&site, json!({"sandbox": {"mode": "workspace-write", "network": "off", "required": false}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let before = site.count("/manual");
    let refused = call(&mut daemon, &model, "web_fetch", json!({"url": site.url("/manual")}));
    assert_says(&text(&refused), &["the network is off in the sandbox", "sandbox.network"]);
    assert_eq!(site.count("/manual"), before);
}

#[test]
fn plan_mode_reads_pages() {
    let site = Site::start(vec![manual()]);
    let (model, home) = home_for(&site, json!({}));
    let mut daemon = Daemon::start(&home, &["--plan-mode"]);
    let result = call(&mut daemon, &model, "web_fetch", json!({"url": site.url("/manual")}));
    assert_says(&text(&result), &["# The manual"]);
}

#[test]
fn searches_go_to_the_services_that_have_keys() {
    let found = json!({"web": {"results": [{"title": "Found", "url": "https://found.example/", "description": "It is there."}]}});
    let site = Site::start(vec![(
        "/brave/web/search",
        "application/json",
        "x-a: 1",
        found.to_string().into_bytes(),
    )]);
    let search =
        json!({"webSearch": {"baseUrls": {"brave": site.url("/brave"), "tavily": site.url("/tavily")}}});
    let (model, home) = home_for(&site, search);
    let key = "brave-key-0123456789abcdef";
    let mut daemon = Daemon::start_with(&home, &[], |command| {
        command.env("BRAVE_API_KEY", key);
    });
    let result = call(&mut daemon, &model, "web_search", json!({"query": "something", "limit": 5}));
    assert_says(
        &text(&result),
        &["Untrusted: ", "[1] Found\n    https://found.example/\n    It is there.\n"],
    );
    assert_eq!(result["details"]["response"]["provider"], "brave");
    assert!(declared(&model).contains(&"web_search".to_owned()));
    drop(daemon);
    for file in home.session_files() {
        let kept = std::fs::read_to_string(&file).expect("a session file");
        assert!(!kept.contains(key), "{kept}");
    }
    // Without a key nobody can be asked.
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    call(&mut daemon, &model, "ls", json!({}));
    assert!(!declared(&model).contains(&"web_search".to_owned()));
    drop(daemon);
    // A key of auth.json counts; what fails is said.
    home.write_agent(
        "auth.json",
        &json!({"tavily": {"type": "api_key", "key": "tavily-key-0123456789abcdef"}}).to_string(),
    );
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let result = call(&mut daemon, &model, "web_search", json!({"query": "x"}));
    assert_says(&text(&result), &["Error: All web search providers failed: tavily: HTTP 404"]);
}
