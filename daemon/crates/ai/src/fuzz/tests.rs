use std::{fs, path::Path};

use proptest::prelude::*;

use super::{
    mutate::{apply, fault},
    *,
};
use crate::{
    ProviderRegistry,
    http::event_stream::{EventStreamParser, Frame, FrameKind},
};

/// A folder below `tests/data`: the names and contents of its files.
fn data(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data").join(folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_file() {
            files.push((path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// All recorded and composed bodies of all APIs.
fn bodies() -> Vec<(String, Vec<u8>)> {
    let mut bodies = [data("captures"), data("composed")].concat();
    bodies.retain(|(name, _)| !name.ends_with(".headers") && !name.ends_with(".md"));
    assert!(bodies.len() > 100);
    bodies
}

#[test]
fn every_api_has_a_target() {
    let registry = ProviderRegistry::builtin();
    let apis: Vec<&str> = registry.apis().filter(|api| *api != "scripted").collect();
    assert_eq!(apis, APIS, "add what is missing to `APIS` and `decode` in ai/src/fuzz.rs");
    let targets: Vec<&str> = LAWS.iter().map(|(target, _)| *target).collect();
    for api in apis {
        assert!(targets.contains(&&*api.replace('-', "_")), "add {api} to `LAWS` in ai/src/fuzz.rs");
    }
}

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}

/// Servers answer with the wrong API when an address is wrong.
#[test]
fn every_body_is_read_by_every_api() {
    for (name, body) in bodies() {
        for &api in APIS {
            let caught = std::panic::catch_unwind(|| answer(api, &body));
            assert!(caught.is_ok(), "{name} read as {api}");
        }
        events(&body);
    }
}

/// More cases than usual, since there are many faults. `PROPTEST_CASES` can raise the number further.
fn many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(1000), ..usual }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn faulty_bodies_keep_the_laws(
        which in any::<prop::sample::Index>(),
        api in prop::option::weighted(0.2, prop::sample::select(APIS)),
        faults in prop::collection::vec(fault(), 1..6),
    ) {
        let bodies = BODIES.get_or_init(bodies);
        let (name, body) = &bodies[which.index(bodies.len())];
        let mut body = body.clone();
        for fault in &faults {
            body = apply(fault, &body, bodies);
        }
        // Usually decoded as the API that it came from.
        answer(api.unwrap_or_else(|| api_of(name)), &body);
    }

    #[test]
    fn faulty_payloads_of_whole_frames_keep_the_laws(
        which in any::<prop::sample::Index>(),
        faults in prop::collection::vec(fault(), 1..6),
    ) {
        let bodies = BODIES.get_or_init(bodies);
        let framed_bodies: Vec<&[u8]> = bodies
            .iter()
            .filter(|(name, body)| name.contains("bedrock-") && body.first() == Some(&0))
            .map(|(_, body)| &body[..])
            .collect();
        let mut lines = lines_of(framed_bodies[which.index(framed_bodies.len())]);
        for fault in &faults {
            lines = apply(fault, &lines, bodies);
        }
        answer("bedrock-converse-stream", &framed(&lines));
    }

    #[test]
    fn recorded_bodies_may_be_cut_anywhere(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let bodies = BODIES.get_or_init(bodies);
        let (name, body) = &bodies[which.index(bodies.len())];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
        let api = api_of(name);
        prop_assert_eq!(settled(decode(api, &pieces)), settled(decode(api, &[body])));
    }

    #[test]
    fn faulty_arguments_are_read(
        text in "[{\\[\"]{0,2}([a-c\":,{}\\[\\]\\\\u0-9dDeE.+\\-\u{1}é😀\n `]|null|true|\\\\ud83d){0,40}",
    ) {
        arguments(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_a_stream(stream in prop::collection::vec(prop_oneof![
        Just(b"data: ".to_vec()), Just(b"event: ".to_vec()), Just(b"\n".to_vec()), Just(b"\r".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()), Just(vec![b'x'; 100]), prop::collection::vec(any::<u8>(), 0..5),
    ], 0..30)) {
        events(&stream.concat());
    }
}

/// The lines from which [`framed`] makes such a body.
fn lines_of(body: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut take = |frame: Frame<'_>| {
        let mark = if frame.kind == FrameKind::Exception { "!" } else { "" };
        lines.extend_from_slice(format!("{mark}{} ", frame.name).as_bytes());
        lines.extend_from_slice(frame.payload);
        lines.push(b'\n');
    };
    EventStreamParser::default().feed(body, &mut take).unwrap();
    lines
}

#[test]
fn frames_are_what_their_lines_say() {
    let lines = b"messageStart {\"role\":\"assistant\"}\n!throttlingException {\"message\":\"Slow\"}\n";
    let framed = framed(lines);
    let mut trimmed = lines_of(&framed);
    // The space between name and payload is the payload's first byte.
    trimmed.retain(|byte| *byte != b' ');
    assert_eq!(trimmed, lines.iter().copied().filter(|byte| *byte != b' ').collect::<Vec<_>>());
    let deltas = decode("bedrock-converse-stream", &[&framed]);
    assert!(
        matches!(deltas.last(), Some(Delta::Failed { failure, .. }) if failure.message.contains("Slow")),
        "{deltas:?}"
    );
}

static BODIES: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();

/// The API of a body, by its name.
fn api_of(name: &str) -> &'static str {
    let marks = [
        ("pi-messages-", "pi-messages"),
        ("messages-", "anthropic-messages"),
        ("responses-", "openai-responses"),
        ("google-", "google-generative-ai"),
        ("bedrock-", "bedrock-converse-stream"),
        ("mistral-", "mistral-conversations"),
    ];
    let (_, api) = marks.iter().find(|(mark, _)| name.contains(mark)).unwrap_or(&("", "openai-completions"));
    // A body of an API without an adapter serves as noise for another.
    APIS.iter().find(|known| *known == api).copied().unwrap_or("openai-completions")
}
