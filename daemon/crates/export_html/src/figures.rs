//! Formats numbers, times and beginnings of texts for people.

use agentd_protocol::message::Usage;
use agentd_store::{iso_timestamp, parse_timestamp};

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 line`, `2 lines`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// US dollars; `None` for zero.
pub(crate) fn dollars(cost: f64) -> Option<String> {
    if !cost.is_finite() || cost <= 0.0 {
        None
    } else if cost < 0.0001 {
        Some("<$0.0001".into())
    } else if cost < 1.0 {
        Some(format!("${cost:.4}"))
    } else {
        Some(format!("${cost:.2}"))
    }
}

/// The usage of an answer, such as `1,200 in · 34 out · $0.0123`; empty for none.
pub(crate) fn usage(usage: &Usage) -> String {
    let counts = [
        (usage.input, "in"),
        (usage.output, "out"),
        (usage.cache_read, "cache read"),
        (usage.cache_write, "cache write"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
    parts.extend(dollars(usage.cost.total));
    parts.join(" · ")
}

/// `850 ms`, `12.3 s`, `2 min 5 s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{} min {} s", grouped(ms / 60_000), ms % 60_000 / 1_000),
    }
}

/// `12 bytes`, `3.4 kB`, `1.2 MB`.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => counted(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A time stamp in its exact form, and for people: `2026-11-21 03:28:11`, in UTC. `None` for other texts.
pub(crate) fn time(timestamp: &str) -> Option<(String, String)> {
    let exact = iso_timestamp(parse_timestamp(timestamp)?);
    let shown = exact.split_once('.').map_or(exact.as_str(), |(seconds, _)| seconds).replace('T', " ");
    Some((exact, shown))
}

/// The first non-blank line of a text, cut to `length` characters.
pub(crate) fn first_line(text: &str, length: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::Cost;

    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!((counted(1, "line"), counted(2000, "line")), ("1 line".into(), "2,000 lines".into()));
    }

    #[test]
    fn money_is_never_rounded_to_nothing() {
        let shown = |cost| dollars(cost).unwrap_or_default();
        assert_eq!(
            [0.0, 0.000_01, 0.0123, 2.345, f64::NAN].map(shown),
            ["", "<$0.0001", "$0.0123", "$2.35", ""]
        );
    }

    #[test]
    fn usage_leaves_out_what_was_not_used() {
        let cost = Cost { total: 0.5, ..Cost::default() };
        let spent = Usage { input: 1200, cache_read: 7, cost, ..Usage::default() };
        assert_eq!(usage(&spent), "1,200 in · 7 cache read · $0.5000");
        assert_eq!(usage(&Usage::default()), "");
    }

    #[test]
    fn times_and_sizes() {
        assert_eq!([5, 1500, 125_000].map(duration), ["5 ms", "1.5 s", "2 min 5 s"]);
        assert_eq!([1, 1500, 2_500_000].map(size), ["1 byte", "1.5 kB", "2.5 MB"]);
        let (exact, shown) = time("2026-11-21T03:28:11.123Z").unwrap();
        assert_eq!((exact.as_str(), shown.as_str()), ("2026-11-21T03:28:11.123Z", "2026-11-21 03:28:11"));
        assert_eq!(time("yesterday"), None);
    }

    #[test]
    fn a_first_line_is_short() {
        assert_eq!(first_line("\n  \n  two words here\nmore", 9), "two words…");
        assert_eq!(first_line("äöü", 3), "äöü");
        assert_eq!(first_line("", 3), "");
    }
}
