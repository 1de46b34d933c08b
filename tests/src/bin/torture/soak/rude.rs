//! Clients that are slow, die, come back, only observe, send invalid lines, or register tools and vanish.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    prompt::{self, Task},
    work::Shift,
};
use crate::peer::{Peer, TIMEOUT, Trouble};

/// The longest line that the daemon of the run takes, in bytes.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

/// The most words, at a thousand a second, that a client leaves behind when it dies.
const LONGEST_RUN: u64 = if cfg!(debug_assertions) { 300 } else { 2_000 };

/// The behaviour of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    Works,
    Slow,
    Dies,
    ComesBack,
    LooksOn,
    TalksNonsense,
    ProvidesTools,
}

impl Manner {
    /// The behaviour of the client of this number: of 50, 27 work, 6 are slow, 5 die, 4 come back, 4 observe, 2 send
    /// invalid lines and 2 provide tools.
    pub(crate) fn of(number: usize) -> Self {
        match number % 50 {
            0..=5 => Self::Slow,
            6..=10 => Self::Dies,
            11..=14 => Self::ComesBack,
            15..=18 => Self::LooksOn,
            19..=20 => Self::TalksNonsense,
            21..=22 => Self::ProvidesTools,
            _ => Self::Works,
        }
    }

    /// Behaves like that until the run is over.
    pub(crate) fn behave(self, mut shift: Shift<'_>) {
        let behave = match self {
            Self::Works => return shift.work(),
            Self::Slow => Shift::be_slow,
            Self::Dies => Shift::die,
            Self::ComesBack => Shift::come_back,
            Self::LooksOn => Shift::look_on,
            Self::TalksNonsense => Shift::talk_nonsense,
            Self::ProvidesTools => Shift::provide_tools,
        };
        while !shift.tally.is_over() {
            if let Err(trouble) = behave(&mut shift) {
                shift.tell(&trouble);
            }
            shift.rest();
        }
    }
}

impl Shift<'_> {
    /// Follows a session, sends many commands, and reads a little now and then.
    fn be_slow(&mut self) -> Result<(), Trouble> {
        let mut peer = Peer::counting(self.socket)?;
        let id = self.pool.any_id(&mut self.random);
        peer.done(json!({"type": "attach_session", "sessionId": id}))?;
        let mut stream = peer.stream().map_err(|error| Trouble::Closed(error.to_string()))?;
        for _ in 0..self.random.below(0..20) {
            peer.send(json!({"type": "get_entries", "sessionId": id}))?;
        }
        let mut buffer = [0; 512];
        for _ in 0..self.random.below(10..100) {
            if self.tally.is_over() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
            stream.set_nonblocking(true).map_err(|error| Trouble::Closed(error.to_string()))?;
            // No data is fine; the next client of the loop notices an end.
            let _ = stream.read(&mut buffer);
        }
        self.tally.note("slow client");
        peer.drop_dead();
        Ok(())
    }

    /// Starts something, and disconnects before its end.
    fn die(&mut self) -> Result<(), Trouble> {
        let (index, mut held) = self.pool.take(&mut self.random);
        let mut peer = Peer::counting(self.socket)?;
        if held.is_none() {
            self.pool.open(index, &mut held, &mut peer, &mut self.random)?;
        }
        let Some(slot) = held.as_mut() else { return Ok(()) };
        let attached = peer.done(json!({"type": "attach_session", "sessionId": slot.id}))?;
        if attached["state"]["isStreaming"] == true {
            peer.done(json!({"type": "abort", "sessionId": slot.id}))?;
        }
        let task = if self.random.chance(50) {
            Task::new("paced", self.random.below(100..LONGEST_RUN), &mut self.random)
        } else {
            Task::new("tools", 1, &mut self.random)
        };
        slot.left = slot.left.saturating_sub(1);
        peer.send(json!({"type": "prompt", "message": task.text(), "sessionId": slot.id}))?;
        let lines = self.random.below(0..30);
        for _ in 0..lines {
            peer.next()?;
        }
        self.tally.note("client that died");
        peer.drop_dead();
        Ok(())
    }

    /// Loses its connection in the middle of an answer, and comes back with its number: nothing is missing, and nothing
    /// comes twice.
    fn come_back(&mut self) -> Result<(), Trouble> {
        let (index, mut held) = self.pool.take(&mut self.random);
        let mut peer = Peer::connect(self.socket)?;
        let hello = json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}});
        let epoch = peer.done(hello)?["daemon"]["epoch"].clone();
        if held.is_none() {
            self.pool.open(index, &mut held, &mut peer, &mut self.random)?;
        }
        let Some(slot) = held.as_mut() else { return Ok(()) };
        let attached = peer.done(json!({"type": "attach_session", "sessionId": slot.id}))?;
        if attached["state"]["isStreaming"] == true {
            peer.done(json!({"type": "abort", "sessionId": slot.id}))?;
        }
        let task = Task::new("paced", self.random.below(50..300), &mut self.random);
        slot.left = slot.left.saturating_sub(1);
        peer.done(json!({"type": "prompt", "message": task.text(), "sessionId": slot.id}))?;
        let mut seq = 0;
        let count = self.random.below(5..40);
        for _ in 0..count {
            let line = peer.next()?;
            seq = line["seq"].as_u64().unwrap_or(seq);
            if line["type"] == "agent_settled" {
                break;
            }
        }
        peer.drop_dead();
        let mut peer = Peer::counting(self.socket)?;
        let since = json!({"epoch": epoch, "seq": seq});
        let again = peer.done(json!({"type": "attach_session", "sessionId": slot.id, "since": since}))?;
        if again["replayed"] == true {
            self.tally.note("came back: replayed");
            if again["seq"].as_u64() != Some(seq) {
                return Err(Trouble::Wrong(format!("asked for what follows {seq}, got {}", again["seq"])));
            }
        } else {
            self.tally.note("came back: too much was missed");
            seq = again["seq"].as_u64().unwrap_or_default();
        }
        if again["state"]["isStreaming"] == true || again["replayed"] == true {
            // If the answer has ended and was received completely, no more comes.
            let end = Instant::now() + TIMEOUT;
            let marker = peer.send(json!({"type": "get_state", "sessionId": slot.id}))?;
            let mut is_streaming = true;
            while is_streaming {
                let line = peer.next()?;
                if let Some(number) = line["seq"].as_u64().filter(|_| line["sessionId"] == *slot.id) {
                    if number != seq + 1 {
                        return Err(Trouble::Wrong(format!("event {number} follows {seq} in {}", slot.id)));
                    }
                    seq = number;
                }
                let settled = line["type"] == "agent_settled" || line["type"] == "lagged";
                let rests = line["id"] == marker && line["data"]["isStreaming"] == false;
                is_streaming = !settled && !rests;
                if Instant::now() > end {
                    return Err(Trouble::Wrong(format!("{} does not settle", slot.id)));
                }
            }
        }
        Ok(())
    }

    /// Watches all sessions and follows some, and may do nothing.
    fn look_on(&mut self) -> Result<(), Trouble> {
        let mut peer = Peer::connect(self.socket)?;
        let capabilities = json!({"sessions": true});
        peer.done(json!({"type": "hello", "protocol": 1, "capabilities": capabilities, "role": "observe"}))?;
        peer.done(json!({"type": "watch_sessions"}))?;
        let mut refused = 0;
        for _ in 0..self.random.below(1..20) {
            if self.tally.is_over() {
                break;
            }
            let id = self.pool.any_id(&mut self.random);
            match peer.done(json!({"type": "attach_session", "sessionId": id})) {
                Err(Trouble::Refused(..)) => continue,
                other => drop(other?),
            }
            match peer.done(json!({"type": "prompt", "message": "soak 1 text 1", "sessionId": id})) {
                Err(Trouble::Refused(code, _)) if code == "forbidden" => refused += 1,
                other => return Err(Trouble::Wrong(format!("an observer's prompt: {other:?}"))),
            }
            self.rest();
            match peer.done(json!({"type": "detach_session", "sessionId": id})) {
                // The session was closed meanwhile.
                Err(Trouble::Refused(..)) => {}
                other => drop(other?),
            }
        }
        if refused > 0 {
            self.tally.note("observer");
        }
        Ok(())
    }

    /// Sends invalid lines; each is answered.
    fn talk_nonsense(&mut self) -> Result<(), Trouble> {
        let mut peer = Peer::connect(self.socket)?;
        let mut batch = Vec::new();
        let count = self.random.below(1..40);
        for _ in 0..count {
            match self.random.below(0..5) {
                0 => batch.extend((0..self.random.below(1..300)).map(|_| {
                    // Any byte but the line's end; never an empty line, which would also be answered.
                    b'b' + (self.random.bits() % 100) as u8
                })),
                1 => batch.extend(b"{\"type\":\"prompt\""),
                2 => batch.extend(b"{\"type\":\"fly\"}"),
                3 => batch.extend(b"{\"type\":\"set_label\",\"entryId\":7}"),
                _ => batch.extend(b"[".repeat(1000)),
            }
            batch.push(b'\n');
        }
        peer.send_bytes(&batch)?;
        for _ in 0..count {
            let answer = peer.next()?;
            if answer["success"] != false || answer["code"].as_str().is_none() {
                return Err(Trouble::Wrong(format!("nonsense is answered by {answer}")));
            }
        }
        if self.random.chance(10) {
            let mut long = vec![b'x'; LONGEST_LINE + 10];
            long.push(b'\n');
            peer.send_bytes(&long)?;
            let answer = peer.next()?;
            if answer["code"] != "too_large" {
                return Err(Trouble::Wrong(format!("a long line is answered by {answer}")));
            }
            self.tally.note("line that is too long");
        }
        self.tally.note("lines of nonsense");
        if self.random.chance(50) {
            self.flood(peer.stream());
        }
        Ok(())
    }

    /// Sends commands as fast as possible, reads nothing, and leaves.
    fn flood(&mut self, stream: std::io::Result<UnixStream>) {
        let Ok(mut stream) = stream else { return };
        let batch = b"{\"type\":\"daemon_status\"}\n".repeat(100);
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        for _ in 0..50 {
            if stream.write_all(&batch).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        self.tally.note("flood without reading");
    }

    /// Registers a tool, lets the model call it, and answers, fails or disconnects.
    fn provide_tools(&mut self) -> Result<(), Trouble> {
        let (index, mut held) = self.pool.take(&mut self.random);
        let mut peer = Peer::counting(self.socket)?;
        if held.is_none() {
            self.pool.open(index, &mut held, &mut peer, &mut self.random)?;
        }
        let Some(slot) = held.as_mut() else { return Ok(()) };
        prompt::settle(&mut peer, &slot.id)?;
        let parameters = json!({"type": "object", "properties": {"word": {"type": "string"}}});
        let tool = json!({"name": "look_up", "description": "Looks a word up.", "parameters": parameters});
        peer.done(json!({"type": "register_tools", "tools": [tool], "sessionId": slot.id}))?;
        let task = Task::new("client", 1, &mut self.random);
        slot.left = slot.left.saturating_sub(1);
        let asked = peer.send(json!({"type": "prompt", "message": task.text(), "sessionId": slot.id}))?;
        let request = peer.until("tool_request", |line| {
            if line["id"] == asked && line["success"] == false {
                return Err(crate::peer::refusal(&line));
            }
            Ok((line["type"] == "tool_request").then(|| line["requestId"].clone()))
        })?;
        if self.random.chance(40) {
            self.tally.note("tool provider that vanished");
            peer.drop_dead();
            let mut peer = Peer::counting(self.socket)?;
            return prompt::settle(&mut peer, &slot.id);
        }
        let content = json!([{"type": "text", "text": "a word"}]);
        let answer = if self.random.chance(50) {
            json!({"type": "tool_response", "requestId": request, "result": {"content": content}})
        } else {
            json!({"type": "tool_response", "requestId": request, "error": "no such word"})
        };
        peer.send(answer)?;
        peer.until("agent_settled", |line| {
            Ok((line["type"] == "agent_settled" && line["sessionId"] == *slot.id).then_some(()))
        })?;
        self.tally.note("tool provider");
        self.tally.prompts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}
