//! Laws of the layout: how a text is cut does not matter, no row is too wide, nothing steers a terminal, nothing is lost.

use agentd_markdown::{Line, MarkdownStream, render, write_ansi};
use agentd_protocol::terminal_text::steers;
use proptest::prelude::*;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Pieces that Markdown is made of, and some that steer terminals.
fn markdown() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "# ",
        "## ",
        "===",
        "---",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "2) ",
        "[ ] ",
        "[x] ",
        "> ",
        ">",
        "```",
        "```rust",
        "~~~",
        "    ",
        "  ",
        "\t",
        "|",
        " | ",
        "|---|:-:|",
        "\n",
        "\n\n",
        "\n",
        "\r\n",
        "**",
        "*",
        "_",
        "__",
        "~~",
        "`",
        "``",
        "[",
        "]",
        "](",
        "](https://x.y)",
        "![",
        ")",
        "<",
        ">",
        "<div>",
        "<b>",
        "</b>",
        "<br>",
        "<!--",
        "-->",
        "<https://a.b>",
        "&amp;",
        "&#27;",
        "\\",
        "\\|",
        "  \n",
        "https://x.y/z",
        "www.a.b",
        "word",
        "漢字",
        "。",
        "e\u{301}",
        "👩\u{200d}👧",
        "❤\u{fe0f}",
        "\u{1b}[2J",
        "\u{9b}",
        "\u{202e}",
        "\0",
        "fn main() {",
        "\"text\"",
        "// c",
        "/* c",
        "*/",
        "'",
        "1234",
        " ",
        " ",
        "{\"a\": 1}",
        "@@ -1 +1 @@",
        "+a",
        "-b",
    ]);
    let other = prop_oneof![5 => pieces.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => "[a-z ]{0,90}"];
    prop::collection::vec(other, 0..40).prop_map(|pieces| pieces.concat())
}

/// The text in deltas that end at the given places.
fn cut(text: &str, places: &[prop::sample::Index]) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = places.iter().map(|place| place.index(chars.len() + 1)).collect();
    places.extend([0, chars.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| chars[pair[0]..pair[1]].iter().collect()).collect()
}

fn streamed(pieces: &[String], width: usize) -> Vec<Line> {
    let mut stream = MarkdownStream::new(width);
    let mut lines = Vec::new();
    for piece in pieces {
        stream.push(piece);
        let _ = stream.open_lines();
        lines.extend(stream.take_finished());
    }
    lines.extend(stream.finish());
    lines
}

/// The columns in terminals that add up characters, and in those that know sequences.
fn widths(text: &str) -> [usize; 2] {
    [text.chars().map(|c| c.width().unwrap_or(0)).sum(), text.width()]
}

fn check_lines(lines: &[Line], width: usize) -> Result<(), TestCaseError> {
    for line in lines {
        let text = line.text();
        let is_single = width == 1 && widths(&text).into_iter().all(|columns| columns <= 2);
        prop_assert!(
            is_single || widths(&text).into_iter().all(|columns| columns <= width),
            "{:?} is wider than {}",
            text,
            width
        );
        prop_assert!(!text.contains(|c| steers(c) || c == '\n' || c == '\t'), "{:?}", text);
        let mut bytes = String::new();
        write_ansi(line, true, &mut bytes);
        prop_assert!(only_our_sequences(&bytes), "{:?}", bytes);
    }
    Ok(())
}

/// Whether the bytes have no sequences but styles and hyperlinks.
fn only_our_sequences(bytes: &str) -> bool {
    let mut parts = bytes.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    !first.contains(char::is_control)
        && parts.all(|part| {
            let is_style = part.starts_with('[')
                && part
                    .trim_start_matches(['[', ';', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                    .starts_with('m');
            let is_link = part.starts_with("]8;;") || part.starts_with('\\');
            (is_style || is_link) && !part.contains(char::is_control)
        })
}

/// The letters and digits of the rows.
fn letters(lines: &[Line]) -> String {
    lines
        .iter()
        .flat_map(|line| line.text().chars().filter(|c| c.is_ascii_alphanumeric()).collect::<Vec<_>>())
        .collect()
}

/// Documents of words, each of them there once, in all elements.
fn document() -> impl Strategy<Value = String> {
    let templates = prop::sample::select(vec![
        "# @\n",
        "## @ *@* ##\n",
        "@ @ **@ @** `@` @\n",
        "@ @\n@\n===\n",
        "- @\n- @ @\n  @\n",
        "- @\n  - @\n    - @\n",
        "1. @\n\n   @\n2. @\n",
        "- [ ] @\n- [x] @\n",
        "> @\n> @\n>> @\n",
        "```rust\nlet @ = \"@\"; // @\n@\n```\n",
        "~~~\n@\n",
        "\n    @\n\n    @\n",
        "| @ | @ |\n|---|:-:|\n| @ | **@** @ |\n| @ | @ | @ |\n",
        "| @ | @ | @ | @ |\n|-|-|-|-|\n",
        "@\n@ | @\n--|--\n@ | `@`\n",
        "<div>\n@ <b>@</b>\n</div>\n",
        "@ <i>@</i> @\n",
        "[@ *@*](https://@.x/@) @\n",
        "![@](@.png)\n",
        "<https://@.x> https://@.x/@, @\n",
        "@  \n@\\\n@\n",
        "~~@~~ __@__ ***@***\n",
        "*@ **@ _@ `@ [@ ![@ [@](@ <@\n",
        "@ | @\n",
        "> - @\n>   1. @\n>\n> @\n",
        "@\n- @\n@\n1. @\n",
        "```\n@\n",
        "\n",
        "\n\n",
        "---\n",
        "* * *\n",
        "@@@@@@@@@@@@@@@@@@@@\n",
    ]);
    prop::collection::vec(templates, 1..12).prop_map(|templates| {
        let mut text = String::new();
        let mut count = 0;
        for c in templates.concat().chars() {
            if c == '@' {
                count += 1;
                text.push_str(&format!("w{count}x"));
            } else {
                text.push(c);
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cuts_do_not_matter(text in markdown(), places in prop::collection::vec(any::<prop::sample::Index>(), 0..12), width in 0usize..90) {
        let whole = render(&text, width);
        prop_assert_eq!(&streamed(&cut(&text, &places), width), &whole);
        let each: Vec<String> = text.chars().map(String::from).collect();
        prop_assert_eq!(&streamed(&each, width), &whole);
    }

    #[test]
    fn cuts_of_long_texts_do_not_matter(
        piece in markdown(),
        times in 1usize..200,
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        width in 1usize..90,
    ) {
        let text = piece.replace('\n', " ").repeat(times) + &piece.repeat(times / 4);
        let lines = render(&text, width);
        prop_assert_eq!(&streamed(&cut(&text, &places), width), &lines);
        check_lines(&lines, width)?;
    }

    #[test]
    fn rows_fit_and_steer_nothing(text in markdown(), width in 1usize..90) {
        check_lines(&render(&text, width), width)?;
        let mut stream = MarkdownStream::new(width).with_hyperlinks();
        for piece in text.split_inclusive(' ') {
            stream.push(piece);
            check_lines(stream.open_lines(), width)?;
        }
        check_lines(&stream.finish(), width)?;
    }

    #[test]
    fn any_text_is_laid_out(text in any::<String>(), width in 1usize..50) {
        check_lines(&render(&text, width), width)?;
    }

    #[test]
    fn no_word_is_lost(text in document(), width in 1usize..100) {
        let lines = render(&text, width);
        let shown = letters(&lines);
        let mut count = 1;
        while text.contains(&format!("w{count}x")) {
            // At least once: a title of a table stands before each cell where columns are too narrow.
            prop_assert!(shown.contains(&format!("w{count}x")), "word {} of {:?} in {:?}", count, text, lines.iter().map(Line::text).collect::<Vec<_>>());
            count += 1;
        }
    }
}
