//! Estimates, from their text, how much memory compiled rules take.
//!
//! A rule that is a name, a path or `*.end` takes about a kilobyte. Any other becomes a regular expression, and all
//! expressions of a file one automaton: up to 800 bytes for each byte of its rules while it is built (measured with
//! stars, classes, question marks, braces and `**/`), and half of that afterwards.

/// The longest line of an ignore file that is used, in bytes. Paths are no longer.
pub const MAX_LINE_BYTES: usize = 4096;

/// The most rules in a file.
pub const MAX_LINES: usize = 20_000;

/// The most bytes of rules in a file that become regular expressions: 64 KiB, some thousand rules.
pub const MAX_EXPRESSION_BYTES: usize = 64 << 10;

/// Bytes of memory for each rule.
const BYTES_PER_RULE: u64 = 1 << 10;

/// Bytes of memory for each byte of an expression, while the automaton is built.
const BYTES_PER_EXPRESSION_BYTE: u64 = 800;

/// Why rules are not compiled. The text is the end of a sentence that begins with the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooManyRules {
    /// The file is longer than [`MAX_BYTES`](crate::MAX_BYTES), where it is not opened by this crate.
    #[error("has more than {} bytes", crate::MAX_BYTES)]
    Bytes,
    /// A line is longer than [`MAX_LINE_BYTES`].
    #[error("has a line of more than {MAX_LINE_BYTES} bytes")]
    Line,
    /// There are more rules than [`MAX_LINES`].
    #[error("has more than {MAX_LINES} rules")]
    Lines,
    /// There are more wildcards than [`MAX_EXPRESSION_BYTES`] hold.
    #[error("has more rules with wildcards than {MAX_EXPRESSION_BYTES} bytes")]
    Expressions,
    /// The ignore files of a search have too many rules together.
    #[error("has more rules than there is room for beside those of the other ignore files")]
    Together,
}

/// The memory that the rules of a text take at most, in bytes: an estimate from above, in one pass over the text.
///
/// # Errors
/// [`TooManyRules`], but for [`TooManyRules::Together`].
pub fn cost(text: &str) -> Result<u64, TooManyRules> {
    let (mut rules, mut expressions) = (0, 0);
    for line in text.lines() {
        if line.len() > MAX_LINE_BYTES {
            return Err(TooManyRules::Line);
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        rules += 1;
        if rules > MAX_LINES {
            return Err(TooManyRules::Lines);
        }
        if is_expression(line) {
            // Room for a path before it.
            expressions += line.len() + 8;
            if expressions > MAX_EXPRESSION_BYTES {
                return Err(TooManyRules::Expressions);
            }
        }
    }
    Ok(rules as u64 * BYTES_PER_RULE + expressions as u64 * BYTES_PER_EXPRESSION_BYTE)
}

/// Whether a rule may become a regular expression: it has a wildcard other than a star before a file ending.
fn is_expression(rule: &str) -> bool {
    let rule = rule.strip_prefix('!').unwrap_or(rule);
    let ending = rule.strip_prefix("*.").filter(|ending| !ending.contains(['.', '/']));
    ending.unwrap_or(rule).contains(['*', '?', '[', '{', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cheap_and_expressions_dear() {
        assert_eq!(cost("# comment\n\nname\n/a/b\n*.o\n!*.keep\nbuild/\n"), Ok(5 * BYTES_PER_RULE));
        for rule in ["a*b", "*.tar.g?", "[a-c]", "{a,b}", "**/x", "a\\b", "*.d/*"] {
            assert!(cost(rule).unwrap() > 5 * BYTES_PER_RULE, "{rule}");
        }
    }

    #[test]
    fn bounds_are_those_of_the_page() {
        let rules = |number: usize, rule: &str| cost(&format!("{rule}\n").repeat(number));
        assert!(rules(MAX_LINES, "name").is_ok());
        assert_eq!(rules(MAX_LINES + 1, "name"), Err(TooManyRules::Lines));
        assert_eq!(rules(MAX_LINES, "a*b?[c"), Err(TooManyRules::Expressions));
        assert!(rules(1000, "some*thing?[a-c].x").is_ok());
        assert_eq!(cost(&"x".repeat(MAX_LINE_BYTES + 1)), Err(TooManyRules::Line));
    }
}
