//! The same test over stdin and stdout, and over the socket.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, SocketClient};
use serde_json::{Value, json};

/// A client that has a session, however it reaches the daemon.
pub(crate) trait Wire {
    /// Sends a command.
    fn send(&mut self, command: Value);
    /// Sends a command that must be done, and gives its data.
    fn done(&mut self, command: Value) -> Value;
    /// Sends a command that must be refused, and gives the response.
    fn refused(&mut self, command: Value) -> Value;
    /// Waits for the line that `wanted` picks, and gives it with all before it.
    fn lines_until(&mut self, what: &str, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value>;

    /// Sends a prompt and waits for the end of the run.
    fn say(&mut self, message: &str) -> Vec<Value> {
        self.done(json!({"type": "prompt", "message": message}));
        self.lines_until("agent_settled", &|line| line["type"] == "agent_settled")
    }

    /// Sends a command, and gives everything up to its response, that included.
    fn told_until_done(&mut self, mut command: Value) -> Vec<Value> {
        command["id"] = json!("until");
        self.send(command);
        self.lines_until("the response", &|line| line["id"] == "until" && line["type"] == "response")
    }

    /// The state.
    fn state(&mut self) -> Value {
        self.done(json!({"type": "get_state"}))
    }

    /// The entries with text of the user: id and text.
    fn fork_messages(&mut self) -> Vec<(String, String)> {
        let data = self.done(json!({"type": "get_fork_messages"}));
        let field = |message: &Value, name: &str| message[name].as_str().expect("a text").to_owned();
        let messages = data["messages"].as_array().expect("a list");
        messages.iter().map(|message| (field(message, "entryId"), field(message, "text"))).collect()
    }

    /// What the context holds: the role and text of each message, the system's left out.
    fn context(&mut self) -> Vec<String> {
        let data = self.done(json!({"type": "get_messages"}));
        let messages = data["messages"].as_array().expect("a list").iter();
        let said = messages.filter(|message| message["role"] != "system");
        said.map(|message| {
            format!("{}: {}", message["role"].as_str().expect("a role"), crate::support::text(message))
        })
        .collect()
    }
}

impl Wire for Daemon {
    fn send(&mut self, command: Value) {
        Self::send(self, &command);
    }

    fn done(&mut self, command: Value) -> Value {
        Self::done(self, command)
    }

    fn refused(&mut self, command: Value) -> Value {
        Self::refused(self, command)
    }

    fn lines_until(&mut self, what: &str, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value> {
        self.all_until(what, wanted)
    }
}

impl Wire for SocketClient {
    fn send(&mut self, command: Value) {
        Self::send(self, &command);
    }

    fn done(&mut self, command: Value) -> Value {
        Self::done(self, command)
    }

    fn refused(&mut self, command: Value) -> Value {
        Self::refused(self, command)
    }

    fn lines_until(&mut self, what: &str, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value> {
        self.all_until(what, wanted)
    }
}

/// Runs a test twice, in a home of its own each time: with a plain client on stdin and stdout, and with one of the socket.
/// `args` are the flags of the session.
pub(crate) fn both(replies: &[Reply], args: &[&str], test: impl Fn(&Home, &MockServer, &mut dyn Wire)) {
    let server = MockServer::start(replies.to_vec());
    let home = Home::with_model(&server);
    test(&home, &server, &mut Daemon::start(&home, args));

    let server = MockServer::start(replies.to_vec());
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
    test(&home, &server, &mut client);
}
