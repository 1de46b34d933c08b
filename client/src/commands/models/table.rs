//! The table of models.

use agentd_protocol::{
    model::Model,
    model_list::{ListedModel, ModelList},
};

use crate::render::one_line;

const COLUMNS: usize = 10;

const HEAD: [&str; COLUMNS] =
    ["provider", "id", "context", "max out", "$/M in", "out", "cache read", "thinking", "images", "key"];

/// The columns that are aligned to the right.
const RIGHT: std::ops::RangeInclusive<usize> = 2..=6;

const KEY: usize = 9;

/// The columns that are left out when lines are too long, the least important first.
const DISPENSABLE: [usize; 4] = [6, 8, 7, 3];

type Cells = [String; COLUMNS];

/// The table, aligned, one line each; empty without models. With a width, columns are left out until the lines fit.
pub(super) fn table(list: &ModelList, width: Option<usize>) -> String {
    if list.models.is_empty() {
        return String::new();
    }
    let mut rows: Vec<Cells> = list.models.iter().map(|model| row(list, model)).collect();
    rows.insert(0, HEAD.map(str::to_owned));
    let mut shown: Vec<usize> = (0..COLUMNS).collect();
    let fits = |rows: &[Cells], shown: &[usize]| width.is_none_or(|width| length(rows, shown) <= width);
    for column in DISPENSABLE {
        if !fits(&rows, &shown) {
            shown.retain(|other| *other != column);
        }
    }
    if !fits(&rows, &shown) {
        // The variable to set is in the footer as well.
        for row in &mut rows {
            row[KEY].truncate(row[KEY].find(':').unwrap_or(row[KEY].len()));
        }
    }
    let widths = shown.iter().map(|column| column_width(&rows, *column)).collect::<Vec<_>>();
    rows.iter().map(|row| line(row, &shown, &widths)).collect()
}

/// The spaces between two columns.
const GAP: usize = 2;

fn length(rows: &[Cells], shown: &[usize]) -> usize {
    shown.iter().map(|column| column_width(rows, *column) + GAP).sum::<usize>().saturating_sub(GAP)
}

fn column_width(rows: &[Cells], column: usize) -> usize {
    rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
}

fn line(row: &Cells, shown: &[usize], widths: &[usize]) -> String {
    let cells = shown.iter().zip(widths).map(|(column, width)| {
        let cell = &row[*column];
        if RIGHT.contains(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    let text = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
    format!("{}\n", text.trim_end_matches(' '))
}

fn row(list: &ModelList, listed: &ListedModel) -> Cells {
    let model = &listed.model;
    [
        one_line(&model.provider),
        one_line(&model.id),
        tokens(model.context_window),
        tokens(model.max_tokens),
        price(model.cost.input),
        price(model.cost.output),
        price(model.cost.cache_read),
        yes(model.reasoning),
        yes(model.sees_images()),
        key(list, listed.has_key, model),
    ]
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn key(list: &ModelList, has_key: bool, model: &Model) -> String {
    let provider = list.providers.iter().find(|provider| provider.id == model.provider);
    match provider.and_then(|provider| provider.variable.as_deref()).filter(|_| !has_key) {
        Some(variable) => format!("no: set {variable}"),
        None => yes(has_key),
    }
}

/// Such as `900`, `128K`, `1M`, `1.5M`; empty for an unknown count.
fn tokens(count: u64) -> String {
    match count {
        0 => String::new(),
        1..1000 => count.to_string(),
        1000..999_500 => format!("{}K", (count + 500) / 1000),
        _ => format!("{}M", trimmed(format!("{:.1}", count as f64 / 1e6))),
    }
}

/// Dollars per million tokens; empty for 0, which also stands for an unknown price.
fn price(dollars: f64) -> String {
    if dollars > 0.0 { trimmed(format!("{dollars:.4}")) } else { String::new() }
}

fn trimmed(number: String) -> String {
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{model::ModelCost, model_list::ListedProvider};

    use super::*;

    #[test]
    fn numbers_are_short() {
        for (count, text) in [
            (0, ""),
            (512, "512"),
            (4096, "4K"),
            (128_000, "128K"),
            (131_072, "131K"),
            (999_499, "999K"),
            (999_500, "1M"),
            (1_048_576, "1M"),
            (1_500_000, "1.5M"),
            (10_000_000, "10M"),
        ] {
            assert_eq!(tokens(count), text);
        }
        for (dollars, text) in [(0.0, ""), (3.0, "3"), (1.25, "1.25"), (0.075, "0.075"), (150.0, "150")] {
            assert_eq!(price(dollars), text);
        }
    }

    fn list() -> ModelList {
        let model = |provider: &str, id: &str, has_key, cost| ListedModel {
            model: Model {
                id: id.into(),
                provider: provider.into(),
                context_window: 200_000,
                max_tokens: 64_000,
                cost,
                ..Model::placeholder()
            },
            has_key,
        };
        let cost = ModelCost { input: 3.0, output: 15.0, cache_read: 0.3, ..ModelCost::default() };
        let provider = |id: &str, variable: Option<&str>| ListedProvider {
            id: id.into(),
            name: id.into(),
            has_key: false,
            variable: variable.map(str::to_owned),
        };
        ModelList {
            catalogue: None,
            models: vec![
                model("a", "one", true, cost),
                model("bee", "sec\u{1b}ond", false, ModelCost::default()),
                model("c", "third", false, ModelCost::default()),
            ],
            providers: vec![
                provider("a", Some("A_KEY")),
                provider("bee", Some("B_KEY")),
                provider("c", None),
            ],
            without_key: 0,
            not_spoken: Vec::new(),
            similar: Vec::new(),
            warnings: Vec::new(),
        }
    }

    const WHOLE: &str = "\
provider  id       context  max out  $/M in  out  cache read  thinking  images  key
a         one         200K      64K       3   15         0.3  no        no      yes
bee       sec ond     200K      64K                           no        no      no: set B_KEY
c         third       200K      64K                           no        no      no
";

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        assert_eq!(table(&list(), None), WHOLE);
        assert_eq!(table(&ModelList { models: Vec::new(), ..list() }, None), "");
    }

    #[test]
    fn what_is_least_important_goes_first_where_there_is_no_room() {
        let longest = WHOLE.lines().map(str::len).max().unwrap();
        assert_eq!(table(&list(), Some(longest)), WHOLE);
        let head = |width| table(&list(), Some(width)).lines().next().unwrap().to_owned();
        assert!(!head(longest - 1).contains("cache read") && head(longest - 1).contains("images"));
        let narrow = "\
provider  id       context  $/M in  out  key
a         one         200K       3   15  yes
bee       sec ond     200K               no
c         third       200K               no
";
        for width in [44, 10, 0] {
            assert_eq!(table(&list(), Some(width)), narrow, "{width}");
        }
        let fits = |width: usize| table(&list(), Some(width)).lines().all(|line| line.len() <= width);
        assert!((44..120).all(fits));
    }
}
