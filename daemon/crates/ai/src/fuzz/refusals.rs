//! The laws of what servers say when they refuse, and of recordings.

use agentd_http::Secret;
use reqwest::Url;

use crate::{
    failure::{Evidence, Failure, classify},
    http::{AwsError, ErrorBody, Redactor, Server},
    record_replay,
};

/// The longest message, in characters: what is kept of a text, and what stands around it.
const MOST_SAID: usize = 4200;

/// The body of a refusal becomes a message of bounded length without the key in it. What it means does not depend on case. The first
/// line is the status, the rest is the body, in which an FF stands for the key.
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

/// A line of a recording is none, or is written to what reads as the same; any bytes of a body come back.
pub fn recordings(input: &[u8]) {
    for line in String::from_utf8_lossy(input).lines() {
        record_replay::fuzz::line(line);
    }
    record_replay::fuzz::chunk(input);
}
