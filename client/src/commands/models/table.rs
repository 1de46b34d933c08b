//! The table of models.

use agentd_protocol::{
    model::Model,
    model_list::{ListedModel, ModelList},
};

const COLUMNS: usize = 10;

const HEAD: [&str; COLUMNS] =
    ["provider", "id", "context", "max out", "$/M in", "out", "cache read", "thinking", "images", "key"];

/// Columns of numbers stand at the right.
const RIGHT: std::ops::RangeInclusive<usize> = 2..=6;

/// The table, aligned, one line each; nothing for no models.
pub(super) fn table(list: &ModelList) -> String {
    if list.models.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; COLUMNS]> = list.models.iter().map(|model| row(list, model)).collect();
    let mut widths = HEAD.map(|cell| cell.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    line(&mut text, &widths, HEAD);
    for row in &rows {
        line(&mut text, &widths, row.each_ref().map(String::as_str));
    }
    text
}

fn line(text: &mut String, widths: &[usize; COLUMNS], cells: [&str; COLUMNS]) {
    for (at, (cell, width)) in cells.into_iter().zip(widths).enumerate() {
        let padding = " ".repeat(width - cell.chars().count());
        let parts = if RIGHT.contains(&at) { [&padding, cell] } else { [cell, &padding] };
        let gap = if at == 0 { "" } else { "  " };
        text.extend([gap, parts[0], parts[1]]);
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

fn row(list: &ModelList, listed: &ListedModel) -> [String; COLUMNS] {
    let model = &listed.model;
    [
        model.provider.clone(),
        model.id.clone(),
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

/// Such as `900`, `128K`, `1M`, `1.5M`; blank for what is not known.
fn tokens(count: u64) -> String {
    match count {
        0 => String::new(),
        1..1000 => count.to_string(),
        1000..999_500 => format!("{}K", (count + 500) / 1000),
        _ => format!("{}M", trimmed(format!("{:.1}", count as f64 / 1e6))),
    }
}

/// Dollars per million tokens; blank for 0, which also stands for a price that is not known.
fn price(dollars: f64) -> String {
    if dollars > 0.0 { trimmed(format!("{dollars:.4}")) } else { String::new() }
}

/// Without the zeros at the end of a fraction.
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

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
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
        let list = ModelList {
            models: vec![
                model("a", "one", true, cost),
                model("bee", "second", false, ModelCost::default()),
                model("c", "third", false, ModelCost::default()),
            ],
            providers: vec![
                provider("a", Some("A_KEY")),
                provider("bee", Some("B_KEY")),
                provider("c", None),
            ],
            without_key: 0,
            not_spoken: Vec::new(),
            warnings: Vec::new(),
        };
        let expected = "\
provider  id      context  max out  $/M in  out  cache read  thinking  images  key
a         one        200K      64K       3   15         0.3  no        no      yes
bee       second     200K      64K                           no        no      no: set B_KEY
c         third      200K      64K                           no        no      no
";
        assert_eq!(table(&list), expected);
        assert_eq!(table(&ModelList { models: Vec::new(), ..list }), "");
    }
}
