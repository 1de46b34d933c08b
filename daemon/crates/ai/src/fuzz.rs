//! The laws of the parsers for any input: for fuzz targets (`fuzz/` in the repository) and for tests with known and mutated inputs. Only
//! with the feature `fuzzing`; not part of the interface.
//!
//! Each function takes any bytes and panics if a law is broken.

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;
mod sum;

use std::sync::Arc;

use agentd_http::Secret;
use agentd_protocol::model::Model;
use reqwest::Url;

use crate::{
    BlockKind, Delta, Request,
    failure::{Evidence, Failure, classify},
    http::{Adapter, AwsError, BodyDecoder, ErrorBody, Redactor, Server, laws::check_order, sse::SseParser},
    lenient, partial_json,
    providers::{
        anthropic_messages::AnthropicMessages,
        azure_openai::AzureOpenAi,
        bedrock_converse::BedrockConverse,
        google::{GoogleGenerativeAi, GoogleVertex},
        mistral_conversations::MistralConversations,
        openai_codex::OpenAiCodex,
        openai_completions::OpenAiCompletions,
        openai_responses::OpenAiResponses,
        pi_messages::PiMessages,
    },
    record_replay,
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[
    ("anthropic_messages", |body| answer("anthropic-messages", body)),
    ("azure_openai_responses", |body| answer("azure-openai-responses", body)),
    ("bedrock_converse_stream", |body| answer("bedrock-converse-stream", body)),
    ("google_generative_ai", |body| answer("google-generative-ai", body)),
    ("google_vertex", |body| answer("google-vertex", body)),
    ("mistral_conversations", |body| answer("mistral-conversations", body)),
    ("openai_codex_responses", |body| answer("openai-codex-responses", body)),
    ("openai_completions", |body| answer("openai-completions", body)),
    ("openai_responses", |body| answer("openai-responses", body)),
    ("pi_messages", |body| answer("pi-messages", body)),
    ("bedrock_payloads", |lines| answer("bedrock-converse-stream", &framed(lines))),
    ("events", events),
    ("arguments", arguments),
    ("refusals", refusals),
    ("recordings", recordings),
];

/// The provider APIs whose answers [`answer`] decodes.
pub const APIS: &[&str] = &[
    "anthropic-messages",
    "azure-openai-responses",
    "bedrock-converse-stream",
    "google-generative-ai",
    "google-vertex",
    "mistral-conversations",
    "openai-codex-responses",
    "openai-completions",
    "openai-responses",
    "pi-messages",
];

/// The size limit of events in [`events`], in bytes: small, so that inputs reach it.
const SMALL_EVENT_BYTES: usize = 256;

/// The deltas of an answer of `api` that comes in these pieces and then ends.
///
/// # Panics
/// For a name that is not in [`APIS`].
#[must_use]
pub fn decode(api: &str, pieces: &[&[u8]]) -> Vec<Delta> {
    match api {
        "anthropic-messages" => decode_with(&AnthropicMessages, api, pieces),
        "bedrock-converse-stream" => decode_with(&BedrockConverse, api, pieces),
        "azure-openai-responses" => decode_with(&AzureOpenAi, api, pieces),
        "openai-codex-responses" => decode_with(&OpenAiCodex, api, pieces),
        "google-generative-ai" => decode_with(&GoogleGenerativeAi { now: || 0 }, api, pieces),
        "google-vertex" => decode_with(&GoogleVertex { now: || 0 }, api, pieces),
        "mistral-conversations" => decode_with(&MistralConversations, api, pieces),
        "openai-completions" => decode_with(&OpenAiCompletions, api, pieces),
        "openai-responses" => decode_with(&OpenAiResponses, api, pieces),
        "pi-messages" => decode_with(&PiMessages, api, pieces),
        _ => panic!("no such API: {api}"),
    }
}

/// The body of an answer of `api` decodes without a panic into deltas of a legal order, which are the same however the body is cut, and
/// which add up to the accumulator's message.
pub fn answer(api: &str, body: &[u8]) {
    let whole = settled(decode(api, &[body]));
    check_order(api, &whole);
    let odd = body.len() % 17 + 2;
    for size in [1, odd] {
        let pieces: Vec<&[u8]> = body.chunks(size).collect();
        assert_eq!(settled(decode(api, &pieces)), whole, "{api}, in pieces of {size} bytes");
    }
    sum::check(&whole);
}

/// Frames of AWS event streams with correct checksums, one for each line `NAME JSON`, or `!NAME JSON` for an exception.
#[must_use]
pub fn framed(lines: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (name, payload) = line.split_at(space);
        let name = String::from_utf8_lossy(name);
        let (kind, name) = match name.strip_prefix('!') {
            Some(name) => ("exception", name),
            None => ("event", &*name),
        };
        let mut headers = Vec::new();
        for (header, value) in [(":message-type", kind), (&*format!(":{kind}-type"), name)] {
            let value = &value.as_bytes()[..value.len().min(usize::from(u16::MAX))];
            headers.push(u8::try_from(header.len()).unwrap_or_default());
            headers.extend_from_slice(header.as_bytes());
            headers.push(7);
            headers.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
            headers.extend_from_slice(value);
        }
        let start = out.len();
        for length in [16 + headers.len() + payload.len(), headers.len()] {
            out.extend_from_slice(&u32::try_from(length).unwrap_or_default().to_be_bytes());
        }
        out.extend_from_slice(&crc32fast::hash(&out[start..]).to_be_bytes());
        out.extend_from_slice(&headers);
        out.extend_from_slice(payload);
        out.extend_from_slice(&crc32fast::hash(&out[start..]).to_be_bytes());
    }
    out
}

/// Server-sent events are the same however the stream is cut, and none exceeds the limit.
pub fn events(stream: &[u8]) {
    for limit in [SMALL_EVENT_BYTES, stream.len() + 1] {
        let read = |size: usize| {
            let mut parser = SseParser::with_limit(limit);
            let mut events = Vec::new();
            let mut take = |name: &str, data: &str| events.push((name.to_owned(), data.to_owned()));
            for piece in stream.chunks(size.max(1)) {
                if parser.feed(piece, &mut take).is_err() {
                    return None;
                }
            }
            parser.finish(&mut take);
            Some(events)
        };
        let whole = read(stream.len());
        assert!(whole.is_some() || limit == SMALL_EVENT_BYTES, "a limit above the stream's length");
        for size in [1, stream.len() % 17 + 2] {
            assert_eq!(read(size), whole, "in pieces of {size} bytes with the limit {limit}");
        }
    }
}

/// Tool arguments can be read wherever they break off. Valid JSON is taken unchanged.
pub fn arguments(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let read = partial_json::parse_arguments(&text);
    if let Ok(serde_json::Value::Object(exact)) = serde_json::from_str(&text) {
        let mut exact = exact;
        agentd_protocol::number::normalize_map(&mut exact);
        assert_eq!(read.as_ref(), Ok(&exact), "valid JSON is mended");
    }
    if let Ok(map) = &read {
        // The arguments serialise to JSON that reads as the same.
        let again = serde_json::to_string(map).unwrap_or_default();
        assert_eq!(partial_json::parse_arguments(&again).as_ref(), Ok(map), "{again}");
        if !text.trim().is_empty() && text.trim().starts_with('{') {
            assert_eq!(&partial_json::best_reading(&text), map, "complete arguments have one reading");
        }
    }
    // Prefixes near the end, and some before.
    let step = text.len() / 64 + 1;
    for (at, _) in text.char_indices().filter(|(at, _)| at % step == 0 || at + 8 > text.len()) {
        let _ = partial_json::best_reading(&text[..at]);
    }
    let _ = partial_json::read_string(&text);
    let quoted = serde_json::to_string(&*text).unwrap_or_default();
    assert_eq!(lenient::string::<serde_json::Error>(&quoted).ok().as_deref(), Some(&*text));
}

fn decode_with<A: Adapter>(adapter: &A, api: &str, pieces: &[&[u8]]) -> Vec<Delta> {
    #[expect(clippy::unwrap_used, reason = "a constant that is a URL")]
    let url = Url::parse("http://host:1/v1").unwrap();
    let server = Server::new(&url, "p".into(), Redactor::default());
    let model = Model { api: api.into(), ..Model::placeholder() };
    let request = Request::new(Arc::new(model), Vec::new());
    let mut decoder = BodyDecoder::new(server.clone(), adapter.decoder(&request, server));
    let mut deltas = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut deltas);
    }
    if !decoder.is_finished() {
        decoder.end(&mut deltas);
    }
    assert!(decoder.is_finished(), "{api}: an answer without an end");
    deltas
}

/// The deltas with the same id for all calls that got a random one.
fn settled(mut deltas: Vec<Delta>) -> Vec<Delta> {
    for delta in &mut deltas {
        if let Delta::Open { kind: BlockKind::ToolCall { id, .. }, .. } = delta
            && id
                .strip_prefix("call_")
                .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            *id = "call_random".into();
        }
    }
    deltas
}

/// The longest message, in characters: the kept part of a text, and the words around it.
const MOST_SAID: usize = 4200;

/// The body of a refusal becomes a message of bounded length without the key, and its kind does not depend on case. The first line is the
/// status, the rest is the body, in which FF stands for the key.
pub fn refusals(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (status, body) = input.split_at(at);
    let status = std::str::from_utf8(status).ok().and_then(|status| status.trim().parse().ok());
    let key = "sk-4711-hush";
    let body: Vec<u8> = body.split(|byte| *byte == 0xff).collect::<Vec<_>>().join(key.as_bytes());
    let body = String::from_utf8_lossy(&body);
    #[expect(clippy::unwrap_used, reason = "a constant that is a URL")]
    let url = Url::parse("http://host:1/v1").unwrap();
    let server = Server::new(&url, "p".into(), Redactor::default().and([Secret::new(key)]));
    let said = |failure: &Failure| {
        assert!(!failure.message.contains(key), "{}", failure.message);
        assert!(failure.message.chars().count() <= MOST_SAID, "{} characters", failure.message.len());
    };
    said(&server.refusal(status, &ErrorBody::read(&body)));
    if let Some(error) = AwsError::in_body(&body) {
        let _ = error.is_of_time();
        said(&server.aws_refusal(status, &error));
    }
    let meaning = |text: &str| classify(&Evidence { provider: "p", status, error_type: None, text });
    assert_eq!(meaning(&body.to_ascii_uppercase()), meaning(&body.to_ascii_lowercase()), "in any case");
}

/// A line of a recording is refused or survives a round trip, as do any bytes of a body.
pub fn recordings(input: &[u8]) {
    for line in String::from_utf8_lossy(input).lines() {
        record_replay::fuzz::line(line);
    }
    record_replay::fuzz::chunk(input);
}

#[cfg(test)]
mod mutate;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod work;
