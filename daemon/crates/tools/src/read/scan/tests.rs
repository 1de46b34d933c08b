use proptest::prelude::*;

use super::*;

/// Gives its bytes out in pieces of the sizes told, over and over.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes.next().unwrap_or(1).min(buffer.len()).min(self.bytes.len());
        buffer[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}

fn scanned(bytes: &[u8], range: Range, limits: TextLimits) -> Selection {
    match scan(bytes, range, limits, || false).unwrap() {
        Scanned::Text(selection) => selection,
        other => panic!("{other:?}"),
    }
}

const ALL: Range = Range { start: 0, limit: None };

#[test]
fn lines_are_those_between_line_feeds() {
    let check = |text: &str, start, limit, expected: &str, total| {
        let found = scanned(text.as_bytes(), Range { start, limit }, TextLimits::default());
        assert_eq!(
            (found.text.content.as_str(), found.total_lines),
            (expected, total),
            "{text:?} {start} {limit:?}"
        );
    };
    check("", 0, None, "", 1);
    check("a\nb\n", 0, None, "a\nb\n", 3);
    check("a\nb\n", 0, Some(2), "a\nb", 3);
    check("a\nb\n", 0, Some(3), "a\nb\n", 3);
    check("a\nb\n", 1, Some(1), "b", 3);
    check("a\nb\n", 2, None, "", 3);
    check("a\nb\n", 0, Some(0), "", 3);
    check("a\r\nb", 1, None, "b", 2);
    check("\u{feff}a\rb", 0, None, "\u{feff}a\rb", 1);
    check("a\nb", 7, None, "", 2);
}

#[test]
fn a_line_feed_is_found_in_whatever_block_it_is() {
    // Line feeds at the ends of blocks and around them.
    let at = [0, 4094, 4095, 4096, 8191, 12_287, 12_288, 20_000];
    let mut text = vec![b'x'; 20_001];
    at.iter().for_each(|at| text[*at] = b'\n');
    for (number, at) in (1..).zip(at) {
        assert_eq!(find_feed(&text, number), Ok(at));
    }
    assert_eq!(find_feed(&text, 9), Err(8));
    assert_eq!(find_feed(&text, u64::MAX), Err(8));
    assert_eq!((find_feed(&text, 0), find_feed(b"", 1)), (Err(8), Err(0)));
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    assert_eq!(scanned(b"a\xff\xe2\x82b", ALL, TextLimits::default()).text.content, "a\u{fffd}\u{fffd}b");
}

#[test]
fn a_stop_ends_the_reading() {
    assert_eq!(scan(io::repeat(b'x'), ALL, TextLimits::default(), || true).unwrap(), Scanned::Stopped);
}

#[test]
fn memory_is_bounded_by_what_can_be_shown() {
    let mut scan = Scan::new(ALL, TextLimits::default());
    for _ in 0..100 {
        scan.take(&[b'x'; CHUNK]);
    }
    assert!(scan.kept.capacity() < 4 * CHUNK);
    let found = scan.finish();
    assert!(found.text.first_line_exceeds_limit);
    assert_eq!(found.first_line_bytes, 100 * CHUNK as u64);
    assert_eq!(found.text.total_bytes, 100 * CHUNK as u64);
    assert_eq!(found.text.total_lines, 1);
}

proptest! {
    /// Streaming in pieces gives what the plain definition gives on the whole text at once.
    #[test]
    fn pieces_give_what_the_whole_gives(
        bytes in prop::collection::vec(
            prop::sample::select(b"aab\n\n\r\xe2\x82\xac\xf0\x9f\x98\x80\xff".to_vec()), 0..60),
        sizes in prop::collection::vec(1usize..9, 1..4),
        start in 0u64..8,
        limit in prop::option::of(0u64..8),
        lines in 1usize..8,
        max_bytes in 1usize..40,
    ) {
        let limits = TextLimits { lines, bytes: max_bytes };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let all: Vec<&str> = text.split('\n').collect();
        let from = (start as usize).min(all.len());
        let to = limit.map_or(all.len(), |limit| (from + limit as usize).min(all.len()));
        let wanted = all[from..to].join("\n");
        let expected = truncate_head(&wanted, limits);

        let pieces = Pieces { bytes: &bytes, sizes: sizes.into_iter().cycle() };
        // Read through `Scan` itself: `scan` fills the buffer for its image check first.
        let mut scan = Scan::new(Range { start, limit }, limits);
        let mut pieces = pieces;
        let mut buffer = [0; 8];
        loop {
            match pieces.read(&mut buffer).unwrap() {
                0 => break,
                size => scan.take(&buffer[..size]),
            }
        }
        let found = scan.finish();
        prop_assert_eq!(found.total_lines, all.len() as u64);
        prop_assert_eq!(found.first_line_bytes, wanted.split('\n').next().unwrap().len() as u64);
        // Which limit is named may differ where both are met by the same line feed.
        prop_assert_eq!(Truncation { truncated_by: None, ..found.text }, Truncation { truncated_by: None, ..expected });
    }
}
