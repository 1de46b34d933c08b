//! How long a page of a long session takes: `cargo run --release -p agentd-export-html --example export_speed`.
//!
//! Ten branches of ten thousand entries each: prompts, answers in Markdown with a tool call, and results.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for the terminal")]

use std::{io::Write, time::Instant};

use agentd_store::{LoadReport, Store, StoreOptions};
use serde_json::{Value, json};

const BRANCHES: usize = 10;
const ENTRIES: usize = 10_000;

/// Counts what is written, and the largest write.
#[derive(Default)]
struct Counter {
    bytes: usize,
    largest: usize,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        self.largest = self.largest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() {
    let mut file = String::new();
    let mut line = |value: Value| file.push_str(&format!("{value}\n"));
    line(
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-21T03:28:11.123Z", "cwd": "/w"}),
    );
    let mut entry = |id: &str, parent: Option<&str>, message: Value| {
        line(
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-21T03:28:11.123Z", "message": message}),
        );
    };
    entry("root", None, json!({"role": "user", "content": "root"}));
    for branch in 0..BRANCHES {
        let mut parent = "root".to_owned();
        for at in 0..ENTRIES {
            let id = format!("{branch}-{at}");
            let call = format!("c{branch}-{}", at / 4);
            let message = match at % 4 {
                0 => {
                    json!({"role": "user", "content": format!("Prompt {at}: please look at part {at} & say what it <is>.")})
                }
                1 => {
                    json!({"role": "assistant", "provider": "p", "model": "m", "stopReason": "toolUse", "usage": {"input": 1000, "output": 50},
                    "content": [{"type": "text", "text": format!("I will look at **part {at}** with `ls`:\n\n- one\n- two")},
                        {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": "ls -la part"}}]})
                }
                2 => json!({"role": "toolResult", "toolCallId": call, "toolName": "bash", "isError": false,
                    "content": [{"type": "text", "text": "drwxr-xr-x 2 u u 4096 Nov 21 03:28 <part>\n".repeat(20)}]}),
                _ => {
                    json!({"role": "assistant", "provider": "p", "model": "m", "stopReason": "stop", "usage": {"input": 1100, "output": 30},
                    "content": [{"type": "text", "text": format!("Part {at} is *fine*. See [here](https://example.org/{at}).")}]})
                }
            };
            entry(&id, Some(&parent), message);
            parent = id;
        }
    }
    let begun = Instant::now();
    let store = Store::new(StoreOptions::default());
    let (tree, report) = store.read_from("memory".as_ref(), &mut file.as_bytes()).unwrap();
    let read = begun.elapsed();
    let begun = Instant::now();
    let mut counter = Counter::default();
    agentd_export_html::write(&tree, &report, &mut counter).unwrap();
    assert_eq!(report, LoadReport::default());
    println!("{} entries, {:.1} MB", tree.entries().len(), file.len() as f64 / 1e6);
    println!("read     {:>7.1} ms", read.as_secs_f64() * 1e3);
    println!(
        "page     {:>7.1} ms, {:.1} MB, largest write {} bytes",
        begun.elapsed().as_secs_f64() * 1e3,
        counter.bytes as f64 / 1e6,
        counter.largest
    );
}
