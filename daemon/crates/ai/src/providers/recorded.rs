//! Every recorded and composed body keeps the laws of its API.

use std::{fs, path::Path, sync::Arc};

use agentd_protocol::model::Model;
use reqwest::Url;

use super::{
    anthropic_messages::AnthropicMessages, google::GoogleGenerativeAi,
    mistral_conversations::MistralConversations, openai_completions::OpenAiCompletions,
    openai_responses::OpenAiResponses, pi_messages::PiMessages,
};
use crate::{
    Request,
    http::{Adapter, BodyDecoder, Redactor, Server, laws},
};

/// The folders below `tests/data` with bodies, and the endings of their names.
const FOLDERS: [(&str, &str); 2] = [("captures", ".body"), ("composed", ".sse")];

/// The marks of APIs in the names of bodies; bodies without a mark belong to chat completions.
const MARKS: &[&str] = &["google-", "mistral-", "pi-messages-", "messages-", "responses-", "bedrock-"];

/// Checks all bodies with `mark` in their names, or those without any mark.
fn check<A: Adapter<Decoder: Clone>>(adapter: &A, mark: Option<&str>) {
    let url = Url::parse("http://host:1/v1").unwrap();
    let server = Server::new(&url, "p".into(), Redactor::default());
    let request = Request::new(Arc::new(Model::placeholder()), Vec::new());
    let decoder = || BodyDecoder::new(server.clone(), adapter.decoder(&request, server.clone()));
    let mut count = 0;
    for (folder, ending) in FOLDERS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data").join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(ending) && MARKS.iter().copied().find(|mark| name.contains(mark)) == mark {
                laws::check_body(name, &fs::read(&path).unwrap(), decoder);
                count += 1;
            }
        }
    }
    assert!(count > 5, "{count} bodies of {mark:?}");
}

#[test]
fn bodies_of_chat_completions() {
    check(&OpenAiCompletions, None);
}

#[test]
fn bodies_of_the_messages_api() {
    check(&AnthropicMessages, Some("messages-"));
}

#[test]
fn bodies_of_the_responses_api() {
    check(&OpenAiResponses, Some("responses-"));
}

#[test]
fn bodies_of_googles_api() {
    check(&GoogleGenerativeAi { now: || 0 }, Some("google-"));
}

#[test]
fn bodies_of_mistrals_api() {
    check(&MistralConversations, Some("mistral-"));
}

#[test]
fn bodies_of_the_pi_messages_api() {
    check(&PiMessages, Some("pi-messages-"));
}
