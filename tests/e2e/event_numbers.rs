//! Event numbers: one sequence for each session id as long as the daemon lives. A client that comes back with a number
//! gets the events that it missed, or a snapshot; never "nothing was missed" when something was.

use std::{
    collections::{BTreeMap, HashMap},
    fs::OpenOptions,
    io::Write as _,
    path::Path,
};

use agentd_e2e::{Home, MockServer, Random, Reply, Service, SocketClient, sse};
use serde_json::{Value, json};

use crate::unload::gone;

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// A daemon that unloads its sessions as soon as they are idle.
fn impatient() -> (Home, Service, MockServer) {
    let server = MockServer::always(Reply::stream(sse::answer("Hi.")));
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    (home, service, server)
}

fn introduced(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

fn watcher(service: &Service) -> SocketClient {
    let mut watcher = introduced(service);
    watcher.done(json!({"type": "watch_sessions"}));
    watcher
}

fn open(client: &mut SocketClient, home: &Home, id: &str) -> Value {
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}))
}

fn attach_since(client: &mut SocketClient, id: &str, epoch: &Value, seq: u64) -> Value {
    let since = json!({"epoch": epoch, "seq": seq});
    client.done(json!({"type": "attach_session", "sessionId": id, "since": since}))
}

/// Appends a session name to the file, as another program would.
fn rename_on_disk(file: &Path, name: &str, number: u64) {
    let text = std::fs::read_to_string(file).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let entry = json!({
        "type": "session_info",
        "id": format!("f{number:07x}"),
        "parentId": last["id"],
        "timestamp": "2026-01-01T00:00:00.000Z",
        "name": name,
    });
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(format!("{entry}\n").as_bytes()).unwrap();
}

fn file_of(client: &mut SocketClient, id: &str) -> Option<String> {
    let listed = client.done(json!({"type": "list_sessions"}));
    let sessions = listed["sessions"].as_array().unwrap();
    let path = sessions.iter().find(|session| session["id"] == id)?["path"].as_str()?;
    Path::new(path).exists().then(|| path.to_owned())
}

#[test]
fn a_closed_session_goes_on_counting_when_it_is_opened_again() {
    let server = MockServer::always(Reply::stream(sse::answer("Hi.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = introduced(&service);
    let first = open(&mut client, &home, "alpha");
    let (epoch, id) = (first["epoch"].clone(), "alpha");
    let last = client.prompt("One.").last().unwrap()["seq"].as_u64().unwrap();
    client.done(json!({"type": "close_session", "sessionId": id}));
    client.event("session_closed");

    let again = open(&mut client, &home, id);
    assert_eq!(again["epoch"], epoch);
    assert!(again["seq"].as_u64().unwrap() > last, "{again}");
    let events = client.prompt("Two.");
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(numbers[0] > last, "{numbers:?}");

    // A client that saw only the session's former life has missed events, and gets a snapshot.
    let mut back = introduced(&service);
    for seq in [1, last - 1, last, numbers[0] - 2] {
        let attached = attach_since(&mut back, id, &epoch, seq);
        assert_eq!(attached["replayed"], json!(false), "since {seq}: {attached}");
        assert_eq!(attached["state"]["messageCount"], json!(5), "since {seq}: {attached}");
    }
    // A number in the future gives a snapshot, too.
    let now = *numbers.last().unwrap();
    for seq in [now + 1, now + 100, u64::MAX] {
        let attached = attach_since(&mut back, id, &epoch, seq);
        assert_eq!((&attached["replayed"], &attached["seq"]), (&json!(false), &json!(now)), "since {seq}");
    }
    let attached = attach_since(&mut back, id, &epoch, numbers[0]);
    assert_eq!((&attached["replayed"], &attached["seq"]), (&json!(true), &json!(numbers[0])));
}

#[test]
fn a_deleted_session_made_anew_goes_on_counting() {
    let (home, service, _server) = impatient();
    let (mut client, mut watcher) = (introduced(&service), watcher(&service));
    let epoch = open(&mut client, &home, "alpha")["epoch"].clone();
    let last = client.prompt("One.").last().unwrap()["seq"].as_u64().unwrap();
    gone(&mut watcher, "alpha");
    client.done(json!({"type": "delete_session", "sessionId": "alpha"}));
    let again = open(&mut client, &home, "alpha");
    assert_eq!(again["messageCount"], json!(0), "{again}");
    assert!(again["seq"].as_u64().unwrap() > last, "{again}");
    let attached = attach_since(&mut watcher, "alpha", &epoch, last);
    assert_eq!(attached["replayed"], json!(false), "{attached}");
}

#[test]
fn a_file_that_another_program_changed_gives_a_snapshot() {
    let (home, service, _server) = impatient();
    let (mut client, mut watcher, mut plain) = (introduced(&service), watcher(&service), service.client());
    let epoch = open(&mut client, &home, "alpha")["epoch"].clone();
    plain.done(json!({"type": "attach_session", "sessionId": "alpha"}));
    let last = client.prompt("One.").last().unwrap()["seq"].as_u64().unwrap();
    gone(&mut watcher, "alpha");
    let file = file_of(&mut watcher, "alpha").expect("a file");

    // An unchanged file means that nothing was missed.
    let mut back = introduced(&service);
    assert_eq!(attach_since(&mut back, "alpha", &epoch, last)["replayed"], json!(true));
    drop(back);
    gone(&mut watcher, "alpha");
    rename_on_disk(Path::new(&file), "from outside", 1);
    let mut back = introduced(&service);
    let attached = attach_since(&mut back, "alpha", &epoch, last);
    assert_eq!(attached["replayed"], json!(false), "{attached}");
    assert_eq!(attached["state"]["sessionName"], "from outside", "{attached}");

    // A subscriber is told that it lagged, and counts as behind until it attaches again.
    let lagged = client.event("lagged");
    assert_eq!((&lagged["sessionId"], &lagged["fromSeq"]), (&json!("alpha"), &json!(last + 1)), "{lagged}");
    for seq in [last, lagged["seq"].as_u64().unwrap()] {
        assert_eq!(attach_since(&mut client, "alpha", &epoch, seq)["replayed"], json!(false), "since {seq}");
    }
    // A plain client goes on as before: pi knows no such event.
    plain.send(&json!({"id": "x", "type": "set_session_name", "name": "inside"}));
    let seen = plain.all_until("its answer", |line| line["id"] == "x");
    assert!(seen.iter().all(|line| line["type"] != "lagged"), "{seen:?}");
}

/// A client, and its view of the sessions that it follows.
struct Viewer {
    client: SocketClient,
    views: HashMap<&'static str, View>,
    /// The views that it has had of each session, with their numbers.
    past: HashMap<&'static str, Vec<View>>,
}

#[derive(Debug, Clone)]
struct View {
    seq: u64,
    name: Value,
    messages: u64,
    /// `lagged` arrived, so the view may be old.
    is_stale: bool,
}

/// All clients, and every event that any of them received.
struct World {
    home: Home,
    service: Service,
    epoch: Value,
    watcher: SocketClient,
    viewers: Vec<Viewer>,
    events: BTreeMap<(String, u64), String>,
    names: u64,
    /// The steps so far, for the message of a failure.
    story: Vec<String>,
}

impl World {
    /// Sends a command of a client, and takes all lines up to its response.
    fn ask(&mut self, who: usize, mut command: Value) -> Value {
        command["id"] = json!("ask");
        self.viewers[who].client.send(&command);
        loop {
            let line = self.viewers[who].client.line();
            if line["id"] == "ask" {
                return line;
            }
            self.take(who, &line);
        }
    }

    /// Applies a line to the client's view.
    fn take(&mut self, who: usize, line: &Value) {
        let Some(id) = NAMES.iter().find(|name| line["sessionId"] == **name) else { return };
        if line["type"] == "session_closed" {
            self.viewers[who].views.remove(id);
            return;
        }
        let Some(seq) = line["seq"].as_u64() else { return };
        let text = line.to_string();
        let before = self.events.insert(((*id).to_owned(), seq), text.clone());
        assert!(
            before.as_ref().is_none_or(|before| *before == text),
            "a number twice: {before:?} and {line}\n{:#?}",
            self.story
        );
        // A session that was closed meanwhile may still have events on their way.
        let Some(view) = self.viewers[who].views.get_mut(id) else { return };
        assert_eq!(seq, view.seq + 1, "client {who} of {id}\n{:#?}", self.story);
        view.seq = seq;
        match line["type"].as_str().unwrap() {
            "lagged" => view.is_stale = true,
            "session_info_changed" => view.name = line["name"].clone(),
            "message_end" if line["message"]["role"] != "system" => view.messages += 1,
            _ => {}
        }
    }

    fn snapshot(&mut self, who: usize, id: &'static str, seq: &Value, state: &Value) {
        let view = View {
            seq: seq.as_u64().unwrap(),
            name: state["sessionName"].clone(),
            messages: self.messages(who, id),
            is_stale: false,
        };
        self.viewers[who].views.insert(id, view);
    }

    /// The number of messages, by a command that only reads.
    fn messages(&mut self, who: usize, id: &str) -> u64 {
        let state = self.ask(who, json!({"type": "get_messages", "sessionId": id}));
        let messages = state["data"]["messages"].as_array().unwrap();
        messages.iter().filter(|message| message["role"] != "system").count() as u64
    }

    fn open(&mut self, who: usize, id: &'static str) {
        self.viewers[who].views.remove(id);
        let params = json!({"type": "open_session", "cwd": self.home.project(), "sessionId": id});
        let opened = self.ask(who, params);
        let data = &opened["data"];
        assert_eq!(data["epoch"], self.epoch, "{opened}");
        // The response holds the state and its number.
        self.snapshot(who, id, &data["seq"], data);
    }

    /// Attaches; with `since`, after an event that the client has seen.
    fn attach(&mut self, who: usize, id: &'static str, since: Option<View>) {
        let wanted = since.as_ref().map(|view| json!({"epoch": self.epoch, "seq": view.seq}));
        self.ask(who, json!({"type": "detach_session", "sessionId": id}));
        self.viewers[who].views.remove(id);
        let params = json!({"type": "attach_session", "sessionId": id, "since": wanted});
        let attached = self.ask(who, params);
        let data = &attached["data"];
        match since.filter(|_| data["replayed"] == json!(true)) {
            _ if attached["success"] == json!(false) => {
                assert_eq!(attached["code"], "session_not_found", "{attached}\n{:#?}", self.story);
            }
            Some(view) => {
                assert_eq!(data["seq"], json!(view.seq), "{attached}");
                self.viewers[who].views.insert(id, view);
            }
            None => self.snapshot(who, id, &data["seq"], &data["state"]),
        }
    }

    /// Checks the view of each client against the daemon.
    fn check(&mut self) {
        for who in 0..self.viewers.len() {
            for id in NAMES {
                if !self.viewers[who].views.contains_key(id) {
                    continue;
                }
                let state = self.ask(who, json!({"type": "get_state", "sessionId": id}));
                if state["success"] == json!(false) {
                    // The session is closed; the event may follow the refusal.
                    self.viewers[who].views.remove(id);
                    continue;
                }
                if self.viewers[who].views.get(id).is_some_and(|view| view.is_stale) {
                    let view = self.viewers[who].views[id].clone();
                    self.attach(who, id, Some(view));
                }
                let messages = self.messages(who, id);
                let Some(view) = self.viewers[who].views.get(id).cloned() else { continue };
                assert_eq!(
                    (&view.name, view.messages),
                    (&state["data"]["sessionName"], messages),
                    "client {who} of {id}: {view:?}, {state}\n{:#?}",
                    self.story
                );
                self.viewers[who].past.entry(id).or_default().push(view);
            }
        }
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("name {}", self.names)
    }

    fn close(&mut self, id: &str) {
        let closed = self.watcher.call(json!({"type": "close_session", "sessionId": id}));
        if closed["success"] == json!(true) {
            self.watcher.until("its end", |line| line["type"] == "session_closed" && line["sessionId"] == id);
        }
    }

    /// Waits until a known session is unloaded.
    fn unload(&mut self, id: &str) -> bool {
        let listed = self.watcher.done(json!({"type": "list_sessions"}));
        let is_known = |session: &Value| session["id"] == id && session["live"] == json!(true);
        let is_live = listed["sessions"].as_array().unwrap().iter().any(is_known);
        if is_live {
            gone(&mut self.watcher, id);
        }
        is_live
    }

    fn step(&mut self, random: &mut Random) {
        let who = random.below(0..self.viewers.len() as u64) as usize;
        let id = NAMES[random.below(0..NAMES.len() as u64) as usize];
        let what = random.below(0..9);
        self.story.push(format!("client {who}, {id}: {what}"));
        match what {
            0 | 1 => self.open(who, id),
            2 => {
                let name = self.new_name();
                self.ask(who, json!({"type": "set_session_name", "sessionId": id, "name": name}));
            }
            3 if self.viewers[who].views.contains_key(id) => {
                let params = json!({"type": "prompt", "sessionId": id, "message": "Go."});
                if self.ask(who, params)["success"] == json!(true) {
                    loop {
                        let line = self.viewers[who].client.line();
                        self.take(who, &line);
                        if line["type"] == "agent_settled" && line["sessionId"] == id {
                            break;
                        }
                    }
                }
            }
            3 | 4 => self.close(id),
            5 => {
                self.close(id);
                self.watcher.call(json!({"type": "delete_session", "sessionId": id}));
            }
            6 => {
                self.unload(id);
            }
            7 => {
                self.unload(id);
                let name = self.new_name();
                let file = file_of(&mut self.watcher, id);
                // Only files of unloaded sessions may be written by others.
                if let Some(file) = file {
                    rename_on_disk(Path::new(&file), &name, self.names);
                }
            }
            _ => {
                let past = self.viewers[who].past.get(id).cloned().unwrap_or_default();
                let since = match past.len() as u64 {
                    0 => None,
                    count => past.get(random.below(0..count + 1) as usize).cloned(),
                };
                self.attach(who, id, since);
            }
        }
        self.check();
    }
}

/// Random steps with three sessions and three clients: no client ever has a wrong view, and no number means two events.
#[test]
fn no_client_gets_a_wrong_picture() {
    for seed in 0..2 {
        let (home, service, _server) = impatient();
        let watcher = watcher(&service);
        let viewers = (0..3).map(|_| Viewer {
            client: introduced(&service),
            views: HashMap::new(),
            past: HashMap::new(),
        });
        let viewers = viewers.collect();
        let epoch = introduced(&service).done(json!({"type": "daemon_status"}))["daemon"]["epoch"].clone();
        let mut world = World {
            home,
            service,
            epoch,
            watcher,
            viewers,
            events: BTreeMap::new(),
            names: 0,
            story: vec![format!("seed {seed}")],
        };
        let mut random = Random::new(seed);
        for _ in 0..60 {
            world.step(&mut random);
        }
        assert!(world.service.id() > 0 && !world.events.is_empty(), "nothing was seen");
    }
}
