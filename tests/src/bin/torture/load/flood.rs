//! Floods beside a client that works: its prompt, with a tool call and an answer of thousands of deltas, may take at most
//! twice as long as alone.
//!
//! A flooding client uses processors of the same machine, so there is a control: the same prompt beside threads that only
//! count. A flood may cost twice the slower of both.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Service, home};
use serde_json::{Value, json};

use crate::{
    cli::{self, Options},
    model::Model,
    peer::{Peer, Trouble},
};

/// The settings of all parts.
pub(crate) struct Load<'a> {
    pub(crate) options: &'a Options,
    /// A short run, which checks and does not measure.
    pub(crate) is_short: bool,
}

impl Load<'_> {
    /// Returns `full`, or `short` in a short run.
    pub(crate) fn of(&self, full: usize, short: usize) -> usize {
        if self.is_short { short } else { full }
    }

    pub(crate) fn say(&self, text: &str) {
        cli::line(self.options, text);
    }
}

/// A flood may make a prompt this many times slower.
const MAY_SLOW: f64 = 2.0;

/// Entries of the large session.
const ENTRIES: usize = 5_000;

/// A client that floods until it has to end, and counts its commands.
type Flooder = fn(&Target<'_>, &AtomicBool, &AtomicU64) -> Result<(), Trouble>;

/// Floods: a name, the number of clients, and their action.
const FLOODS: &[(&str, usize, Flooder)] = &[
    ("one client floods its session and does not read", 1, unread),
    ("one client floods its session and reads", 1, pipelined),
    ("one client floods the session of the prompt", 1, same_session),
    ("200 clients ask for the state", 200, ask),
    ("4 clients send nonsense", 4, nonsense),
    ("2 clients send lines without an end", 2, endless),
    ("4 clients open and close sessions", 4, open_and_close),
    ("2 clients list sessions", 2, list),
    ("2 clients read a large session", 2, entries),
];

/// The target of a flood.
struct Target<'a> {
    socket: &'a Path,
    project: PathBuf,
    /// The session of the measured prompt, another one for each flood.
    victim: Mutex<Value>,
    /// A session for the floods only.
    other: Value,
    /// A long session.
    large: Value,
}

pub(crate) fn run(load: &Load<'_>) -> Result<(Value, Vec<String>), Trouble> {
    let model = Model::start();
    let home = Home::new();
    home.configure(&home::models(&model.base_url()));
    home.write("large.jsonl", &large_session(&home, load.of(ENTRIES, ENTRIES / 5)));
    let service = Service::start(&home, &[]);
    let mut peer = Peer::counting(service.socket())?;
    let mut open = |extra: Value| -> Result<Value, Trouble> {
        let mut command = json!({"type": "open_session", "cwd": home.project()});
        extra.as_object().into_iter().flatten().for_each(|(key, value)| command[key] = value.clone());
        Ok(peer.done(command)?["sessionId"].take())
    };
    let large = open(json!({"path": home.project().join("large.jsonl")}))?;
    let other = open(json!({}))?;
    let target =
        Target { socket: service.socket(), project: home.project(), victim: Mutex::default(), other, large };
    for _ in 0..load.of(200, 20) {
        // Sessions for clients that list them.
        let mut peer = Peer::counting(target.socket)?;
        peer.done(json!({"type": "open_session", "cwd": target.project}))?;
        prompt(&mut peer, None, "soak 1 text 5")?;
    }
    let (mut figures, mut findings) = (json!({}), Vec::new());
    // At ten times the speed of any model, and as fast as this machine can.
    for (kind, words) in [("steady", load.of(2_000, 400)), ("work", load.of(5_000, 500))] {
        let measure = Measure { load, target: &target, text: format!("soak 1 {kind} {words}") };
        let (measured, found) = measure.all()?;
        figures[kind] = measured;
        findings.extend(found);
    }
    Ok((figures, findings))
}

struct Measure<'a> {
    load: &'a Load<'a>,
    target: &'a Target<'a>,
    text: String,
}

impl Measure<'_> {
    fn all(&self) -> Result<(Value, Vec<String>), Trouble> {
        let mut findings = Vec::new();
        let (alone, control) = (self.alone()?, self.control()?);
        let mut figures = json!({"prompt": self.text, "aloneMs": ms(alone), "controlMs": ms(control)});
        self.load.say(&format!("{}: alone {alone:?}, control {control:?}", self.text));
        for (name, clients, flooder) in FLOODS {
            let mut best = (f64::MAX, Duration::ZERO, 0.0);
            // A loaded machine gets another chance.
            for attempt in 0..3 {
                let (took, rate) = self.flooded(*clients, *flooder)?;
                let base = if attempt == 0 { alone.max(control) } else { self.alone()?.max(self.control()?) };
                let ratio = took.as_secs_f64() / base.as_secs_f64();
                if ratio < best.0 {
                    best = (ratio, took, rate);
                }
                if best.0 <= MAY_SLOW {
                    break;
                }
            }
            let (ratio, took, rate) = best;
            let to_alone = took.as_secs_f64() / alone.as_secs_f64();
            let round = |value: f64| (value * 100.0).round() / 100.0;
            self.load.say(&format!(
                "  {name}: {took:?}, {to_alone:.2} times alone, {ratio:.2} of what is allowed to be twice; {rate:.0} of them a second"
            ));
            figures[*name] = json!({"ms": ms(took), "toAlone": round(to_alone), "toBase": round(ratio), "perSecond": rate.round()});
            if ratio > MAY_SLOW {
                findings.push(format!("while {name}, a prompt takes {ratio:.2} times as long ({took:?})"));
            }
        }
        Ok((figures, findings))
    }

    fn rounds(&self) -> usize {
        self.load.of(5, 3)
    }

    /// A new session for the prompts, so that earlier messages do not slow later prompts.
    fn victim(&self) -> Result<(Peer, Value), Trouble> {
        let mut peer = Peer::counting(self.target.socket)?;
        let open = json!({"type": "open_session", "cwd": self.target.project});
        let id = peer.done(open)?["sessionId"].take();
        *self.target.victim.lock().unwrap() = id.clone();
        Ok((peer, id))
    }

    fn alone(&self) -> Result<Duration, Trouble> {
        self.prompts(self.victim()?)
    }

    /// The median of some prompts.
    fn prompts(&self, (mut peer, id): (Peer, Value)) -> Result<Duration, Trouble> {
        let mut times = Vec::new();
        for _ in 0..self.rounds() {
            let begun = Instant::now();
            prompt(&mut peer, Some(&id), &self.text)?;
            times.push(begun.elapsed());
        }
        peer.done(json!({"type": "close_session", "sessionId": id}))?;
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    /// The time beside threads that use every processor.
    fn control(&self) -> Result<Duration, Trouble> {
        let over = AtomicBool::new(false);
        let count = thread::available_parallelism().map_or(2, usize::from);
        thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let measured = self.alone();
            over.store(true, Ordering::Relaxed);
            measured
        })
    }

    /// The time beside a flood, and the flood's rate per second.
    fn flooded(&self, clients: usize, flooder: Flooder) -> Result<(Duration, f64), Trouble> {
        let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let victim = self.victim()?;
        thread::scope(|scope| {
            let (over, count) = (&over, &count);
            let all: Vec<_> = (0..clients)
                .map(|_| {
                    thread::Builder::new()
                        .stack_size(256 << 10)
                        .spawn_scoped(scope, move || flooder(self.target, over, count))
                        .expect("a thread")
                })
                .collect();
            let begun = Instant::now();
            let measured = self.prompts(victim);
            #[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
            let rate = count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
            over.store(true, Ordering::Relaxed);
            for flooding in all {
                flooding.join().expect("a client")?;
            }
            Ok((measured?, rate))
        })
    }
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// Prompts the session and waits for the end of the run.
fn prompt(peer: &mut Peer, session: Option<&Value>, text: &str) -> Result<(), Trouble> {
    let mut command = json!({"type": "prompt", "message": text});
    if let Some(session) = session {
        command["sessionId"] = session.clone();
    }
    let asked = peer.send(command)?;
    let (mut error, mut words) = (None, 0_usize);
    peer.until("agent_settled", |line| {
        if line["id"] == asked && line["success"] == false {
            return Err(crate::peer::refusal(&line));
        }
        words += usize::from(line["assistantMessageEvent"]["type"] == "text_delta");
        if line["type"] == "message_end" {
            error = line["message"]["errorMessage"].as_str().map(str::to_owned);
        }
        Ok((line["type"] == "agent_settled").then_some(()))
    })?;
    error.map_or(Ok(()), |error| Err(Trouble::Wrong(format!("the prompt failed: {error}"))))
}

/// Writes `batch` again and again, as far as the daemon reads it.
fn pour(
    target: &Target<'_>,
    batch: &[u8],
    lines: u64,
    reads: bool,
    over: &AtomicBool,
    count: &AtomicU64,
) -> Result<(), Trouble> {
    let io = |error: std::io::Error| Trouble::Closed(error.to_string());
    let peer = Peer::connect(target.socket)?;
    let (mut input, mut output) = (peer.stream().map_err(io)?, peer.stream().map_err(io)?);
    output.set_write_timeout(Some(Duration::from_millis(50))).map_err(io)?;
    let reading = reads.then(|| {
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while matches!(input.read(&mut buffer), Ok(1..)) {}
        })
    });
    let mut from = 0;
    while !over.load(Ordering::Relaxed) {
        match output.write(&batch[from..]) {
            Ok(written) => {
                from += written;
                if from == batch.len() {
                    from = 0;
                    count.fetch_add(lines, Ordering::Relaxed);
                }
            }
            // The socket's buffer is full.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(io(error)),
        }
    }
    peer.drop_dead();
    if let Some(reading) = reading {
        reading.join().expect("a reader");
    }
    Ok(())
}

fn states(session: &Value) -> Vec<u8> {
    format!("{}\n", json!({"type": "get_state", "sessionId": session})).repeat(100).into_bytes()
}

fn unread(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    pour(target, &states(&target.other), 100, false, over, count)
}

fn pipelined(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    pour(target, &states(&target.other), 100, true, over, count)
}

fn same_session(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    pour(target, &states(&target.victim.lock().unwrap().clone()), 100, true, over, count)
}

fn nonsense(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    let batch =
        b"{\"type\":\"fly\"}\n\xFF\xFE\x00 nothing\n[1,2,3\n{\"type\":\"prompt\",\"message\":7}\n".repeat(25);
    pour(target, &batch, 100, true, over, count)
}

fn endless(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    pour(target, &[b'x'; 64 << 10], 1, true, over, count)
}

/// Sends commands one by one, and waits for each.
fn again(
    target: &Target<'_>,
    over: &AtomicBool,
    count: &AtomicU64,
    mut once: impl FnMut(&mut Peer) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut peer = Peer::counting(target.socket)?;
    while !over.load(Ordering::Relaxed) {
        once(&mut peer)?;
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn ask(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    let command = json!({"type": "get_state", "sessionId": target.other});
    again(target, over, count, |peer| peer.done(command.clone()).map(drop))
}

fn open_and_close(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    let open = json!({"type": "open_session", "cwd": target.project});
    again(target, over, count, |peer| {
        let opened = peer.done(open.clone())?;
        peer.done(json!({"type": "close_session", "sessionId": opened["sessionId"]})).map(drop)
    })
}

fn list(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    let command = json!({"type": "list_sessions", "limit": 1000});
    again(target, over, count, |peer| peer.done(command.clone()).map(drop))
}

fn entries(target: &Target<'_>, over: &AtomicBool, count: &AtomicU64) -> Result<(), Trouble> {
    let command = json!({"type": "get_entries", "sessionId": target.large});
    again(target, over, count, |peer| peer.done(command.clone()).map(drop))
}

/// Writes a session file of questions and answers.
fn large_session(home: &Home, entries: usize) -> String {
    let time = "2026-11-21T00:00:00.000Z";
    let header =
        json!({"type": "session", "version": 3, "id": "large", "timestamp": time, "cwd": home.project()});
    let mut text = format!("{header}\n");
    for index in 0..entries {
        let message = json!({"role": "user", "content": format!("Question {index}? {}", "words ".repeat(50)), "timestamp": 1});
        let parent = index.checked_sub(1).map(|parent| format!("{parent:08x}"));
        let entry = json!({"type": "message", "id": format!("{index:08x}"), "parentId": parent, "timestamp": time,
            "message": message});
        text += &format!("{entry}\n");
    }
    text
}
