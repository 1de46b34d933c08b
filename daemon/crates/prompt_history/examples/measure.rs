//! Measures appending to, and searching in, a full prompt history.
//!
//! `cargo run --release -p agentd-prompt-history --example measure -- FOLDER`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a measurement for developers")]

use std::{path::PathBuf, time::Instant};

use agentd_prompt_history::{DeleteTarget, HistoryFile, HistoryQuery, NewPrompt};

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("a folder")).join("agentd-measure-history");
    let file = HistoryFile::of_agent_dir(&folder);
    let new = |number: usize| NewPrompt {
        prompt: format!(
            "Prompt {number}: {}",
            "look at the parser and fix what the test says. ".repeat(number % 8 + 1)
        ),
        created_at: 1_795_000_000_000,
        cwd: Some("/home/me/projects/agentd".to_owned()),
        session_id: Some("01a21a21-05f6-706b-826a-e95c5c17efee".to_owned()),
    };
    file.append((0..20_000).map(new).collect()).expect("prompts are written");
    let mut times: Vec<_> = (0..101)
        .map(|number| {
            let start = Instant::now();
            file.append(vec![new(number)]).expect("a prompt is written");
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("one prompt more: median {:.2?}", times[50]);
    for words in [&[][..], &["parser", "19999"], &["no such word"]] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let query = HistoryQuery { words: words.clone(), cwd: None, limit: 50 };
        let start = Instant::now();
        let found = file.search(&query).expect("prompts are found").len();
        println!("search of {words:?} in 20,000: {:.2?}, {found} found", start.elapsed());
    }
    let start = Instant::now();
    file.delete(&DeleteTarget::All).expect("prompts are deleted");
    println!("deleting all: {:.2?}", start.elapsed());
    std::fs::remove_dir_all(folder).expect("the folder can be removed");
}
