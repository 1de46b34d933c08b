//! Money and numbers of tokens, short enough for a table.

/// A sum of dollars; one too small for four digits is told from nothing.
pub fn money(sum: f64) -> String {
    if sum > 0.0 && sum < 0.00005 { "<$0.0001".to_owned() } else { format!("${sum:.4}") }
}

/// A number of tokens: `950`, `12.3k`, `4.5M`.
pub fn short_count(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..999_950 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!([0.0, 0.000_01, 1.23456].map(money), ["$0.0000", "<$0.0001", "$1.2346"]);
        assert_eq!([999, 12_345, 4_500_000].map(short_count), ["999", "12.3k", "4.5M"]);
    }
}
