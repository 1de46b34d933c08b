use proptest::prelude::*;

use super::*;

const SMALL: TextLimits = TextLimits { lines: 3, bytes: 10 };

#[test]
fn lines_are_counted_without_the_empty_one_at_the_end() {
    for (text, lines) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2), ("\r\n", 1)] {
        assert_eq!(count_lines(text), lines, "{text:?}");
    }
}

#[test]
fn sizes_have_one_decimal() {
    let rows = [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KB"),
        (51_200, "50.0KB"),
        (1_048_575, "1024.0KB"),
        (1_048_576, "1.0MB"),
        (1_572_864, "1.5MB"),
    ];
    for (bytes, text) in rows {
        assert_eq!(format_size(bytes), text);
    }
}

/// What was kept, how many lines of it, by what it was cut, and whether a line alone was too long.
fn check(cut: Truncation, content: &str, lines: u64, by: Option<TruncatedBy>, lone_line: bool) {
    assert_eq!(cut.content, content);
    assert_eq!(cut.output_bytes, content.len() as u64);
    assert_eq!(cut.output_lines, lines);
    assert_eq!(cut.truncated_by, by);
    assert_eq!(cut.truncated, by.is_some());
    assert_eq!(cut.first_line_exceeds_limit || cut.last_line_partial, lone_line);
}

#[test]
fn the_head_is_whole_lines_from_the_start() {
    let head = |text| truncate_head(text, SMALL);
    check(head(""), "", 0, None, false);
    check(head("a\nb\nc\n"), "a\nb\nc\n", 3, None, false);
    check(head("a\nb\nc\nd"), "a\nb\nc", 3, Some(TruncatedBy::Lines), false);
    check(head("aaaa\nbbbb\ncc"), "aaaa\nbbbb", 2, Some(TruncatedBy::Bytes), false);
    check(head("0123456789\n"), "0123456789", 1, Some(TruncatedBy::Bytes), false);
    check(head("01234567890\nb"), "", 0, Some(TruncatedBy::Bytes), true);
    check(head("\n\n\n\n"), "\n\n", 3, Some(TruncatedBy::Lines), false);
}

#[test]
fn the_tail_is_whole_lines_from_the_end() {
    let tail = |text| truncate_tail(text, SMALL);
    check(tail("a\nb\nc\n"), "a\nb\nc\n", 3, None, false);
    check(tail("a\nb\nc\nd\n"), "b\nc\nd", 3, Some(TruncatedBy::Lines), false);
    check(tail("aa\nbbbb\ncccc"), "bbbb\ncccc", 2, Some(TruncatedBy::Bytes), false);
    check(tail("0123456789\n"), "0123456789", 1, Some(TruncatedBy::Bytes), false);
    check(tail("a\n01234567890"), "1234567890", 1, Some(TruncatedBy::Bytes), true);
    check(tail("ééééééx"), "ééééx", 1, Some(TruncatedBy::Bytes), true);
}

#[test]
fn the_whole_is_measured() {
    let cut = truncate_head("a\nb\nc\nd\n", SMALL);
    assert_eq!((cut.total_lines, cut.total_bytes, cut.max_lines, cut.max_bytes), (4, 8, 3, 10));
}

proptest! {
    #[test]
    fn both_limits_hold_and_what_is_kept_is_part_of_the_whole(
        text in "[aé€😀\n]{0,40}",
        lines in 1usize..6,
        bytes in 1usize..30,
    ) {
        let limits = TextLimits { lines, bytes };
        let head = truncate_head(&text, limits);
        prop_assert!(text.starts_with(&head.content));
        let tail = truncate_tail(&text, limits);
        prop_assert!(text.strip_suffix('\n').unwrap_or(&text).ends_with(&tail.content) || tail.content == text);
        for cut in [head, tail] {
            prop_assert!(cut.content.len() <= bytes);
            prop_assert!(cut.output_lines <= lines as u64);
            prop_assert_eq!(cut.truncated, cut.content != text);
            prop_assert_eq!(cut.truncated, cut.truncated_by.is_some());
        }
    }
}
