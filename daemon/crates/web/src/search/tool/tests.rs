use std::{collections::BTreeMap, time::Duration};

use agentd_http::{Credentials, HttpClients, Secret};
use agentd_images::Images;
use agentd_protocol::{message::ContentBlock, settings::WebSearchProvider as Provider};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    search::{SearchAccess, Vendor, VendorKind},
    testing::{Reply, Site},
};

struct Access {
    keys: Vec<Provider>,
    vendor: Option<Vendor>,
}

impl SearchAccess for Access {
    fn has_key(&self, service: Provider) -> bool {
        self.keys.contains(&service)
    }

    fn has_vendor(&self) -> bool {
        self.vendor.is_some()
    }

    fn key(&self, service: Provider) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        let key =
            self.has_key(service).then(|| Secret::new(format!("key-of-{}-0123456789", service.as_str())));
        Box::pin(async move { Ok(key) })
    }

    fn vendor(&self) -> BoxFuture<'_, Result<Option<Vendor>, String>> {
        let vendor = self.vendor.clone();
        Box::pin(async move { Ok(vendor) })
    }
}

fn vendor(kind: VendorKind, site: &Site) -> Vendor {
    let credentials =
        Credentials { api_key: Some(Secret::new("key-of-vendor-0123456789")), ..Credentials::default() };
    Vendor { kind, model: "m".into(), base_url: format!("{}/v", site.base), credentials }
}

fn tool(site: &Site, keys: &[Provider], vendor: Option<Vendor>) -> WebSearchTool {
    let services = [Provider::Brave, Provider::Tavily, Provider::Exa, Provider::Searxng];
    let base_urls: BTreeMap<Provider, String> = services
        .into_iter()
        .filter(|service| *service != Provider::Searxng || keys.contains(service))
        .map(|service| (service, format!("{}/{}", site.base, service.as_str())))
        .collect();
    WebSearchTool::new(SearchOptions {
        providers: Provider::ALL.to_vec(),
        base_urls,
        timeout: Duration::from_secs(5),
        http: HttpClients::default().into(),
        network: Arc::default(),
        access: Arc::new(Access { keys: keys.to_vec(), vendor }),
        refused: None,
    })
}

async fn search(tool: &WebSearchTool, arguments: Value) -> (String, Value) {
    let invocation = Invocation {
        call_id: "c".into(),
        arguments,
        cwd: "/".into(),
        sees_images: false,
        images: Images::default(),
        session_env: Vec::new(),
        environment: None,
        cancel: CancellationToken::new(),
        progress: agentd_agent::ToolProgress::new(|_| {}),
    };
    let result = tool.execute(invocation).await.unwrap();
    let Some(ContentBlock::Text { text, .. }) = result.content.first() else { panic!("no text") };
    (text.clone(), result.details.unwrap())
}

fn json_reply(value: &Value) -> Reply {
    Reply::new("application/json", value.to_string())
}

#[tokio::test]
async fn each_service_is_asked_in_its_own_words() {
    let site = Site::start().await;
    site.route(
        "/brave/web/search?q=rust+site%3Adocs.rs&count=3&extra_snippets=true&freshness=pw",
        json_reply(&json!({"web": {"results": [
            {"title": "<strong>Rust</strong> &amp; co", "url": "https://docs.rs/a", "description": "d", "extra_snippets": ["e"], "page_age": "2020-01-01T00:00:00"},
            {"title": "Elsewhere", "url": "https://example.org/"},
        ]}})),
    );
    let brave = tool(&site, &[Provider::Brave], None);
    let arguments = json!({"query": "rust site:docs.rs", "recency": "week", "limit": 3});
    let (text, details) = search(&brave, arguments.clone()).await;
    assert!(
        text.contains("[1] Rust & co (") && text.contains("years ago)\n    https://docs.rs/a\n    d e\n"),
        "{text}"
    );
    assert!(!text.contains("Elsewhere") && text.starts_with("Untrusted"), "{text}");
    assert_eq!(details["response"]["provider"], "brave");
    let path = "/brave/web/search?q=rust+site%3Adocs.rs&count=3&extra_snippets=true&freshness=pw";
    assert!(site.asked(path)[0].contains("x-subscription-token: key-of-brave-0123456789"));

    site.route("/tavily/search", json_reply(&json!({"answer": "A", "results": [{"title": "T", "url": "https://docs.rs/t", "content": "c"}], "request_id": "r"})));
    let (text, details) = search(&tool(&site, &[Provider::Tavily], None), arguments.clone()).await;
    assert!(text.contains("A\n\n## Sources\n\n[1] T\n    https://docs.rs/t\n    c\n"), "{text}");
    assert_eq!(details["response"]["requestId"], "r");
    let sent: Value = serde_json::from_str(&site.sent("/tavily/search")).unwrap();
    assert_eq!(
        (&sent["query"], &sent["include_domains"], &sent["time_range"]),
        (&json!("rust"), &json!(["docs.rs"]), &json!("week"))
    );

    site.route("/exa/search", json_reply(&json!({"results": [{"title": "E", "url": "https://docs.rs/e", "highlights": ["h"], "author": "a"}]})));
    let (text, details) = search(&tool(&site, &[Provider::Exa], None), arguments.clone()).await;
    assert!(text.contains("[1] E\n    https://docs.rs/e\n    h\n"), "{text}");
    assert_eq!(details["response"]["sources"][0]["author"], "a");

    site.route("/searxng/search?q=rust+site%3Adocs.rs&format=json&time_range=month", json_reply(&json!({"results": [{"title": "S", "url": "https://docs.rs/s", "content": "x"}], "suggestions": ["more"]})));
    let (text, _) = search(&tool(&site, &[Provider::Searxng], None), arguments).await;
    assert!(text.contains("[1] S") && text.contains("## Related\n\n- more"), "{text}");
}

#[tokio::test]
async fn vendors_search_with_their_own_tools() {
    let site = Site::start().await;
    site.route("/v/v1/messages", json_reply(&json!({"id": "msg", "content": [
        {"type": "server_tool_use", "input": {"query": "q1"}},
        {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "url": "https://a.b/", "title": "AB", "page_age": "May 1, 2024"}]},
        {"type": "text", "text": "Found.", "citations": [{"url": "https://a.b/", "title": "AB", "cited_text": "c"}]},
    ], "usage": {"server_tool_use": {"web_search_requests": 1}}})));
    let (text, details) =
        search(&tool(&site, &[], Some(vendor(VendorKind::Anthropic, &site))), json!({"query": "x"})).await;
    assert!(
        text.contains("Found.\n\n## Sources\n\n[1] AB (")
            && text.contains("## Citations\n\n[1] AB\n    https://a.b/\n    \"c\""),
        "{text}"
    );
    assert!(text.contains("Search queries: 1 (q1)"), "{text}");
    assert_eq!(details["response"]["usage"]["server_tool_use"]["web_search_requests"], 1);
    let request = &site.asked("/v/v1/messages")[0];
    assert!(
        request.contains("x-api-key: key-of-vendor-0123456789") && request.contains("web_search_20250305"),
        "{request}"
    );

    site.route(
        "/v/models/m:generateContent",
        json_reply(&json!({"candidates": [{"content": {"parts": [{"text": "G"}]}, "groundingMetadata": {
        "webSearchQueries": ["gq"], "groundingChunks": [{"web": {"uri": "https://g.h/", "title": "gh"}}],
        "groundingSupports": [{"segment": {"text": "seg"}, "groundingChunkIndices": [0, 7]}]}}]})),
    );
    let (text, _) =
        search(&tool(&site, &[], Some(vendor(VendorKind::Gemini, &site))), json!({"query": "x"})).await;
    assert!(
        text.contains("G\n\n## Sources\n\n[1] gh\n    https://g.h/") && text.contains("\"seg\""),
        "{text}"
    );

    site.route("/v/responses", json_reply(&json!({"id": "resp", "output": [{"type": "web_search_call", "action": {"query": "oq"}},
        {"type": "message", "content": [{"type": "output_text", "text": "O", "annotations": [{"type": "url_citation", "url": "https://o.p/", "title": "op"}]}]}]})));
    let (text, _) =
        search(&tool(&site, &[], Some(vendor(VendorKind::OpenAi, &site))), json!({"query": "x"})).await;
    assert!(text.contains("O\n\n## Sources\n\n[1] op\n    https://o.p/"), "{text}");
    assert!(site.asked("/v/responses")[0].contains("authorization: Bearer key-of-vendor"));
}

#[tokio::test]
async fn the_next_one_answers_where_one_fails_and_no_key_is_told() {
    let site = Site::start().await;
    let failing = "/brave/web/search?q=x&count=10&extra_snippets=true";
    site.route(
        failing,
        json_reply(&json!({"error": {"message": "broken key-of-brave-0123456789"}}))
            .status("500 Internal Server Error"),
    );
    site.route("/tavily/search", json_reply(&json!({"results": []})));
    site.route("/exa/search", json_reply(&json!({"detail": "no"})).status("401 Unauthorized"));
    agentd_http::register_secret("key-of-brave-0123456789");
    let all = [Provider::Brave, Provider::Tavily, Provider::Exa];
    let (text, details) = search(&tool(&site, &all, None), json!({"query": "x"})).await;
    assert_eq!(
        text,
        "Error: All web search providers failed: brave: HTTP 500 Internal Server Error: broken [redacted]; tavily: it found nothing; \
         exa: Exa authorization failed (401 Unauthorized): check its key"
    );
    assert!(details["error"].as_str().unwrap().starts_with("All web search"));
    site.route("/exa/search", json_reply(&json!({"results": [{"title": "E", "url": "https://e.x/"}]})));
    let (text, _) = search(&tool(&site, &all, None), json!({"query": "x"})).await;
    assert!(text.contains("Note: brave failed: HTTP 500") && text.contains("[1] E"), "{text}");
}

#[tokio::test]
async fn the_one_that_is_named_is_asked_first_and_alone_if_so_wanted() {
    let site = Site::start().await;
    let found = |title: &str| json_reply(&json!({"results": [{"title": title, "url": "https://docs.rs/"}]}));
    let failing = "/brave/web/search?q=x&count=10&extra_snippets=true";
    site.route(failing, json_reply(&json!({})).status("500 Internal Server Error"));
    site.route("/tavily/search", found("T"));
    site.route("/exa/search", found("E"));
    let tool = tool(&site, &[Provider::Brave, Provider::Tavily, Provider::Exa], None);
    let provider = |details: Value| details["response"]["provider"].as_str().unwrap().to_owned();
    let (_, details) = search(&tool, json!({"query": "x", "provider": "exa"})).await;
    assert_eq!(provider(details), "exa");
    let (_, details) = search(&tool, json!({"query": "x", "provider": "brave"})).await;
    assert_eq!(provider(details), "tavily");
    let (text, details) =
        search(&tool, json!({"query": "x", "provider": "brave", "no_fallback": true})).await;
    assert!(text.starts_with("Error: The web search failed: brave: HTTP 500"), "{text}");
    assert_eq!(provider(details), "none");
    let (text, _) = search(&tool, json!({"query": "x", "provider": "searxng", "no_fallback": true})).await;
    assert!(text.starts_with("Error: searxng cannot be asked"), "{text}");
    let (text, details) = search(&tool, json!({"query": "x", "provider": "vendor"})).await;
    assert!(text.contains("vendor cannot be asked"), "{text}");
    assert_eq!(provider(details), "tavily");
}

#[tokio::test]
async fn the_tool_is_declared_where_somebody_can_be_asked() {
    let site = Site::start().await;
    assert_eq!(tool(&site, &[], None).exposure(), Exposure::Hidden);
    assert_eq!(tool(&site, &[Provider::Exa], None).exposure(), Exposure::Direct);
    assert_eq!(tool(&site, &[], Some(vendor(VendorKind::OpenAi, &site))).exposure(), Exposure::Direct);
    assert_eq!(VendorKind::of("local", "openai-responses"), None);
}
