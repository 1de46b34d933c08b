//! Strings of JSON in wide steps: the bytes that mean something in a string (its end, an escape, a control character) as the bits of a word
//! for each block. In texts of programs an escape comes every few words, so that searching for each anew would cost more than
//! what lies between them.

/// The bytes of a block.
const BLOCK: usize = 32;

/// The bytes that are looked at at once. Most names and many values are shorter.
const HALF: usize = 16;

/// Every second bit.
const EVEN: u32 = 0x5555_5555;

/// The bytes of a block, or of a half, that mean something in a string, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Special {
    /// Quotes and control characters.
    ends: u32,
    backslashes: u32,
}

/// The rest of a string, from behind its first quote to behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StringEnd {
    pub(super) len: usize,
    /// There may be escapes in it. False means that there are none.
    pub(super) may_have_escapes: bool,
}

/// Finds the end of the string whose first quote is before `bytes`; `None` when it is no string of JSON.
#[inline]
pub(super) fn string_end(bytes: &[u8]) -> Option<StringEnd> {
    if let Some(half) = bytes.first_chunk::<HALF>() {
        let Special { ends, backslashes } = special_of_half(half);
        if ends != 0 && backslashes & before_first(ends) == 0 {
            let end = ends.trailing_zeros() as usize;
            return (half[end % HALF] == b'"').then_some(StringEnd { len: end + 1, may_have_escapes: false });
        }
    }
    string_end_by_blocks(bytes)
}

/// [`string_end`] of a string of any length.
fn string_end_by_blocks(bytes: &[u8]) -> Option<StringEnd> {
    let mut at = 0;
    let mut may_have_escapes = false;
    // Whether the last byte of the block before escapes the first one of this.
    let mut is_escaped = false;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let Special { mut ends, backslashes } = special(block);
        if backslashes != 0 || is_escaped {
            // They can be behind the end of the string, too.
            may_have_escapes = true;
            let escaped;
            (escaped, is_escaped) = escaped_by(backslashes, is_escaped);
            // Not the end of the string: an escaped quote. An escaped control character is refused with its escape.
            ends &= !escaped;
            check_escapes(bytes, at, block, escaped & before_first(ends))?;
        }
        if ends != 0 {
            let end = at + ends.trailing_zeros() as usize;
            return (bytes[end] == b'"').then_some(StringEnd { len: end + 1, may_have_escapes });
        }
        at += BLOCK;
    }
    if is_escaped {
        check_escape(bytes, at)?;
        at += 1;
    }
    loop {
        match bytes.get(at)? {
            b'"' => return Some(StringEnd { len: at + 1, may_have_escapes }),
            b'\\' => {
                may_have_escapes = true;
                check_escape(bytes, at + 1)?;
                at += 2;
            }
            0..b' ' => return None,
            _ => at += 1,
        }
    }
}

/// The bytes of a block that a backslash before them escapes, and whether the block ends with a backslash that escapes. Of a row of backslashes
/// every second one is escaped by the one before.
#[inline]
fn escaped_by(backslashes: u32, is_first_escaped: bool) -> (u32, bool) {
    let first = u32::from(is_first_escaped);
    let escaping = backslashes & !first;
    let behind = escaping << 1 | first;
    // A row that begins at an odd bit: adding it to the rows has it carry to behind its end, where its parity shows.
    let begins_at_odd = escaping & !EVEN & !behind;
    let (rows, is_carried) = begins_at_odd.overflowing_add(escaping);
    let escaped = (EVEN ^ rows << 1) & behind;
    (escaped, is_carried)
}

/// All bits below the first one that is set; all, where none is.
#[inline]
fn before_first(bits: u32) -> u32 {
    bits.wrapping_sub(1) & !bits
}

/// Looks at the bytes of the block at `from` that are escaped.
#[inline]
fn check_escapes(bytes: &[u8], from: usize, block: &[u8; BLOCK], mut escaped: u32) -> Option<()> {
    while escaped != 0 {
        let at = escaped.trailing_zeros() as usize;
        check_escaped(block[at % BLOCK], bytes, from + at)?;
        escaped &= escaped - 1;
    }
    Some(())
}

/// Whether what is behind a backslash makes an escape of JSON.
#[inline]
fn check_escape(bytes: &[u8], at: usize) -> Option<()> {
    check_escaped(*bytes.get(at)?, bytes, at)
}

/// [`check_escape`] of the byte that is there.
#[inline(always)]
fn check_escaped(byte: u8, bytes: &[u8], at: usize) -> Option<()> {
    match ESCAPES[usize::from(byte)] {
        Escape::Simple => Some(()),
        Escape::Unicode => {
            let digits = bytes.get(at + 1..)?.first_chunk::<4>()?;
            // All four, without a branch for each.
            digits.iter().fold(true, |are, digit| are & digit.is_ascii_hexdigit()).then_some(())
        }
        Escape::None => None,
    }
}

/// What a byte means behind a backslash.
#[derive(Clone, Copy)]
enum Escape {
    None,
    Simple,
    Unicode,
}

/// A table, since a text of a program has an escape every few words.
const ESCAPES: [Escape; 256] = {
    let mut table = [Escape::None; 256];
    let simple = *b"\"\\/bfnrt";
    let mut at = 0;
    while at < simple.len() {
        table[simple[at] as usize] = Escape::Simple;
        at += 1;
    }
    table[b'u' as usize] = Escape::Unicode;
    table
};

/// The quotes and control characters, and the backslashes.
#[inline]
fn special(block: &[u8; BLOCK]) -> Special {
    let (halves, _) = block.as_chunks::<HALF>();
    halves.iter().enumerate().fold(Special::default(), |found, (at, half)| {
        let here = special_of_half(half);
        Special {
            ends: found.ends | here.ends << (at * HALF),
            backslashes: found.backslashes | here.backslashes << (at * HALF),
        }
    })
}

/// Of a half, as the lower bits.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a session file of 91 MB is looked at in 60 ms less")]
fn special_of_half(half: &[u8; HALF]) -> Special {
    // SAFETY: SSE2 is part of every processor of this kind.
    unsafe { special_by_sse2(half) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn special_by_sse2(half: &[u8; HALF]) -> Special {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };
    let low_and_high = u128::from_le_bytes(*half);
    let text: __m128i = _mm_set_epi64x((low_and_high >> 64) as i64, low_and_high as i64);
    let quotes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'"' as i8));
    let backslashes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'\\' as i8));
    let controls = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
    Special {
        ends: _mm_movemask_epi8(_mm_or_si128(quotes, controls)) as u32,
        backslashes: _mm_movemask_epi8(backslashes) as u32,
    }
}

#[cfg(not(target_arch = "x86_64"))]
use special_by_words as special_of_half;

/// [`special_of_half`] without instructions of one processor: eight bytes a step.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn special_by_words(half: &[u8; HALF]) -> Special {
    const ONES: u64 = u64::MAX / 255;
    const LOW: u64 = ONES * 0x7f;
    // The highest bit of each byte that is zero, and of no other.
    let zeros = |word: u64| !((word & LOW).wrapping_add(LOW) | word | LOW);
    // The eight bits, one for each byte, side by side.
    let gathered = |found: u64| ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    let (words, _) = half.as_chunks::<8>();
    let (mut ends, mut backslashes) = (0, 0);
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let here = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word & (ONES * 0xe0));
        ends |= gathered(here) << (at * 8);
        backslashes |= gathered(zeros(word ^ (ONES * u64::from(b'\\')))) << (at * 8);
    }
    Special { ends, backslashes }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![3 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\'), 1 => Just(b'n'), 1 => 0..0x21_u8]
    }

    proptest! {
        #[test]
        fn both_ways_find_the_same(bytes in vec(byte(), BLOCK)) {
            let block: &[u8; BLOCK] = bytes.first_chunk().unwrap();
            let bits = |is_one: fn(u8) -> bool| {
                (0..BLOCK).filter(|at| is_one(bytes[*at])).fold(0, |bits, at| bits | 1 << at)
            };
            let ends = bits(|byte| matches!(byte, b'"' | 0..b' '));
            let expected = Special { ends, backslashes: bits(|byte| byte == b'\\') };
            prop_assert_eq!(special(block), expected);
            let half: &[u8; HALF] = bytes.first_chunk().unwrap();
            prop_assert_eq!(special_by_words(half), special_of_half(half));
        }

        /// Rows of backslashes of any length, across the ends of blocks.
        #[test]
        fn what_is_escaped_is_what_a_reader_from_the_left_finds(backslashes in any::<u32>(), others in any::<u32>(), first in any::<bool>()) {
            let backslashes = backslashes | others;
            let (mut expected, mut is_escaped) = (0, first);
            for bit in 0..BLOCK {
                if is_escaped {
                    expected |= 1 << bit;
                }
                is_escaped = !is_escaped && backslashes >> bit & 1 == 1;
            }
            prop_assert_eq!(escaped_by(backslashes, first), (expected, is_escaped));
        }

        /// Wherever an escape lies across the end of a block.
        #[test]
        fn strings_end_where_serde_says(before in 0..70_usize, piece in vec(byte(), 0..12), after in 0..70_usize) {
            let text = [&vec![b'x'; before][..], &piece, &vec![b'y'; after], b"\" z"].concat();
            let quoted = [b"\"", &text[..]].concat();
            let mut values = serde_json::Deserializer::from_slice(&quoted).into_iter::<&serde_json::value::RawValue>();
            let expected = values.next().and_then(Result::ok).map(|_| values.byte_offset() - 1);
            // What is no UTF-8 is looked at before.
            if std::str::from_utf8(&quoted).is_ok() {
                let found = string_end(&text);
                prop_assert_eq!(found.map(|end| end.len), expected);
                if let Some(StringEnd { len, may_have_escapes: false }) = found {
                    prop_assert!(!text[..len].contains(&b'\\'));
                }
            }
        }
    }
}
