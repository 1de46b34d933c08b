//! An extension for tests: a host of the extension protocol on standard input and output, which does what its script says.
//!
//! `extension_test_host SCRIPT LOG`: the script is a JSON object. `handlers` has an action for each event, `tools` and `commands` for each name; `load` may hold an `error` or a `crash`.
//! `registers` is a list of further registrations, `oauth` has an action for each step of a login, and `requests` has an action for each type of request; `events` of it are those of a stream. A handler's `once` is its value the first time. A tool's `def` and `has` are part of its registration, and `prepared` is what it makes of arguments. `ops` has an action for the number of each function that can be called, with `data` besides, pieces of output in base64.
//! `agent` has `handlers` and `tools` of sessions that it opens, in the same form, without calls; they are served through channels.
//! An action is an object: `calls` are made first, a list of `[method, params]`, then `cancelled_calls`, which are given up at once, then come `registers`; then `crash` ends the host with that code, `hang` waits for ever, `throw` fails with that text; else `value` is returned, and `event` as what
//! changed in place. A tool has `updates` besides, partial results of so many numbers, and `until_cancelled`. A step of a login has `until_cancelled`, `obeys` (a call that is refused fails it, with that text) and `takes_answer`: the field of its value that the answer to the last question takes. Every request, every answer to a call and every note is a line of the log.

use std::{
    env,
    fs::{File, OpenOptions},
    io::{self, Lines, StdinLock, Write as _},
    process, thread,
};

use serde_json::{Value, json};

struct Host {
    input: Lines<StdinLock<'static>>,
    log: File,
    /// The file of the script, which is read again where a load says so.
    path: String,
    script: Value,
    epoch: Value,
    /// The id of its extension.
    ext: Value,
    last_call: u64,
    /// The name of each handler's event, by its number.
    handlers: Vec<String>,
    cancelled: Vec<u64>,
    /// The answer to the last call that had one.
    last_answer: Value,
    /// Why the last call was refused, if it was.
    refusal: Option<String>,
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let script = std::fs::read_to_string(&args[1])?;
    let log = OpenOptions::new().create(true).append(true).open(&args[2])?;
    let mut host = Host {
        input: io::stdin().lines(),
        log,
        path: args[1].clone(),
        script: serde_json::from_str(&script)?,
        epoch: Value::Null,
        ext: Value::Null,
        last_call: 0,
        handlers: Vec::new(),
        cancelled: Vec::new(),
        last_answer: Value::Null,
        refusal: None,
    };
    while let Some(record) = host.next()? {
        host.take(&record)?;
    }
    Ok(())
}

impl Host {
    /// The next record; `None` at the end of the input.
    fn next(&mut self) -> io::Result<Option<Value>> {
        let Some(line) = self.input.next() else { return Ok(None) };
        let record: Value = serde_json::from_str(&line?)?;
        self.write_log(&record)?;
        if record["type"] == "cancel" {
            self.cancelled.extend(record["id"].as_u64());
        }
        Ok(Some(record))
    }

    /// In one write: several hosts may write to one log.
    fn write_log(&mut self, record: &Value) -> io::Result<()> {
        self.log.write_all(format!("{record}\n").as_bytes())
    }

    fn send(&self, record: &Value) -> io::Result<()> {
        let mut output = io::stdout().lock();
        writeln!(output, "{record}")?;
        output.flush()
    }

    fn answer(&self, id: &Value, outcome: Result<Value, String>) -> io::Result<()> {
        self.send(&match outcome {
            Ok(value) => json!({"type": "result", "id": id, "ok": true, "value": value}),
            Err(message) => json!({"type": "result", "id": id, "ok": false, "error": {"message": message}}),
        })
    }

    fn register(&self, fields: Value) -> io::Result<()> {
        let mut record = json!({"type": "register", "epoch": self.epoch, "ext": self.ext});
        for (name, value) in fields.as_object().into_iter().flatten() {
            record[name] = value.clone();
        }
        self.send(&record)
    }

    /// Does what a record asks for.
    fn take(&mut self, record: &Value) -> io::Result<()> {
        let id = &record["id"];
        match record["type"].as_str().unwrap_or_default() {
            "hello" => {
                self.answer(id, Ok(json!({"protocol": self.script.get("protocol").unwrap_or(&json!(1))})))
            }
            "load" => self.load(record),
            "hook" => self.hook(record),
            "tool.execute" => {
                let name = record["tool"].as_str().unwrap_or_default().to_owned();
                let action = self.script["tools"][&name].clone();
                for number in 0..action["updates"].as_u64().unwrap_or_default() {
                    let partial = json!({"content": [{"type": "text", "text": number.to_string()}]});
                    self.send(&json!({"type": "tool.update", "call": id, "partial": partial}))?;
                }
                if action["until_cancelled"] == true {
                    while !self.cancelled.contains(&id.as_u64().unwrap_or_default()) {
                        let Some(record) = self.next()? else { return Ok(()) };
                        if record["type"] != "cancel" {
                            self.take(&record)?;
                        }
                    }
                }
                let outcome = self.act(&action, id)?;
                self.answer(id, outcome)
            }
            "command.run" => {
                let name = record["name"].as_str().unwrap_or_default().to_owned();
                let action = self.script["commands"][&name].clone();
                let outcome = self.act(&action, id)?;
                self.answer(id, outcome)
            }
            "tool.prepare" => {
                let name = record["tool"].as_str().unwrap_or_default();
                self.answer(id, Ok(self.script["tools"][name]["prepared"].clone()))
            }
            "ops.call" => {
                let action = self.script["ops"][record["cb"].to_string()].clone();
                for data in action["data"].as_array().into_iter().flatten() {
                    self.send(&json!({"type": "ops.data", "call": id, "data": data}))?;
                }
                let outcome = self.act(&action, id)?;
                self.answer(id, outcome)
            }
            "provider.oauth" => {
                let step = record["step"].as_str().unwrap_or_default().to_owned();
                let mut action = self.script["oauth"][&step].clone();
                for call in action["calls"].take().as_array().into_iter().flatten() {
                    self.call(call, id, false)?;
                    if let (true, Some(refusal)) = (action["obeys"] == true, self.refusal.take()) {
                        return self.answer(id, Err(refusal));
                    }
                }
                if action["until_cancelled"] == true {
                    while !self.cancelled.contains(&id.as_u64().unwrap_or_default()) {
                        let Some(record) = self.next()? else { return Ok(()) };
                        if record["type"] != "cancel" {
                            self.take(&record)?;
                        }
                    }
                }
                if let Some(field) = action["takes_answer"].as_str().map(str::to_owned) {
                    action["value"][field] = self.last_answer.take();
                }
                let outcome = self.act(&action, id)?;
                self.answer(id, outcome)
            }
            "channel" => self.take_in_channel(&record["channel"], &record["record"]),
            "bind" | "unload" | "ping" => self.answer(id, Ok(Value::Null)),
            "shutdown" => {
                self.answer(id, Ok(Value::Null))?;
                process::exit(0);
            }
            _ if id.is_null() => Ok(()),
            other if self.script["requests"].get(other).is_some() => {
                let action = self.script["requests"][other].clone();
                if action["until_cancelled"] == true {
                    for event in action["events"].as_array().into_iter().flatten() {
                        self.send(&json!({"type": "provider.event", "call": id, "event": event}))?;
                    }
                    while !self.cancelled.contains(&id.as_u64().unwrap_or_default()) {
                        let Some(record) = self.next()? else { return Ok(()) };
                        if record["type"] != "cancel" {
                            self.take(&record)?;
                        }
                    }
                    return self.answer(id, Ok(action["value"].clone()));
                }
                let outcome = self.act(&action, id)?;
                self.answer(id, outcome)
            }
            other => self.answer(id, Err(format!("no {other}"))),
        }
    }

    /// Does what a record of a session asks for that an extension has opened.
    fn take_in_channel(&mut self, channel: &Value, record: &Value) -> io::Result<()> {
        let send = |host: &Self, record: Value| {
            host.send(&json!({"type": "channel", "channel": channel, "record": record}))
        };
        let (id, agent) = (&record["id"], self.script["agent"].clone());
        let of = |kind: &str| agent[kind].as_object().cloned().unwrap_or_default();
        let value = match record["type"].as_str().unwrap_or_default() {
            "hello" => json!({"protocol": 1}),
            "load" => {
                let epoch = &record["epoch"];
                let extensions = record["extensions"].as_array().cloned().unwrap_or_default();
                let ext = &extensions[0]["ext"];
                for (number, event) in of("handlers").keys().enumerate() {
                    send(
                        self,
                        json!({"type": "register", "epoch": epoch, "ext": ext, "kind": "handler", "h": number, "event": event}),
                    )?;
                }
                for name in of("tools").keys() {
                    let def =
                        json!({"name": name, "description": "A test.", "parameters": {"type": "object"}});
                    send(
                        self,
                        json!({"type": "register", "epoch": epoch, "ext": ext, "kind": "tool", "def": def, "has": []}),
                    )?;
                }
                let loaded = extensions.iter().map(|it| json!({"ext": it["ext"], "ok": true, "ms": 1}));
                json!({"extensions": loaded.collect::<Vec<_>>()})
            }
            "hook" => {
                let handlers: Vec<Value> = of("handlers").into_iter().map(|(_, action)| action).collect();
                let numbers = record["handlers"].as_array().cloned().unwrap_or_default();
                let returned = numbers.iter().map(|h| {
                    let at = usize::try_from(h.as_u64().unwrap_or_default()).unwrap_or_default();
                    json!({"h": h, "value": handlers[at]["value"]})
                });
                json!({"returns": returned.collect::<Vec<_>>()})
            }
            "tool.execute" => agent["tools"][record["tool"].as_str().unwrap_or_default()]["value"].clone(),
            _ => Value::Null,
        };
        if id.is_null() {
            return Ok(());
        }
        send(self, json!({"type": "result", "id": id, "ok": true, "value": value}))
    }

    fn load(&mut self, record: &Value) -> io::Result<()> {
        self.epoch = record["epoch"].clone();
        if record["clearCache"] == true {
            self.script = serde_json::from_str(&std::fs::read_to_string(&self.path)?)?;
        }
        self.ext = record["extensions"][0]["ext"].clone();
        let ext = self.ext.clone();
        let action = self.script["load"].clone();
        if let Some(code) = action["crash"].as_i64() {
            process::exit(i32::try_from(code).unwrap_or(1));
        }
        if let Some(error) = action.get("error") {
            let loaded = json!({"extensions": [{"ext": ext, "ok": false, "error": error, "ms": 1}]});
            return self.answer(&record["id"], Ok(loaded));
        }
        let names = |value: &Value| -> Vec<String> {
            value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        self.handlers = names(&self.script["handlers"]);
        for (number, event) in self.handlers.iter().enumerate() {
            self.register(json!({"kind": "handler", "h": number, "event": event}))?;
        }
        for name in names(&self.script["tools"]) {
            let mut def = json!({
                "name": name, "description": format!("Does {name}."), "promptSnippet": format!("does {name}"),
                "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
            });
            let tool = &self.script["tools"][&name];
            for (field, value) in tool["def"].as_object().into_iter().flatten() {
                def[field] = value.clone();
            }
            let has = tool.get("has").cloned().unwrap_or_else(|| json!([]));
            self.register(json!({"kind": "tool", "def": def, "has": has}))?;
        }
        for registration in self.script["registers"].as_array().into_iter().flatten() {
            self.register(registration.clone())?;
        }
        for name in names(&self.script["commands"]) {
            self.register(
                json!({"kind": "command", "name": name, "description": "A test.", "completes": false}),
            )?;
        }
        self.answer(&record["id"], Ok(json!({"extensions": [{"ext": ext, "ok": true, "ms": 1}]})))
    }

    fn hook(&mut self, record: &Value) -> io::Result<()> {
        let mut returns = Vec::new();
        for number in record["handlers"].as_array().into_iter().flatten() {
            let at = usize::try_from(number.as_u64().unwrap_or_default()).unwrap_or_default();
            let name = self.handlers[at].clone();
            let mut action = self.script["handlers"][&name].clone();
            if let Some(value) = action.as_object_mut().and_then(|action| action.remove("once")) {
                action["value"] = value;
                if let Some(of_script) = self.script["handlers"][&name].as_object_mut() {
                    of_script.remove("once");
                }
            }
            let mut returned = json!({"h": number});
            match self.act(&action, &record["id"])? {
                Ok(value) => returned["value"] = value,
                Err(message) => returned["error"] = json!({"message": message}),
            }
            if let Some(event) = action.get("event") {
                returned["event"] = event.clone();
            }
            returns.push(returned);
        }
        self.answer(&record["id"], Ok(json!({"returns": returns})))
    }

    /// Makes a call. Gives it up at once where `is_cancelled`; its answer is awaited all the same.
    fn call(&mut self, call: &Value, within: &Value, is_cancelled: bool) -> io::Result<()> {
        self.last_call += 1;
        let id = self.last_call;
        let mut params = call[1].clone();
        // A call about the request itself.
        if params["call"] == "within" {
            params["call"] = within.clone();
        }
        self.send(&json!({
            "type": "call", "id": id, "epoch": self.epoch, "ext": self.ext, "method": call[0], "params": params,
            "within": within,
        }))?;
        if is_cancelled {
            self.send(&json!({"type": "cancel", "id": id}))?;
        }
        loop {
            let Some(record) = self.next()? else { return Ok(()) };
            if record["type"] == "result" && record["id"] == id {
                if !record["value"].is_null() {
                    self.last_answer = record["value"].clone();
                }
                self.refusal = record["error"]["message"].as_str().map(str::to_owned);
                return Ok(());
            }
            self.take(&record)?;
        }
    }

    /// Does an action of the script; its value.
    fn act(&mut self, action: &Value, within: &Value) -> io::Result<Result<Value, String>> {
        for call in action["calls"].as_array().into_iter().flatten() {
            self.call(call, within, false)?;
        }
        for call in action["cancelled_calls"].as_array().into_iter().flatten() {
            self.call(call, within, true)?;
        }
        for registration in action["registers"].as_array().into_iter().flatten() {
            self.register(registration.clone())?;
        }
        for event in action["events"].as_array().into_iter().flatten() {
            self.send(&json!({"type": "provider.event", "call": within, "event": event}))?;
        }
        for note in action["notes"].as_array().into_iter().flatten() {
            let mut record = json!({"type": "ui", "epoch": self.epoch, "ext": self.ext});
            for (name, value) in note.as_object().into_iter().flatten() {
                record[name] = value.clone();
            }
            self.send(&record)?;
        }
        if let Some(code) = action["crash"].as_i64() {
            process::exit(i32::try_from(code).unwrap_or(1));
        }
        if action["hang"] == true {
            loop {
                thread::park();
            }
        }
        Ok(match action["throw"].as_str() {
            Some(message) => Err(message.to_owned()),
            None => Ok(action.get("value").cloned().unwrap_or_default()),
        })
    }
}
