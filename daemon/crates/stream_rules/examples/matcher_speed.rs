//! What a delta costs with 20 rules: `cargo run --release -p agentd-stream-rules --example matcher_speed`.

#![expect(clippy::print_stdout, reason = "a measurement for the terminal")]

use std::{sync::Arc, time::Instant};

use agentd_stream_rules::{AnswerWatch, RuleText, StreamRules};

const CONDITIONS: [&str; 20] = [
    r"\.unwrap\(\)",
    r"\.expect\(",
    r"println!\(",
    r"(?i)\btodo\b",
    r"(?i)fixme",
    r"unsafe\s*\{",
    r"#\[allow\(",
    r"std::process::exit",
    r"thread::sleep",
    r"(?m)^use .*::\*;",
    r"panic!\(",
    r"Box<dyn Error>",
    r"\bas u8\b",
    r"lazy_static!",
    r"\.clone\(\)\.clone\(\)",
    r"(?s)match .{0,40}_ => \{\}",
    r"extern crate",
    r"mem::transmute",
    r"(?i)password\s*=",
    r"https?://[a-z0-9.-]+/secret",
];

fn main() {
    let rules = CONDITIONS.iter().enumerate().map(|(at, condition)| RuleText {
        name: format!("rule-{at}"),
        condition: vec![(*condition).to_owned()],
        scope: vec!["text".to_owned(), "thinking".to_owned(), "tool".to_owned()],
        ..RuleText::default()
    });
    let begun = Instant::now();
    let (rules, problems) = StreamRules::new(rules.collect());
    assert!(problems.is_empty(), "{problems:?}");
    let rules = Arc::new(rules);
    println!("compiling {} rules: {:.1} ms", CONDITIONS.len(), begun.elapsed().as_secs_f64() * 1e3);
    // Words of a programme's text, four to six letters each, as models send them.
    let source = include_str!("../src/watch.rs").replace("unwrap()", "unwrapped");
    let letters: Vec<char> = source.chars().collect();
    let deltas: Vec<String> = letters.chunks(5).map(|chunk| chunk.iter().collect()).collect();
    let json: Vec<String> = {
        let whole = serde_json::json!({"path": "src/a.rs", "content": source}).to_string();
        let letters: Vec<char> = whole.chars().collect();
        letters.chunks(5).map(|chunk| chunk.iter().collect()).collect()
    };
    for round in 0..3 {
        let mut watch = AnswerWatch::new(Arc::clone(&rules));
        let begun = Instant::now();
        let found: usize = deltas.iter().map(|delta| watch.text(0, delta).len()).sum();
        let text = begun.elapsed().as_secs_f64() * 1e9 / deltas.len() as f64;
        watch.call_begins(1, "write");
        let begun = Instant::now();
        let in_calls: usize = json.iter().map(|delta| watch.arguments(1, delta).len()).sum();
        let calls = begun.elapsed().as_secs_f64() * 1e9 / json.len() as f64;
        println!(
            "round {round}: {text:.0} ns a delta of text ({} deltas, {found} matches), {calls:.0} ns a delta of arguments ({in_calls} matches)",
            deltas.len()
        );
    }
}
