//! An extension for agentd: asks before `rm -rf`, has a tool that counts words, and the command /shout.

use std::{
    collections::HashMap,
    error::Error,
    io::{self, Write as _},
};

use serde_json::{Value, json};

/// What is done with the answer to a call.
type Continuation = Box<dyn FnOnce(&mut Extension, Value) -> io::Result<()>>;

#[derive(Default)]
struct Extension {
    /// The epoch, and the name that agentd has for this extension.
    session: (Value, Value),
    calls: u64,
    waiting: HashMap<u64, Continuation>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut extension = Extension::default();
    for line in io::stdin().lines() {
        extension.take(&serde_json::from_str(&line?)?)?;
    }
    Ok(())
}

impl Extension {
    fn take(&mut self, record: &Value) -> io::Result<()> {
        let id = record["id"].clone();
        match record["type"].as_str().unwrap_or_default() {
            "hello" => answer(&id, json!({"protocol": 1})),
            "load" => self.load(id, record),
            "hook" => self.tool_call(id, &record["event"]),
            "tool.execute" => {
                let count = record["params"]["text"].as_str().unwrap_or_default().split_whitespace().count();
                let content = json!([{"type": "text", "text": count.to_string()}]);
                answer(&id, json!({"content": content, "details": {"count": count}}))
            }
            "command.run" => {
                let text = record["args"].as_str().unwrap_or_default().to_uppercase();
                self.send(json!({"type": "ui", "method": "notify", "message": text, "notifyType": "info"}))?;
                answer(&id, Value::Null)
            }
            "result" => match id.as_u64().and_then(|id| self.waiting.remove(&id)) {
                Some(then) => then(self, record["value"].clone()),
                None => Ok(()),
            },
            "bind" | "ping" | "shutdown" => answer(&id, Value::Null),
            _ => Ok(()),
        }
    }

    fn load(&mut self, id: Value, record: &Value) -> io::Result<()> {
        let ext = record["extensions"][0]["ext"].clone();
        self.session = (record["epoch"].clone(), ext.clone());
        let text =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let tool = json!({
            "name": "count_words", "description": "Counts the words of a text",
            "promptSnippet": "count the words of a text", "parameters": text,
        });
        self.send(json!({"type": "register", "kind": "handler", "h": 1, "event": "tool_call"}))?;
        self.send(json!({"type": "register", "kind": "tool", "def": tool}))?;
        let about = "Shows its text in capitals";
        self.send(json!({"type": "register", "kind": "command", "name": "shout", "description": about}))?;
        answer(&id, json!({"extensions": [{"ext": ext, "ok": true}]}))
    }

    fn tool_call(&mut self, id: Value, event: &Value) -> io::Result<()> {
        let verdict = |value: Value| json!({"returns": [{"h": 1, "value": value}]});
        let command = event["input"]["command"].as_str().unwrap_or_default();
        if event["toolName"] != "bash" || !command.contains("rm -rf") {
            return answer(&id, verdict(Value::Null));
        }
        self.calls += 1;
        let (number, within) = (self.calls, id.clone());
        let then: Continuation = Box::new(move |_, yes| {
            let no = json!({"block": true, "reason": "The user said no."});
            answer(&id, verdict(if yes == true { Value::Null } else { no }))
        });
        self.waiting.insert(number, then);
        let params = json!({"title": "Delete?", "message": command});
        self.send(json!({
            "id": number, "type": "call", "method": "ui.confirm", "params": params, "within": within,
        }))
    }

    /// Sends a record that names this extension.
    fn send(&self, mut record: Value) -> io::Result<()> {
        (record["epoch"], record["ext"]) = self.session.clone();
        write(&record)
    }
}

fn answer(id: &Value, value: Value) -> io::Result<()> {
    write(&json!({"type": "result", "id": id, "ok": true, "value": value}))
}

fn write(record: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{record}")?;
    output.flush()
}
