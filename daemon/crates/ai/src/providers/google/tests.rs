use std::sync::Arc;

use agentd_protocol::model::Model;

use super::*;
use crate::{Account, Secret};

fn headers<A: Adapter>(adapter: &A, key: &str, account: Account) -> String {
    let model = Model {
        id: "gemini-x".into(),
        base_url: "https://{location}-aiplatform.googleapis.com".into(),
        ..Model::placeholder()
    };
    let mut request = Request::new(Arc::new(model), Vec::new());
    request.credentials.api_key = Some(Secret::new(key));
    request.credentials.account = account;
    let outgoing = adapter.outgoing(&request).unwrap();
    let shown = ["x-goog-api-key", "authorization"].into_iter().filter_map(|name| {
        let value = outgoing.headers.get(name)?;
        assert!(value.is_sensitive());
        Some(format!("{name}: {}", value.to_str().unwrap()))
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn keys_and_tokens_have_their_own_headers() {
    let place = Account { project: Some("p".into()), location: Some("global".into()), ..Account::default() };
    let vertex = GoogleVertex::default();
    assert_eq!(headers(&vertex, "AIza-key", place.clone()), "x-goog-api-key: AIza-key");
    assert_eq!(headers(&vertex, "ya29.token", place.clone()), "authorization: Bearer ya29.token");
    assert_eq!(headers(&vertex, "any-token", place), "authorization: Bearer any-token");
    assert_eq!(headers(&vertex, "express-key", Account::default()), "x-goog-api-key: express-key");
}

#[test]
fn the_gemini_api_takes_both_too() {
    let check = |key: &str, expected: &str| {
        let model = Model {
            id: "gemini-x".into(),
            base_url: "https://generativelanguage.googleapis.com/v1beta".into(),
            ..Model::placeholder()
        };
        let mut request = Request::new(Arc::new(model), Vec::new());
        request.credentials.api_key = Some(Secret::new(key));
        let outgoing = GoogleGenerativeAi::default().outgoing(&request).unwrap();
        assert!(outgoing.headers.contains_key(expected), "{:?}", outgoing.headers);
    };
    check("AIza-key", "x-goog-api-key");
    check("ya29.token", "authorization");
}
