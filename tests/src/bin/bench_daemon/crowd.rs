//! Many sessions in memory, many of them at work at once, each with clients that follow.

use std::{fs, time::Instant};

use agentd_e2e::{Home, MockServer, Reply, Service, sse, usage};
use serde_json::{Value, json};

use crate::{Scale, readers, report::Report};

/// Clients of each session at work.
const FOLLOWERS: usize = 2;

const WORDS: &str = "a word or two ";

pub(crate) fn run(scale: Scale, report: &mut Report) {
    let (sessions, streaming, deltas) = (scale.of(1_000, 30), scale.of(100, 5), scale.of(1_000, 100));
    let piece = sse::text(WORDS);
    let server = MockServer::always(
        Reply::stream("")
            .live(move |pieces| (0..deltas).try_for_each(|_| pieces.send(piece.as_bytes())))
            .then(sse::end("stop", (1, 0, 1))),
    );
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut host = service.client();
    let begun = Instant::now();
    let open = json!({"type": "open_session", "cwd": home.project(), "attach": false});
    let ids: Vec<Value> = (0..sessions).map(|_| host.done(open.clone())["sessionId"].clone()).collect();
    report.time(&format!("opening {sessions} sessions"), begun.elapsed());
    let at_work = &ids[..streaming];
    let followed = at_work.iter().flat_map(|id| std::iter::repeat_n(id, FOLLOWERS));
    let streams: Vec<_> = followed.map(|id| readers::attach(&service, id)).collect();
    let clients = streams.len();
    let reading: Vec<_> = streams.into_iter().map(readers::until_settled).collect();
    let (before, begun) = (usage::of(service.id()), Instant::now());
    for id in at_work {
        host.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    }
    let all: Vec<Vec<u8>> = reading.into_iter().map(|reader| reader.join().expect("a reader")).collect();
    let (wall, after) = (begun.elapsed(), usage::of(service.id()));

    // What clients were told is what the deltas add up to, and what stands in the file.
    let files = home.session_files();
    assert_eq!(files.len(), streaming, "a file for each session that was used");
    let stored: Vec<String> = files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).expect("a session file");
            let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("an entry");
            last["message"]["content"][0]["text"].as_str().expect("a text").to_owned()
        })
        .collect();
    let whole = WORDS.repeat(deltas);
    assert!(stored.iter().all(|text| *text == whole), "a file that is not whole");
    for all in &all {
        assert_eq!(readers::check(all), (whole.clone(), whole.clone()));
    }
    let name = format!("{streaming} of {sessions} sessions at work, {clients} clients");
    report.time(&format!("{name}: wall"), wall);
    report.time(&format!("{name}: daemon, CPU"), after.cpu.saturating_sub(before.cpu));
    report.bytes(&format!("{name}: peak RSS"), after.peak);
}
