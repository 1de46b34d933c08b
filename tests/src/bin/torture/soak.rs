//! Mixed work of good and bad clients for as long as wanted, with a model that fails as models do: the daemon's use of
//! resources stays flat and falls back when all clients have left, and nothing that was answered is lost.
//!
//! `torture soak [--seconds S] [--sessions N] [--clients N] [--pause MS] [--csv FILE] [--svg FILE]`

mod prompt;
mod rude;
mod samples;
mod work;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Random, Service, home};
use serde_json::{Value, json};

use self::{
    prompt::{Pool, Task},
    rude::Manner,
    samples::{Looker, Sample},
    work::Shift,
};
use crate::{
    cli::{self, Options, Outcome},
    model::Model,
    peer::{Peer, Trouble},
    tally::{Tally, end_daemon},
};

/// The idle time before a session is unloaded.
const IDLE: Duration = Duration::from_secs(5);

/// The timeout of the first byte. On a loaded machine, a model that does not hang may need a part of it.
const FIRST_BYTE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 1_000 });

/// The time for the daemon to settle after all clients have left.
const REST: Duration = Duration::from_secs(60);

/// The longest time of `daemon_status`. A debug build on a loaded machine may take longer.
const LOOK: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });

/// The clients that fill the pool at the beginning.
const FILLERS: usize = 8;

/// The flags of the sub-command.
struct Plan {
    seconds: u64,
    sessions: usize,
    clients: usize,
    pause: Duration,
    csv: Option<PathBuf>,
    svg: Option<PathBuf>,
}

impl Plan {
    fn read(options: &mut Options) -> Result<Self, String> {
        let plan = Self {
            seconds: options.value("--seconds")?.unwrap_or(180),
            sessions: options.value("--sessions")?.unwrap_or(1_000).max(100),
            clients: options.value("--clients")?.unwrap_or(50),
            pause: Duration::from_millis(options.value("--pause")?.unwrap_or(200)),
            csv: options.value("--csv")?,
            svg: options.value("--svg")?,
        };
        options.end()?;
        Ok(plan)
    }
}

/// Runs the sub-command.
pub(crate) fn run(options: &mut Options) -> Result<Outcome, String> {
    let plan = Plan::read(options)?;
    let model = Model::start();
    let home = Home::new();
    home.configure(&home::models(&model.base_url()));
    home.settings(&settings());
    home.write("work/.keep", "");
    let service = Service::start(&home, &[]);
    let (tally, pool, begun) = (Tally::default(), Pool::new(plan.sessions, &home.project()), Instant::now());
    let soak =
        Soak { options, plan: &plan, model: &model, service: &service, tally: &tally, pool: &pool, begun };
    let summary = match soak.run() {
        Ok(summary) => summary,
        Err(trouble) => {
            tally.find(&trouble.to_string());
            json!({})
        }
    };
    let (ended, left) = end_daemon(service);
    left.iter().for_each(|text| tally.find(text));
    let mut summary = summary;
    summary["findings"] = json!(tally.findings());
    summary["counts"] = json!(tally.kinds());
    summary["daemonEnd"] = json!(ended);
    Ok(Outcome { held: tally.findings().is_empty(), summary })
}

/// Short times: sessions are unloaded, failed answers are retried, and slow clients are cut off soon.
fn settings() -> Value {
    json!({
        "daemon": {"idleUnloadMs": IDLE.as_millis() as u64, "outboxBytes": 131_072, "lagGraceMs": 300,
                   "maxLineBytes": rude::LONGEST_LINE},
        "retry": {"maxRetries": 2, "baseDelayMs": 20},
        "deadlines": {"firstByteMs": FIRST_BYTE.as_millis() as u64},
        "compaction": {"keepRecentTokens": 200},
    })
}

struct Soak<'a> {
    options: &'a Options,
    plan: &'a Plan,
    model: &'a Model,
    service: &'a Service,
    tally: &'a Tally,
    pool: &'a Pool,
    begun: Instant,
}

impl Soak<'_> {
    fn run(&self) -> Result<Value, Trouble> {
        let mut looker = self.looker()?;
        let before = self.warm_up(&mut looker)?;
        self.say(&format!("before anybody comes: {}", before.json()));
        self.fill()?;
        self.say(&format!("{} sessions are there after {:?}", self.pool.len(), self.begun.elapsed()));
        let samples = self.work(&mut looker);
        self.write(&samples);
        let loaded = self.check_sessions()?;
        let after = self.rest(&mut looker, &before)?;
        self.say(&format!("after everybody has left: {}", after.json()));
        samples::back(&before, &after).iter().for_each(|text| self.tally.find(text));
        let (figures, grown) = samples::flat(&samples, self.plan.seconds);
        grown.iter().for_each(|text| self.tally.find(text));
        let looks = self.tally.looks();
        let slowest = looks.last().copied().unwrap_or_default();
        if slowest > LOOK {
            self.tally.find(&format!("daemon_status took {slowest:?} once"));
        }
        let ms = |time: Duration| (time.as_secs_f64() * 100_000.0).round() / 100.0;
        let (first, last) =
            (samples.first().copied().unwrap_or_default(), samples.last().copied().unwrap_or_default());
        let seconds = (last.at - first.at).max(1.0);
        let each = |of: fn(&Sample) -> f64| ((of(&last) - of(&first)) / seconds * 10.0).round() / 10.0;
        Ok(json!({
            "seconds": self.plan.seconds, "sessions": self.plan.sessions, "clients": self.plan.clients,
            "commands": last.commands, "prompts": last.prompts, "commandsPerSecond": each(|it| it.commands),
            "promptsPerSecond": each(|it| it.prompts), "cpuShare": each(|it| it.cpu), "modelRequests": self.model.requests(),
            "sessionsChecked": loaded, "figures": figures, "before": before.json(), "after": after.json(),
            "daemonStatusMs": {"count": looks.len(), "median": ms(at(&looks, 50)), "p99": ms(at(&looks, 99)), "max": ms(slowest)},
        }))
    }

    fn say(&self, text: &str) {
        cli::line(self.options, text);
    }

    fn looker(&self) -> Result<Looker<'_>, Trouble> {
        Looker::new(self.service.id(), self.service.socket(), self.tally, self.begun)
    }

    fn shift(&self, number: usize) -> Shift<'_> {
        Shift {
            socket: self.service.socket(),
            pool: self.pool,
            tally: self.tally,
            random: Random::part(self.options.seed, number as u64),
            pause: self.plan.pause,
        }
    }

    /// Does everything once that leaves something for good (above all the guard), and returns the sample after it.
    fn warm_up(&self, looker: &mut Looker<'_>) -> Result<Sample, Trouble> {
        let mut peer = Peer::counting(self.service.socket())?;
        let opened =
            peer.done(json!({"type": "open_session", "cwd": self.pool.project(), "ephemeral": true}))?;
        let mut random = Random::part(self.options.seed, u64::MAX);
        let id = opened["sessionId"].as_str().unwrap_or_default().to_owned();
        let mut slot = prompt::Slot { id: id.clone(), answered: Vec::new(), left: 1 };
        prompt::run(&mut peer, &mut slot, &Task::new("tools", 1, &mut random), self.tally)?;
        peer.done(json!({"type": "close_session", "sessionId": id, "mode": "abort"}))?;
        peer.drop_dead();
        self.quiet(looker)
    }

    /// Opens all sessions, with a first answer in each.
    fn fill(&self) -> Result<(), Trouble> {
        let fill = |first: usize| -> Result<(), Trouble> {
            let mut random = Random::part(self.options.seed, 1 << 40 | first as u64);
            let mut peer = Peer::counting(self.service.socket())?;
            for index in (first..self.pool.len()).step_by(FILLERS) {
                let mut held = self.pool.at(index);
                self.pool.open(index, &mut held, &mut peer, &mut random)?;
                let Some(slot) = held.as_mut() else { continue };
                peer.done(json!({"type": "attach_session", "sessionId": slot.id}))?;
                prompt::run(&mut peer, slot, &Task::new("text", 5, &mut random), self.tally)?;
                peer.done(json!({"type": "detach_session", "sessionId": slot.id}))?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let fillers: Vec<_> = (0..FILLERS).map(|first| scope.spawn(move || fill(first))).collect();
            fillers.into_iter().try_for_each(|filler| filler.join().expect("a filler"))
        })
    }

    /// Lets all clients work, and samples meanwhile.
    fn work(&self, looker: &mut Looker<'_>) -> Vec<Sample> {
        let mut samples = Vec::new();
        thread::scope(|scope| {
            for number in 0..self.plan.clients {
                let shift = self.shift(number);
                scope.spawn(move || Manner::of(number).behave(shift));
            }
            let begun = Instant::now();
            let mut next = begun;
            while begun.elapsed() < Duration::from_secs(self.plan.seconds) {
                match looker.look() {
                    Ok(sample) => {
                        if samples.len() % 30 == 0 {
                            self.say(&sample.json().to_string());
                        }
                        samples.push(sample);
                    }
                    Err(trouble) => {
                        self.tally.find(&format!("daemon_status: {trouble}"));
                        break;
                    }
                }
                next += Duration::from_secs(1);
                // Between two samples, measure the time of an answer.
                while Instant::now() + Duration::from_millis(200) < next {
                    thread::sleep(Duration::from_millis(200));
                    let _ = looker.ask();
                }
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            self.tally.end();
        });
        let first = samples.first().map_or(0.0, |it: &Sample| it.at);
        samples.iter_mut().for_each(|it| it.at -= first);
        samples
    }

    /// Opens every session again and checks for everything that was answered.
    fn check_sessions(&self) -> Result<usize, Trouble> {
        let mut peer = Peer::counting(self.service.socket())?;
        let mut checked = 0;
        for index in 0..self.pool.len() {
            let held = self.pool.at(index);
            let Some(slot) = held.as_ref() else { continue };
            match prompt::settle(&mut peer, &slot.id) {
                // It was closed without messages, so it has no file.
                Err(Trouble::Refused(code, _)) if code == "session_not_found" && slot.answered.is_empty() => {
                    continue;
                }
                other => other?,
            }
            let entries = peer.done(json!({"type": "get_entries", "sessionId": slot.id}))?.to_string();
            for done in slot.answered.iter().filter(|done| !entries.contains(*done)) {
                self.tally.find(&format!("the answer \"{done}\" is not in {}", slot.id));
            }
            let diagnostics = peer.done(json!({"type": "get_diagnostics", "sessionId": slot.id}))?;
            let all = diagnostics["diagnostics"].as_array().map_or(&[][..], Vec::as_slice);
            for diagnostic in all.iter().filter(|it| it["level"] == "error" || it["kind"] == "session") {
                self.tally.find(&format!("{}: {diagnostic}", slot.id));
            }
            peer.done(json!({"type": "detach_session", "sessionId": slot.id}))?;
            checked += 1;
        }
        Ok(checked)
    }

    /// Waits until no more is used than before, up to the time limit.
    fn rest(&self, looker: &mut Looker<'_>, before: &Sample) -> Result<Sample, Trouble> {
        let end = Instant::now() + REST;
        loop {
            let sample = self.quiet(looker)?;
            if samples::back(before, &sample).is_empty() || Instant::now() > end {
                return Ok(sample);
            }
        }
    }

    /// Samples a moment later, without connections to the model.
    fn quiet(&self, looker: &mut Looker<'_>) -> Result<Sample, Trouble> {
        self.model.hang_up();
        thread::sleep(Duration::from_secs(1));
        looker.look()
    }

    fn write(&self, samples: &[Sample]) {
        let write = |path: &Path, text: &str| {
            fs::write(path, text).unwrap_or_else(|error| cli::error(&format!("{}: {error}", path.display())));
        };
        if let Some(path) = &self.plan.csv {
            let rows: String = samples.iter().map(|sample| sample.row() + "\n").collect();
            write(path, &format!("{}\n{rows}", Sample::HEADER));
        }
        if let Some(path) = &self.plan.svg {
            let title = format!(
                "{} minutes of mixed work: {} sessions, {} clients",
                self.plan.seconds / 60,
                self.plan.sessions,
                self.plan.clients
            );
            write(path, &samples::svg(&title, samples));
        }
    }
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}
