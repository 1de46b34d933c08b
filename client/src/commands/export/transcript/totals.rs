//! What a conversation took: tokens and money.

use agentd_protocol::{
    entry::EntryBody,
    message::{Message, Usage},
};

use crate::commands::export::markdown::code;

/// Sums by model, in the order in which the models came.
#[derive(Debug, Default)]
pub(super) struct Totals(Vec<(String, Sum)>);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    answers: u64,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost: f64,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost += other.cost;
    }
}

impl Totals {
    /// Counts what an entry took.
    pub(super) fn add(&mut self, entry: &EntryBody) {
        match entry {
            EntryBody::Message { message: Message::Assistant(answer) } => {
                self.count(&format!("{}/{}", answer.provider, answer.model), &answer.usage, 1);
            }
            EntryBody::Message { message: Message::ToolResult(result) } => {
                self.other(&format!("tool {}", result.tool_name), result.usage.as_ref());
            }
            EntryBody::Usage { provider, model, usage, .. } => {
                self.count(&format!("{provider}/{model}"), usage, 0);
            }
            EntryBody::Compaction { usage, .. } | EntryBody::BranchSummary { usage, .. } => {
                self.other("summaries", usage.as_ref());
            }
            _ => {}
        }
    }

    fn other(&mut self, what: &str, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.count(what, usage, 0);
        }
    }

    fn count(&mut self, what: &str, usage: &Usage, answers: u64) {
        let sum = Sum {
            answers,
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            cost: usage.cost.total,
        };
        match self.0.iter_mut().find(|(name, _)| name == what) {
            Some((_, known)) => known.add(&sum),
            None => self.0.push((what.to_owned(), sum)),
        }
    }

    /// A table with a row for each model, and one for all where there are several; nothing for nothing.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n---\n\n| model | answers | input | output | cache read | cache write | US$ |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        let mut all = Sum::default();
        for (name, sum) in &self.0 {
            // A bar ends a cell, in code too.
            text.push_str(&row(&code(&name.replace('|', "\\|")), sum));
            all.add(sum);
        }
        if self.0.len() > 1 {
            text.push_str(&row("all", &all));
        }
        text
    }
}

fn row(name: &str, sum: &Sum) -> String {
    let Sum { answers, input, output, cache_read, cache_write, cost } = sum;
    format!("| {name} | {answers} | {input} | {output} | {cache_read} | {cache_write} | {cost:.4} |\n")
}
