//! What several topics share.

use std::{fs, path::Path};

use agentd_e2e::{DEADLINE, Home, ctl};

use serde_json::{Value, json};

/// A prompt under the id `1`.
pub(crate) fn prompt(message: &str) -> Value {
    json!({"id": "1", "type": "prompt", "message": message})
}

/// The final assistant messages among events, in order.
pub(crate) fn answers(events: &[Value]) -> Vec<&Value> {
    ended(events, "assistant")
}

/// The final messages of a role among events, in order.
pub(crate) fn ended<'a>(events: &'a [Value], role: &str) -> Vec<&'a Value> {
    let ends = events.iter().filter(|event| event["type"] == "message_end");
    ends.map(|event| &event["message"]).filter(|message| message["role"] == role).collect()
}

/// Waits until nobody has a lock on the file. A lock of this process can outlive its file for a moment: in a child that was
/// forked meanwhile, until that has become another program.
pub(crate) fn wait_until_free(path: &Path) {
    let (free, waiting) = std::sync::mpsc::channel();
    let file = fs::File::open(path).expect("a file");
    std::thread::spawn(move || {
        file.lock().expect("a lock");
        let _ = free.send(());
    });
    waiting.recv_timeout(DEADLINE).expect("a file that nobody holds");
}

/// The text of a message.
pub(crate) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect()
        }
    }
}

/// The types of events, with repetitions in a row left out.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    kinds.dedup();
    kinds
}

/// The records of a session file: the header first.
pub(crate) fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(text.ends_with('\n'), "a session file ends with a whole line: {text}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of a session file is JSON")).collect()
}

/// The roles of the messages in a session file.
pub(crate) fn roles(file: &Path) -> Vec<String> {
    let messages = records(file).into_iter().filter(|record| record["type"] == "message");
    messages.map(|record| record["message"]["role"].as_str().expect("a role").to_owned()).collect()
}

/// An error says what happened to which thing and what to do: it holds all of these.
pub(crate) fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

/// Error and hint of a refused command.
pub(crate) fn complaint(response: &Value) -> String {
    [&response["error"], &response["hint"]]
        .into_iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The daemon of a home that something starts when it is needed. It is ended with the test.
pub(crate) struct OnDemand<'a>(pub(crate) &'a Home);

impl OnDemand<'_> {
    /// Its process; `None` while none runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        let said = ctl::run(self.0, &["status", "--json"]);
        let status: Value = serde_json::from_str(&said.stdout).expect("one line of JSON");
        status["daemon"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }
}

impl Drop for OnDemand<'_> {
    fn drop(&mut self) {
        // Ours by its socket, which nobody else has; not running is as good. It waits for the end of the process.
        // A test that fails already must not take the others with it.
        let _ = std::panic::catch_unwind(|| ctl::run(self.0, &["down", "--abort"]));
    }
}

/// The sessions in the memory of a home's daemon.
pub(crate) fn live_sessions(home: &Home) -> Vec<Value> {
    let said = ctl::run(home, &["sessions", "--live", "--json"]);
    let list: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    list["sessions"].as_array().expect("a list").clone()
}
