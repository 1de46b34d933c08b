//! A client of the crowd, and the sessions that all of them know.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use agentd_e2e::Random;
use serde_json::{Value, json};

use crate::{
    peer::{Peer, Trouble, refusal},
    tally::Tally,
};

/// A session with a file.
#[derive(Debug, Clone)]
pub(crate) struct KnownSession {
    pub(crate) id: String,
    pub(crate) file: PathBuf,
}

/// The sessions that all guests know.
pub(crate) struct KnownSessions {
    /// The largest number of sessions.
    most: usize,
    project: PathBuf,
    rooms: Mutex<Vec<KnownSession>>,
    /// By session id: the file, and the user messages that are stored in it.
    stored: Mutex<HashMap<String, (PathBuf, Vec<String>)>>,
    /// Ids of sessions that were deleted.
    deleted: Mutex<HashSet<String>>,
    /// Ids of sessions that a client wanted to delete and may have left before the response.
    doubtful: Mutex<HashSet<String>>,
}

impl KnownSessions {
    pub(crate) fn new(most: usize, project: &Path) -> Self {
        Self {
            most,
            project: project.to_owned(),
            rooms: Mutex::default(),
            stored: Mutex::default(),
            deleted: Mutex::default(),
            doubtful: Mutex::default(),
        }
    }

    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// A session; `None` as long as there are too few.
    pub(crate) fn any(&self, random: &mut Random) -> Option<KnownSession> {
        let rooms = self.rooms.lock().unwrap();
        (rooms.len() == self.most).then(|| random.pick(&rooms).clone())
    }

    /// Adds a session, or replaces one if there are enough.
    pub(crate) fn add(&self, room: KnownSession, random: &mut Random) {
        if self.deleted.lock().unwrap().contains(&room.id) {
            return;
        }
        self.stored.lock().unwrap().entry(room.id.clone()).or_insert_with(|| (room.file.clone(), Vec::new()));
        let mut rooms = self.rooms.lock().unwrap();
        if rooms.iter().any(|other| other.id == room.id) {
            return;
        }
        if rooms.len() < self.most {
            rooms.push(room);
        } else {
            let index = random.index(rooms.len());
            rooms[index] = room;
        }
    }

    /// A client is about to delete a session.
    pub(crate) fn doubt(&self, id: &str) {
        self.doubtful.lock().unwrap().insert(id.to_owned());
    }

    /// Returns `true` if a session may have been deleted without a response.
    pub(crate) fn is_doubtful(&self, id: &str) -> bool {
        self.doubtful.lock().unwrap().contains(id)
    }

    /// Removes a deleted session.
    pub(crate) fn remove(&self, id: &str) {
        self.deleted.lock().unwrap().insert(id.to_owned());
        self.rooms.lock().unwrap().retain(|room| room.id != id);
        self.stored.lock().unwrap().remove(id);
    }

    /// Records that a text is stored in a session.
    pub(crate) fn store(&self, id: &str, text: &str) {
        let mut stored = self.stored.lock().unwrap();
        if let Some((_, texts)) = stored.get_mut(id)
            && !texts.iter().any(|other| other == text)
        {
            texts.push(text.to_owned());
        }
    }

    /// The sessions whose files have to exist, with the texts that have to be in them.
    pub(crate) fn stored(&self) -> Vec<(String, PathBuf, Vec<String>)> {
        let stored = self.stored.lock().unwrap();
        let with_texts = stored.iter().filter(|(_, (_, texts))| !texts.is_empty());
        with_texts.map(|(id, (file, texts))| (id.clone(), file.clone(), texts.clone())).collect()
    }
}

/// The most commands that are sent at once.
const BURST: u64 = 8;

/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client that connects, does something, and leaves, again and again.
pub(crate) struct Guest<'a> {
    pub(crate) socket: &'a Path,
    pub(crate) place: &'a KnownSessions,
    pub(crate) tally: &'a Tally,
    pub(crate) random: Random,
    pub(crate) number: usize,
}

impl Guest<'_> {
    /// Connects again and again until the run is over. Every third guest is a plain client, like those of pi.
    pub(crate) fn stay(mut self) {
        let is_plain = self.number.is_multiple_of(3);
        while !self.tally.is_over() {
            let peer = Peer::connect_for(self.socket, TIMEOUT);
            let peer = if is_plain { peer } else { peer.and_then(Peer::count) };
            let visited =
                peer.and_then(|peer| Visit { peer, guest: &mut self, is_plain, is_following: false }.go());
            if let Err(trouble) = visited {
                self.tell(&trouble);
            }
        }
    }

    /// Counts errors that others may have caused, and reports the rest.
    fn tell(&self, trouble: &Trouble) {
        self.tell_of(&Value::Null, trouble);
    }

    fn tell_of(&self, command: &Value, trouble: &Trouble) {
        match trouble {
            Trouble::Refused(code, _)
                if matches!(
                    &**code,
                    "session_not_found"
                        | "no_session"
                        | "busy"
                        | "not_found"
                        | "limit_reached"
                        | "aborted"
                        | "unsupported"
                ) =>
            {
                self.tally.note(&format!("refused: {code}"));
            }
            other => self.tally.find(&format!("client {}: {command}: {other}", self.number)),
        }
    }
}

/// A connection of a guest.
struct Visit<'a, 'b> {
    peer: Peer,
    guest: &'a mut Guest<'b>,
    /// The client follows one session at a time, without numbers.
    is_plain: bool,
    /// The client has a session for commands without a session id.
    is_following: bool,
}

impl Visit<'_, '_> {
    fn go(mut self) -> Result<(), Trouble> {
        for _ in 0..self.guest.random.below(1..40) {
            if self.guest.tally.is_over() {
                return Ok(());
            }
            let burst = if self.guest.random.chance(10) { self.guest.random.below(2..BURST) } else { 1 };
            let mut asked = Vec::new();
            for _ in 0..burst {
                let command = self.command();
                let kind = command["type"].as_str().unwrap_or_default().to_owned();
                if kind == "delete_session" {
                    self.guest.place.doubt(command["sessionId"].as_str().unwrap_or_default());
                }
                asked.push((self.peer.send(command.clone())?, kind, command));
            }
            // Sometimes it leaves without waiting.
            if self.guest.random.chance(2) {
                self.peer.drop_dead();
                self.guest.tally.note("left at once");
                return Ok(());
            }
            self.answers(asked)?;
        }
        Ok(())
    }

    /// Waits for the responses to all commands, in any order.
    fn answers(&mut self, mut asked: Vec<(u64, String, Value)>) -> Result<(), Trouble> {
        while !asked.is_empty() {
            let what = asked.iter().map(|(id, _, command)| format!("{id}: {command}")).collect::<Vec<_>>();
            let place = self.guest.place;
            let answer = self.peer.until(&what.join(", "), |line| {
                note_stored(place, &line);
                let is_it = |(id, ..): &(u64, String, Value)| line["id"] == *id;
                Ok((line["type"] == "response" && asked.iter().any(is_it)).then_some(line))
            })?;
            let Some(index) = asked.iter().position(|(id, ..)| answer["id"] == *id) else { continue };
            let (_, kind, command) = asked.swap_remove(index);
            self.guest.tally.note(&kind);
            if answer["success"] == true {
                self.done(&kind, &command, &answer["data"])?;
            } else {
                self.guest.tell_of(&command, &refusal(&answer));
            }
        }
        Ok(())
    }

    /// Records the effect of a successful command.
    fn done(&mut self, kind: &str, command: &Value, data: &Value) -> Result<(), Trouble> {
        match kind {
            "open_session" | "attach_session" => {
                self.is_following = true;
                if kind == "attach_session" && data["state"]["sessionId"] != command["sessionId"] {
                    return Err(Trouble::Wrong(format!("{command} attached to {}", data["state"])));
                }
                self.remember(&data["state"]);
            }
            "switch_session" | "new_session" | "fork" | "clone" if data["cancelled"] == true => {
                return Err(Trouble::Wrong(format!("{command} was cancelled")));
            }
            "get_state" => self.remember(data),
            "delete_session" => {
                self.guest.place.remove(command["sessionId"].as_str().unwrap_or_default());
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a session for others: one with a file that has something in it.
    fn remember(&mut self, state: &Value) {
        let (Some(id), Some(file)) = (state["sessionId"].as_str(), state["sessionFile"].as_str()) else {
            return;
        };
        if state["messageCount"].as_u64() > Some(0) {
            let room = KnownSession { id: id.to_owned(), file: file.into() };
            self.guest.place.add(room, &mut self.guest.random);
        }
    }

    /// A random command.
    fn command(&mut self) -> Value {
        let open = json!({"type": "open_session", "cwd": self.guest.place.project()});
        let random = &mut self.guest.random;
        if !self.is_following {
            let Some(room) = self.guest.place.any(random) else { return open };
            return match random.below(0..10) {
                0 => open,
                1..=3 => {
                    json!({"type": "open_session", "cwd": self.guest.place.project(), "path": room.file})
                }
                _ => json!({"type": "attach_session", "sessionId": room.id}),
            };
        }
        let text =
            format!("soak {:x} {} {}", random.bits(), random.pick(&["text", "work"]), random.below(1..20));
        let Some(room) = self.guest.place.any(random) else {
            return match random.below(0..3) {
                0 => open,
                1 => json!({"type": "prompt", "message": text}),
                _ => json!({"type": "get_state"}),
            };
        };
        let mut command = match random.below(0..100) {
            0..=13 => {
                let how = *random.pick(&["steer", "followUp"]);
                json!({"type": "prompt", "message": text, "streamingBehavior": how})
            }
            14..=29 => json!({"type": "get_state"}),
            30..=33 => json!({"type": "abort"}),
            34..=37 => json!({"type": "set_session_name", "name": text}),
            38..=41 => json!({"type": "bash", "command": "echo here"}),
            42..=45 => json!({"type": "get_messages"}),
            46..=47 => json!({"type": "follow_up", "message": text}),
            48..=49 => json!({"type": "clear_queue"}),
            50..=65 => return json!({"type": "switch_session", "sessionPath": room.file}),
            66..=69 => return json!({"type": "new_session"}),
            70..=72 => return json!({"type": "clone"}),
            73..=80 => return json!({"type": "attach_session", "sessionId": room.id}),
            81..=83 => return json!({"type": "detach_session", "sessionId": room.id}),
            84..=85 => {
                let mode = *random.pick(&["abort", "drain"]);
                return json!({"type": "close_session", "sessionId": room.id, "mode": mode});
            }
            86 => return json!({"type": "delete_session", "sessionId": room.id}),
            87..=89 => return json!({"type": "list_sessions", "live": random.chance(50)}),
            90..=91 => {
                return json!({"type": "open_session", "cwd": self.guest.place.project(), "ephemeral": true});
            }
            92..=93 => return json!({"type": "list_processes", "sessionId": room.id}),
            94..=96 if !self.is_plain => {
                // The daemon may not have noticed yet that the previous connection is gone, with its tools.
                let name = format!("look_up_{:x}", random.bits());
                let tool =
                    json!({"name": name, "description": "Looks up.", "parameters": {"type": "object"}});
                json!({"type": "register_tools", "tools": [tool]})
            }
            97..=98 if !self.is_plain => return json!({"type": "unregister_tools"}),
            _ => return json!({"type": "open_session", "cwd": self.guest.place.project(), "path": room.file}),
        };
        if !self.is_plain && random.chance(40) {
            command["sessionId"] = json!(room.id);
        }
        command
    }
}

/// A user message is on the disk when its event arrives. Only clients that name sessions know its session.
fn note_stored(place: &KnownSessions, line: &Value) {
    if line["type"] == "message_end"
        && line["message"]["role"] == "user"
        && let Some(id) = line["sessionId"].as_str()
    {
        let content = &line["message"]["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
        place.store(id, text);
    }
}
