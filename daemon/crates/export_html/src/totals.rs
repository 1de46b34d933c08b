//! Sums the usage of a session: tokens and money, by model.

use std::io;

use agentd_protocol::{
    entry::EntryBody,
    message::{Message, Usage},
};

use crate::{
    figures::{dollars, grouped},
    page::{Attr, Page},
};

/// Sums by model, in the order of first use.
#[derive(Debug, Default)]
pub(crate) struct Totals(Vec<Row>);

#[derive(Debug)]
struct Row {
    what: String,
    answers: u64,
    usage: Usage,
}

impl Totals {
    /// Adds the usage of an entry.
    pub(crate) fn add(&mut self, entry: &EntryBody) {
        match entry {
            EntryBody::Message { message: Message::Assistant(answer) } => {
                self.count(format!("{}/{}", answer.provider, answer.model), 1, &answer.usage);
            }
            EntryBody::Message { message: Message::ToolResult(result) } => {
                if let Some(usage) = &result.usage {
                    self.count(format!("tool {}", result.tool_name), 0, usage);
                }
            }
            EntryBody::Usage { provider, model, usage, .. } => {
                self.count(format!("{provider}/{model}"), 0, usage)
            }
            EntryBody::Compaction { usage: Some(usage), .. }
            | EntryBody::BranchSummary { usage: Some(usage), .. } => {
                self.count("summaries".into(), 0, usage);
            }
            _ => {}
        }
    }

    fn count(&mut self, what: String, answers: u64, usage: &Usage) {
        match self.0.iter_mut().find(|row| row.what == what) {
            Some(row) => {
                row.answers += answers;
                row.usage.add(usage);
            }
            None => self.0.push(Row { what, answers, usage: usage.clone() }),
        }
    }

    /// Writes a table with a row for each model, and one for the sum; nothing without usage.
    pub(crate) fn write(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        page.element("section", &[Attr::Class("totals"), Attr::Id("totals")], |page| {
            page.words("h2", &[], "Usage of all branches")?;
            page.element("table", &[], |page| {
                let heads = ["model", "answers", "input", "output", "cache read", "cache write", "cost"];
                row(page, "th", &heads.map(str::to_owned))?;
                let mut all = Row { what: "all".into(), answers: 0, usage: Usage::default() };
                for sum in &self.0 {
                    row(page, "td", &cells(sum))?;
                    all.answers += sum.answers;
                    all.usage.add(&sum.usage);
                }
                if self.0.len() > 1 { row(page, "td", &cells(&all)) } else { Ok(()) }
            })
        })
    }
}

fn cells(Row { what, answers, usage }: &Row) -> [String; 7] {
    let cost = dollars(usage.cost.total).unwrap_or_default();
    let counts = [*answers, usage.input, usage.output, usage.cache_read, usage.cache_write].map(grouped);
    let [answers, input, output, read, write] = counts;
    [what.clone(), answers, input, output, read, write, cost]
}

fn row(page: &mut Page<'_>, cell: &'static str, cells: &[String]) -> io::Result<()> {
    page.element("tr", &[], |page| cells.iter().try_for_each(|text| page.words(cell, &[], text)))?;
    page.ours("\n")
}
