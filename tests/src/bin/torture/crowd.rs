//! Many clients in a few sessions: they open, leave, end, delete, copy and change sessions that others use, while sessions
//! are unloaded and evicted at once. Every command has a response, acknowledged messages are stored, and nothing is left
//! at the end.
//!
//! `torture crowd [--seconds S] [--clients N] [--sessions N]`

mod guest;

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Random, Service, home};
use serde_json::{Value, json};

use self::guest::{Guest, KnownSessions};
use crate::{
    cli::{self, Options, Outcome},
    model::Model,
    peer::{Peer, Trouble},
    tally::{Tally, end_daemon},
};

/// The time for the daemon to settle after all clients have left.
const SETTLE_TIME: Duration = Duration::from_secs(30);

/// Runs the sub-command.
pub(crate) fn run(options: &mut Options) -> Result<Outcome, String> {
    let seconds: u64 = options.value("--seconds")?.unwrap_or(60);
    let clients: usize = options.value("--clients")?.unwrap_or(16);
    let sessions: usize = options.value("--sessions")?.unwrap_or(6).max(2);
    options.end()?;
    let model = Model::start();
    let home = Home::new();
    home.configure(&home::models(&model.base_url()));
    // Sessions are unloaded at once, and some are evicted.
    home.settings(&json!({"daemon": {"idleUnloadMs": 1, "maxSessions": 2 * clients + sessions}}));
    let service = Service::start(&home, &[]);
    let (tally, place) = (Tally::default(), KnownSessions::new(sessions, &home.project()));
    let begun = Instant::now();
    let guests = (0..clients).map(|number| Guest {
        socket: service.socket(),
        place: &place,
        tally: &tally,
        random: Random::part(options.seed, number as u64),
        number,
    });
    thread::scope(|scope| {
        guests.for_each(|guest| drop(scope.spawn(|| guest.stay())));
        thread::sleep(Duration::from_secs(seconds));
        tally.end();
    });
    cli::line(options, &format!("all clients have left after {:?}", begun.elapsed()));
    if let Err(trouble) = settle(&service, &tally) {
        tally.find(&trouble.to_string());
    }
    let (ended, left) = end_daemon(service);
    left.iter().for_each(|text| tally.find(text));
    let checked = check(&place, &tally);
    let summary = json!({
        "seconds": seconds, "clients": clients, "sessions": sessions, "counts": tally.kinds(), "filesChecked": checked.0,
        "messagesChecked": checked.1, "findings": tally.findings(), "daemonEnd": ended,
    });
    Ok(Outcome { held: tally.findings().is_empty(), summary })
}

/// Waits until nothing works and every session is unloaded.
fn settle(service: &Service, tally: &Tally) -> Result<(), Trouble> {
    let mut peer = Peer::counting(service.socket())?;
    let end = Instant::now() + SETTLE_TIME;
    let live = |peer: &mut Peer| -> Result<Vec<String>, Trouble> {
        let listed = peer.done(json!({"type": "list_sessions", "live": true}))?["sessions"].take();
        let ids = listed.as_array().into_iter().flatten().filter_map(|session| session["id"].as_str());
        Ok(ids.map(str::to_owned).collect())
    };
    loop {
        // A session with queued messages is not unloaded. Commands of clients that left without waiting may be read only
        // now.
        for id in live(&mut peer)? {
            match peer.done(json!({"type": "clear_queue", "sessionId": id})) {
                Err(Trouble::Refused(..)) => tally.note("gone meanwhile"),
                cleared => drop(cleared?),
            }
        }
        let status = peer.done(json!({"type": "daemon_status"}))?;
        if [&status["liveSessions"], &status["runningSessions"]].iter().all(|count| **count == 0)
            && status["clients"] == 1
        {
            // Ended sessions are not counted.
            if status["usage"]["sessions"]["used"] != status["restingSessions"] {
                tally.find(&format!("more sessions are counted than there are: {status}"));
            }
            return Ok(());
        }
        if Instant::now() > end {
            tally.find(&format!("the daemon does not settle: {status}"));
            for id in live(&mut peer)? {
                let state = peer.done(json!({"type": "get_state", "sessionId": id}))?;
                tally.find(&format!("{id} does not leave memory: {state}"));
            }
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Checks that every acknowledged message is once in the file of its session. Returns the number of files and messages.
fn check(place: &KnownSessions, tally: &Tally) -> (usize, usize) {
    let (mut files, mut messages) = (0, 0);
    for (id, file, texts) in place.stored() {
        let content = fs::read_to_string(&file).unwrap_or_default();
        let lines: Vec<Value> =
            content.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        if lines.first().is_none_or(|header| header["id"] != *id) {
            // Another session may have replaced a deleted one.
            if !place.is_doubtful(&id) {
                tally.find(&format!("{} is not there, with {} messages", file.display(), texts.len()));
            }
            continue;
        }
        if lines.iter().any(Value::is_null) || !content.ends_with('\n') {
            tally.find(&format!("{}: a line that is no JSON", file.display()));
        }
        let said = |text: &str| {
            let is_it = |line: &&Value| {
                line["message"]["role"] == "user" && line["message"]["content"].to_string().contains(text)
            };
            lines.iter().filter(is_it).count()
        };
        for text in &texts {
            let count = said(text);
            if count != 1 {
                tally.find(&format!("{}: \"{text}\" is there {count} times", file.display()));
            }
        }
        files += 1;
        messages += texts.len();
    }
    (files, messages)
}
