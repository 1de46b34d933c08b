//! How long a delta takes: `cargo run --release -p agentd-markdown --example speed`.
//!
//! Each line is a text of 20,000 deltas: what it costs to take a delta, to lay out the end that is open, and to make bytes of the rows
//! that are new, per delta, in CPU time (Linux alone tells it); and how much more the last fifth of the deltas takes than the first one.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::time::Duration;

use agentd_markdown::{Line, MarkdownStream, write_ansi};

const DELTAS: usize = 20_000;
const WIDTH: usize = 100;

const MIXED: &str = "## A heading of some words\n\nA paragraph with **bold text**, *emphasis*, `code()` and a [link](https://example.com/path) \
in it, long enough to take two or three rows of a terminal, as the paragraphs of most answers are. It ends here.\n\n\
- first item with a few words\n- second item, **longer**, so that it does not fit into one row of a terminal that has a hundred columns\n  - nested\n\
1. one\n2. two\n\n```rust\n/// Adds.\nfn add(a: u32, b: u32) -> u32 {\n    let text = \"string\"; // comment\n    a + b\n}\n```\n\n\
| Name | Type | What |\n|------|:----:|-----:|\n| `a` | u32 | the first |\n| `b` | u32 | the second |\n\n> A quote of a line.\n\n漢字かな交じり文。\n\n";

/// Deltas of about four characters, as models send them.
fn deltas(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().cycle().take(DELTAS * 4).collect();
    chars.chunks(4).map(|piece| piece.iter().collect()).collect()
}

/// The time that this process had a processor: other programs do not count.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or_default())
}

fn bytes(lines: &[Line], out: &mut String) {
    for line in lines {
        write_ansi(line, true, out);
    }
}

/// The time of each fifth of the deltas.
fn run(deltas: &[String], draws: bool) -> Vec<Duration> {
    let mut stream = MarkdownStream::new(WIDTH).with_hyperlinks();
    let mut out = String::new();
    deltas
        .chunks(DELTAS / 5)
        .map(|part| {
            let begun = cpu_time();
            for delta in part {
                stream.push(delta);
                out.clear();
                bytes(&stream.take_finished(), &mut out);
                if draws {
                    bytes(stream.open_lines(), &mut out);
                }
                std::hint::black_box(&out);
            }
            cpu_time() - begun
        })
        .collect()
}

fn main() {
    let texts = [
        ("mixed", MIXED.to_owned()),
        ("code of 20,000 lines", format!("```rust\n{}", "fn a() { b(\"c\") } // d\n".repeat(20_000))),
        ("an endless paragraph", "some words, **bold** and `code` and more ".repeat(2_000)),
        ("an endless line of code", format!("```js\n{}", "let a=\"b\";".repeat(9_000))),
        (
            "an endless table",
            format!("| a | b |\n|---|---|\n{}", "| some cell | `another` |\n".repeat(4_000)),
        ),
        ("an endless list", "- an item of some *words*\n".repeat(4_000)),
    ];
    println!("{:<26}{:>12}{:>12}{:>10}", "20,000 deltas of", "laid out", "and drawn", "growth");
    for (name, text) in texts {
        let deltas = deltas(&text);
        let per_delta =
            |times: &[Duration]| times.iter().sum::<Duration>().as_nanos() as f64 / DELTAS as f64 / 1000.0;
        let (laid_out, drawn) = (run(&deltas, false), run(&deltas, true));
        let growth = drawn[4].as_secs_f64() / drawn[0].as_secs_f64();
        println!("{name:<26}{:>9.2} µs{:>9.2} µs{growth:>10.2}", per_delta(&laid_out), per_delta(&drawn));
    }
}
