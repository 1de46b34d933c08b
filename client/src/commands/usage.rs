//! `agentctl usage`: what sessions spent. agentd reads the session files, and says what was spent.

use std::io;

use agentd_protocol::usage_report::{UsageGrouping, UsageReport, UsageRequest, UsageRow, UsageSum};

use super::ask_agentd;
use crate::{
    cli::UsageOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, columns, counted, cut, cut_begin, money, one_line, padded, short_count, short_id},
};

/// The widest bar, in characters.
const BAR: usize = 30;

/// The narrowest bar that says something.
const LEAST_BAR: usize = 6;

/// The width of names where nothing limits it.
const NAME: usize = 60;

/// The width of a day, and what other names get at least.
const LEAST_DAY: usize = 10;
const LEAST_NAME: usize = 16;

/// The blanks between columns.
const GAP: usize = 2;

/// Blue.
const BAR_COLOUR: &str = "34";

pub(crate) fn run(options: &UsageOptions) -> Exit {
    conclude(usage(options))
}

fn usage(options: &UsageOptions) -> Result<Exit, Fault> {
    let request = UsageRequest { by: options.by, days: options.since };
    let mut report: Option<UsageReport> = None;
    let mut take = |line| {
        report = Some(line);
        Ok::<(), io::Error>(())
    };
    ask_agentd::lines("--usage", &request, Exit::NoDaemon, &mut take)?.map_err(|error| {
        Fault::new(Exit::NoDaemon, format!("agentctl: agentd's report cannot be read: {error}"))
    })?;
    let report = report.ok_or_else(|| Fault::new(Exit::NoDaemon, "agentctl: agentd gave no report"))?;
    if options.json {
        return output::print_json(&report);
    }
    for problem in &report.unreadable {
        print_stderr(&format!("Warning: not counted: {}", one_line(problem)));
    }
    let text = table(&report, Screen::of_stdout());
    output::print(&text)
}

/// The table: a line for each sum, the dearest with the longest bar on a terminal, and the total.
fn table(report: &UsageReport, screen: Screen) -> String {
    if report.rows.is_empty() {
        let since = report.since.as_deref().map(|day| format!(" since {day}")).unwrap_or_default();
        return format!(
            "Nothing was spent{since} ({} looked at).\n",
            counted(report.files as usize, "session file")
        );
    }
    let numbers = |sum: &UsageSum| {
        let UsageSum { cost_usd, tokens, answers, tool_calls, .. } = sum;
        [money(*cost_usd), short_count(tokens.total), answers.to_string(), tool_calls.to_string()]
    };
    let mut cells = vec![["cost", "tokens", "answers", "calls"].map(str::to_owned)];
    cells.extend(report.rows.iter().map(|row| numbers(&row.sum)));
    cells.push(numbers(&report.total));
    let widths: [usize; 4] =
        std::array::from_fn(|column| cells.iter().map(|row| columns(&row[column])).max().unwrap_or(0));
    // The last columns go where the names would get too little.
    let sum = |shown: usize| widths[..shown].iter().map(|width| width + GAP).sum::<usize>();
    let least = if report.by == UsageGrouping::Day { LEAST_DAY } else { LEAST_NAME };
    let fits = |shown: &usize| screen.width.is_none_or(|width| sum(*shown) + least <= width);
    let shown = (1..=4).rev().find(fits).unwrap_or(1);
    let room = screen.width.map_or(NAME, |width| width.saturating_sub(sum(shown)).clamp(1, NAME));
    let mut names = vec![cut(report.by.as_str(), room)];
    names.extend(report.rows.iter().map(|row| name(report.by, row, room)));
    names.push(cut("total", room));
    let name_width = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let bar = match screen.width {
        _ if !screen.is_terminal => 0,
        Some(width) => width.saturating_sub(name_width + sum(shown) + GAP + 1).min(BAR),
        None => BAR,
    };
    let most = report.rows.iter().map(|row| weight(report, row)).fold(0.0, f64::max);
    let mut text = String::new();
    for (index, (name, row)) in names.iter().zip(&cells).enumerate() {
        let mut line = padded(name, name_width, false);
        for (number, width) in row.iter().zip(widths).take(shown) {
            line.push_str(&" ".repeat(GAP));
            line.push_str(&padded(number, width, true));
        }
        let of = index.checked_sub(1).and_then(|index| report.rows.get(index));
        if let Some(of) = of.filter(|_| bar >= LEAST_BAR && most > 0.0) {
            let length = (weight(report, of) / most * bar as f64).round() as usize;
            if length > 0 {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&screen.paint(BAR_COLOUR, &"█".repeat(length)));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What the bars show: money, or tokens where nothing cost any.
fn weight(report: &UsageReport, row: &UsageRow) -> f64 {
    if report.total.cost_usd > 0.0 { row.sum.cost_usd } else { row.sum.tokens.total as f64 }
}

fn name(by: UsageGrouping, row: &UsageRow, room: usize) -> String {
    let name = match by {
        UsageGrouping::Session => {
            let title = row.title.as_deref().unwrap_or("(no messages)");
            format!("{}  {}", short_id(&row.key), one_line(title))
        }
        _ if row.key.trim_matches('/').is_empty() && by != UsageGrouping::Project => "(not known)".to_owned(),
        _ => one_line(&row.key),
    };
    if by == UsageGrouping::Project { cut_begin(&name, room) } else { cut(&name, room) }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::session::TokenStats;

    use super::*;

    fn report(by: UsageGrouping, rows: &[(&str, f64, u64)]) -> UsageReport {
        let sum = |cost_usd: f64, total: u64| UsageSum {
            cost_usd,
            tokens: TokenStats { total, ..TokenStats::default() },
            answers: 3,
            tool_calls: 1,
            sessions: 1,
        };
        let total = rows.iter().fold((0.0, 0), |(cost, tokens), row| (cost + row.1, tokens + row.2));
        UsageReport {
            by,
            since: None,
            rows: rows
                .iter()
                .map(|(key, cost, tokens)| UsageRow {
                    key: (*key).to_owned(),
                    title: None,
                    sum: sum(*cost, *tokens),
                })
                .collect(),
            total: sum(total.0, total.1),
            files: 7,
            unreadable: Vec::new(),
        }
    }

    #[test]
    fn a_pipe_gets_a_plain_table_and_a_terminal_bars() {
        let report = report(UsageGrouping::Day, &[("2026-01-01", 1.0, 12_345), ("2026-01-02", 0.25, 999)]);
        let plain = "\
day            cost  tokens  answers  calls
2026-01-01  $1.0000   12.3k        3      1
2026-01-02  $0.2500     999        3      1
total       $1.2500   13.3k        3      1
";
        assert_eq!(table(&report, Screen::default()), plain);
        let screen = Screen { width: Some(56), colour: false, is_terminal: true };
        let bars = "\
day            cost  tokens  answers  calls
2026-01-01  $1.0000   12.3k        3      1  ██████████
2026-01-02  $0.2500     999        3      1  ███
total       $1.2500   13.3k        3      1
";
        assert_eq!(table(&report, screen), bars);
        assert!(table(&report, Screen { colour: true, ..screen }).contains("\x1b[34m███\x1b[0m"));
        assert_eq!(table(&report, Screen { width: Some(46), ..screen }), plain);
    }

    /// Names and bars in 40 to 200 columns; what does not fit is left out, the calls first.
    #[test]
    fn the_table_fits_the_terminal() {
        let wide = format!("/home/me/{}/project", "日本語の長い名前".repeat(9));
        let rows = [(wide.as_str(), 1234.5678, 999_999), ("/home/me/small", 0.00001, 12)];
        for by in [UsageGrouping::Day, UsageGrouping::Model, UsageGrouping::Session, UsageGrouping::Project] {
            let report = report(by, &rows);
            for width in [20, 30, 40, 60, 80, 200] {
                let text = table(&report, Screen { width: Some(width), colour: false, is_terminal: true });
                assert!(text.lines().all(|line| columns(line) <= width), "{width}\n{text}");
                assert!(text.contains("$1234.5678") && text.contains("<$0.0001"), "{text}");
                assert_eq!(text.contains("calls"), width >= 60, "{width}\n{text}");
            }
        }
        let narrow =
            table(&report(UsageGrouping::Project, &rows), Screen { width: Some(40), ..Screen::default() });
        let expected = "\
project                    cost  tokens
…の長い名前/project  $1234.5678    1.0M
/home/me/small         <$0.0001      12
total                $1234.5678    1.0M
";
        assert_eq!(narrow, expected);
    }

    #[test]
    fn foreign_names_stay_in_their_line_and_fit() {
        let long = format!("/home/\x1b[31m{}", "x".repeat(100));
        let report = report(UsageGrouping::Project, &[(&long, 0.5, 5_000_000)]);
        let text = table(&report, Screen { width: Some(80), colour: false, is_terminal: true });
        assert!(!text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("5.0M"));
    }

    #[test]
    fn nothing_is_said_in_words() {
        let mut nothing = report(UsageGrouping::Day, &[]);
        nothing.since = Some("2026-01-01".into());
        let said = table(&nothing, Screen::default());
        assert_eq!(said, "Nothing was spent since 2026-01-01 (7 session files looked at).\n");
    }
}
