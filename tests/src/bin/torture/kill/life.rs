//! The life of a home: rounds that end with a kill, and an end as it should be.

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Random, processes};
use rustix::process::Signal;
use serde_json::json;

use super::{
    check,
    client::{Client, LineCount},
    daemon::{self, Daemon, Held, Mode, Moment, Plan, Started},
    load::{self, Stage},
    model_server::{EDITED, Model},
    record,
    shared::{Shared, Violation},
};

/// The time that processes may outlive their daemon.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// The additional time on a loaded machine.
const BUSY: Duration = Duration::from_secs(9);

/// The clients of a round beside the checking one.
const CLIENTS: u64 = 2;

/// Runs one life.
pub(crate) fn live(shared: &Shared, model: &Model, number: u64) {
    let mut random = Random::part(shared.seed, number);
    model.begin(Random::part(random.bits(), 0));
    let home = new_home(model, &mut random);
    let mut life = Life {
        shared,
        model,
        home: &home,
        record: record::Acknowledged::default(),
        left: Vec::new(),
        is_swept: true,
    };
    let rounds = usize::try_from(random.below(1..11)).expect("a small number");
    let mut is_fine = true;
    for round in 0..rounds {
        if shared.kills.load(Ordering::Relaxed) >= shared.wanted {
            break;
        }
        let plan = daemon::plan(&mut random, round, &shared.points);
        let violations = life.round(&plan, &format!("r{round}"));
        shared.report(number, round, &format!("{} {plan:?}", home.root().display()), &violations);
        if !violations.is_empty() {
            is_fine = false;
            break;
        }
    }
    if is_fine {
        let violations = life.end(&mut random);
        shared.report(number, rounds, &format!("{} the end", home.root().display()), &violations);
        is_fine = violations.is_empty();
    }
    daemon::clean_up(&home, model.token());
    if !is_fine && shared.keep {
        std::mem::forget(home);
    }
}

fn new_home(model: &Model, random: &mut Random) -> Home {
    let home = Home::new();
    let models = |id: &str| json!({"id": id, "contextWindow": 100_000, "maxTokens": 1000});
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [models("fake"), models("other")],
    }}}));
    home.settings(&json!({
        "retry": {"baseDelayMs": 1, "maxRetries": 2},
        "compaction": {"keepRecentTokens": 1, "reserveTokens": 200},
        "bash": {"background": true},
        "storage": {"maxArtifactBytes": if random.chance(30) { 150_000 } else { 10_000_000 }},
        "durability": if random.chance(50) { "fsync" } else { "os" },
    }));
    home.write(EDITED.0, EDITED.1);
    // The project asks for trust.
    home.write(".pi/settings.json", "{}");
    home
}

/// The cause of a daemon's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    /// It died at a fail point, or of a fault.
    ByItself,
    /// The harness killed it.
    Alone,
    /// The harness killed it together with its guard and all supervisors.
    WithGuard,
}

struct Life<'a> {
    shared: &'a Shared,
    model: &'a Model,
    home: &'a Home,
    record: record::Acknowledged,
    /// Processes of a daemon that was killed together with its guard.
    left: Vec<Held>,
    /// A daemon was started after one was killed with its guard.
    is_swept: bool,
}

impl Life<'_> {
    /// One round.
    fn round(&mut self, plan: &Plan, name: &str) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.model.stream_slowly(plan.is_slow);
        let armed = match &plan.moment {
            Moment::Point { armed, .. } => Some(armed.as_str()),
            _ => None,
        };
        self.shared.kills.fetch_add(1, Ordering::Relaxed);
        self.record.kills += 1;
        if armed.is_some_and(|armed| armed.starts_with("trust.")) {
            // Makes the daemon ask for trust again. A missing file is fine.
            let _ = fs::remove_file(self.home.agent_dir().join("trust.json"));
        }
        if armed.is_some_and(|armed| armed.starts_with("store.re") || armed.starts_with("store.link")) {
            self.old_session(name);
        }
        let mut daemon = Daemon::spawn(self.home, plan.mode, armed);
        if let Moment::Start(pause) = plan.moment {
            thread::sleep(pause);
            daemon.kill();
            self.after_kill(false, Vec::new(), &mut violations);
            return violations;
        }
        let mut heard = Vec::new();
        let mut random = Random::new(plan.seed);
        let mut killed = Killed::ByItself;
        let begun = Instant::now();
        let mut daemon = match daemon.up(self.home) {
            Started::Up(mut up) => {
                self.shared.counts.add("milliseconds of starts", millis(begun));
                killed = self.work(&mut up, plan, name, &mut random, &mut heard, &mut violations);
                up
            }
            Started::Died(died) => died,
            Started::Refused(why) => {
                violations.push(Violation { promise: "the daemon starts", seen: why });
                return violations;
            }
        };
        daemon.kill();
        if killed == Killed::ByItself {
            match &plan.moment {
                Moment::Point { name, .. } => self.shared.points.died(name),
                _ => violations.push(Violation {
                    promise: "the daemon lives until it is killed",
                    seen: daemon::stderr(self.home),
                }),
            }
        }
        let clients = heard.into_iter().map(Client::end).collect();
        self.after_kill(killed == Killed::WithGuard, clients, &mut violations);
        violations
    }

    /// A session of an old version, which is converted when it is opened.
    fn old_session(&self, name: &str) {
        let folder = self.home.agent_dir().join("sessions/--old--");
        fs::create_dir_all(&folder).expect("a folder for a session");
        let header = json!({"type": "session", "id": format!("old-{name}"), "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": self.home.project()});
        let message = json!({"type": "message", "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": "x", "timestamp": 1}});
        let path = folder.join(format!("2026_old-{name}.jsonl"));
        fs::write(path, format!("{header}\n{message}\n")).expect("a session file");
    }

    /// Checks, and works until the moment of death.
    fn work(
        &mut self,
        daemon: &mut Daemon,
        plan: &Plan,
        name: &str,
        random: &mut Random,
        heard: &mut Vec<Client>,
        violations: &mut Vec<Violation>,
    ) -> Killed {
        let told = Arc::new(LineCount::default());
        let Some(mut looking) = Client::connect(daemon, "l", &told) else { return Killed::ByItself };
        let begun = Instant::now();
        self.model.answer_at_once(true);
        let looked =
            check::look(self.home, &mut looking, &mut self.record, random, &self.shared.counts, false);
        self.model.answer_at_once(false);
        self.shared.counts.add("milliseconds of looks", millis(begun));
        violations.extend(looked.violations);
        if !looked.is_complete {
            // A daemon that dies during a command closes the connection a moment after it stops reading.
            if !looking.closes_within(BUSY) {
                violations.push(Violation {
                    promise: "every question is answered",
                    seen: daemon::stderr(self.home),
                });
            }
            heard.push(looking);
            return Killed::ByItself;
        }
        self.gone_by_now(violations);
        let stage = Stage {
            project: self.home.project(),
            open: Mutex::new(looked.open),
            focus: match &plan.moment {
                Moment::Point { name, .. } => name.split('.').next().map(str::to_owned),
                _ => None,
            },
            token: self.model.token().to_owned(),
            prefix: name.to_owned(),
            over: AtomicBool::new(false),
        };
        let mut clients = vec![looking];
        if plan.mode == Mode::Serve {
            clients.extend(
                (0..CLIENTS).filter_map(|number| Client::connect(daemon, &format!("c{number}"), &told)),
            );
        }
        let first = told.count();
        let seeds: Vec<u64> = clients.iter().map(|_| random.bits()).collect();
        let mut killed = Killed::ByItself;
        thread::scope(|scope| {
            for (number, (client, seed)) in clients.iter_mut().zip(seeds).enumerate() {
                let stage = &stage;
                scope.spawn(move || {
                    load::drive(client, stage, Random::new(seed), &format!("c{number}x"));
                });
            }
            let end = Instant::now() + plan.load;
            loop {
                let due = match &plan.moment {
                    Moment::Lines(lines, _) => told.count() >= first + lines,
                    _ => false,
                };
                if due || Instant::now() >= end || daemon.is_dead() {
                    break;
                }
                thread::sleep(Duration::from_micros(300));
            }
            if let Moment::Lines(_, pause) = plan.moment {
                thread::sleep(pause);
            }
            if !daemon.is_dead() {
                killed = if plan.with_guard { Killed::WithGuard } else { Killed::Alone };
                if plan.with_guard {
                    daemon::kill_with_guard(daemon.child.id());
                }
                daemon.kill();
            }
            stage.over.store(true, Ordering::Relaxed);
        });
        heard.extend(clients);
        killed
    }

    /// Checks that no process is left and nothing is lost.
    fn after_kill(&mut self, with_guard: bool, clients: Vec<record::Heard>, violations: &mut Vec<Violation>) {
        if with_guard {
            self.is_swept = false;
            self.left.extend(daemon::processes_of(self.home, self.model.token()));
            self.shared.counts.add("kills together with the guard and all supervisors", 1);
        } else if self.is_swept {
            let begun = Instant::now();
            let left = daemon::wait_for_none(self.home, self.model.token(), AFTERLIFE + BUSY);
            if begun.elapsed() > AFTERLIFE {
                self.shared.counts.add("processes that lived for more than a second", 1);
            }
            self.shared.counts.add("milliseconds until no process lived", millis(begun));
            if !left.is_empty() {
                violations.push(Violation { promise: "no process lives on", seen: left.join(", ") });
            }
        }
        violations.extend(self.record.take(clients));
        violations.extend(self.model.complaints());
        let begun = Instant::now();
        violations.extend(check::disk(self.home, &mut self.record, &self.shared.counts));
        self.shared.counts.add("milliseconds of checks", millis(begun));
    }

    /// Checks that processes of a daemon that was killed with its guard end soon after the next start.
    fn gone_by_now(&mut self, violations: &mut Vec<Violation>) {
        self.is_swept = true;
        let left = daemon::still_there(&std::mem::take(&mut self.left), AFTERLIFE + BUSY);
        if !left.is_empty() {
            violations.push(Violation { promise: "the next start ends what is left", seen: left.join(", ") });
        }
    }

    /// The last daemon of the home opens everything, and ends on request.
    fn end(&mut self, random: &mut Random) -> Vec<Violation> {
        let mut violations = Vec::new();
        let told = Arc::new(LineCount::default());
        let dead = notes(self.home);
        let mut daemon = match Daemon::spawn(self.home, Mode::Serve, None).up(self.home) {
            Started::Up(daemon) => daemon,
            Started::Died(_) => {
                return vec![Violation { promise: "the daemon starts", seen: daemon::stderr(self.home) }];
            }
            Started::Refused(seen) => return vec![Violation { promise: "the daemon starts", seen }],
        };
        let Some(mut client) = Client::connect(&mut daemon, "e", &told) else {
            return vec![Violation { promise: "the daemon starts", seen: "it takes no client".to_owned() }];
        };
        self.model.answer_at_once(true);
        let looked = check::look(self.home, &mut client, &mut self.record, random, &self.shared.counts, true);
        self.model.answer_at_once(false);
        violations.extend(looked.violations);
        if !looked.is_complete {
            let seen = daemon::stderr(self.home);
            violations.push(Violation { promise: "every question is answered", seen });
        }
        self.gone_by_now(&mut violations);
        // This happens during the start.
        let end = Instant::now() + AFTERLIFE + BUSY;
        while notes(self.home).iter().any(|note| dead.contains(note)) {
            if Instant::now() > end {
                violations
                    .push(Violation { promise: "no note of a dead daemon stays", seen: dead.join(", ") });
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        processes::signal(daemon.child.id(), Signal::TERM);
        let heard = client.end();
        let status = daemon.child.wait().expect("the status of a child");
        if status.code() != Some(0) {
            violations.push(Violation { promise: "the daemon ends as it should", seen: status.to_string() });
        }
        self.after_kill(false, vec![heard], &mut violations);
        let own = notes(self.home);
        if !own.is_empty() {
            violations.push(Violation { promise: "no note of a daemon stays", seen: own.join(", ") });
        }
        violations
    }
}

/// The notes of the home's daemons about their processes.
fn notes(home: &Home) -> Vec<String> {
    let notes = fs::read_dir(home.agent_dir().join("run/owners")).into_iter().flatten().flatten();
    notes.map(|entry| entry.path().display().to_string()).collect()
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
