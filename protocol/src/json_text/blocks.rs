//! Strings of JSON in wide steps: the bytes that mean something in a string (its end, an escape, a control character) as the bits of a word
//! for each block. In texts of programs an escape comes every few words, so that searching for each anew would cost more than
//! what lies between them.

/// The bytes of a block.
const BLOCK: usize = 32;

/// The length of the rest of a string, from behind its first quote to behind its last; `None` when it is no string of JSON.
#[inline]
pub(super) fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let mut found = special(block);
        loop {
            if found == 0 {
                at += BLOCK;
                break;
            }
            let here = at + found.trailing_zeros() as usize;
            match bytes[here] {
                b'"' => return Some(here + 1),
                b'\\' => {
                    let behind = behind_escape(bytes, here)?;
                    if behind - at >= BLOCK {
                        at = behind;
                        break;
                    }
                    found &= u32::MAX << (behind - at);
                }
                _ => return None,
            }
        }
    }
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = behind_escape(bytes, at)?,
            0..b' ' => return None,
            _ => at += 1,
        }
    }
}

/// The place behind the escape whose backslash is at `at`.
#[inline]
fn behind_escape(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 6)
        }
        _ => None,
    }
}

/// A bit for each quote, backslash and control character.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a session file of 91 MB is looked at in 60 ms less")]
fn special(block: &[u8; BLOCK]) -> u32 {
    // SAFETY: SSE2 is part of every processor of this kind.
    unsafe { special_by_sse2(block) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn special_by_sse2(block: &[u8; BLOCK]) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };
    let (words, _) = block.as_chunks::<8>();
    let half = |low: [u8; 8], high: [u8; 8]| -> u32 {
        let text: __m128i = _mm_set_epi64x(i64::from_le_bytes(high), i64::from_le_bytes(low));
        let quotes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'"' as i8));
        let backslashes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'\\' as i8));
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
        let any = _mm_or_si128(_mm_or_si128(quotes, backslashes), controls);
        _mm_movemask_epi8(any) as u32
    };
    half(words[0], words[1]) | half(words[2], words[3]) << 16
}

#[cfg(not(target_arch = "x86_64"))]
use special_by_words as special;

/// [`special`] without instructions of one processor: eight bytes a step.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn special_by_words(block: &[u8; BLOCK]) -> u32 {
    const ONES: u64 = u64::MAX / 255;
    const LOW: u64 = ONES * 0x7f;
    // The highest bit of each byte that is zero, and of no other.
    let zeros = |word: u64| !((word & LOW).wrapping_add(LOW) | word | LOW);
    let (words, _) = block.as_chunks::<8>();
    let mut bits = 0;
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ (ONES * u64::from(b'"')))
            | zeros(word ^ (ONES * u64::from(b'\\')))
            | zeros(word & (ONES * 0xe0));
        // The eight bits, one for each byte, side by side.
        let gathered = (found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= (gathered as u32) << (at * 8);
    }
    bits
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
            let expected = (0..BLOCK)
                .filter(|at| matches!(bytes[*at], b'"' | b'\\' | 0..b' '))
                .fold(0, |bits, at| bits | 1 << at);
            prop_assert_eq!(special(block), expected);
            prop_assert_eq!(special_by_words(block), expected);
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
                prop_assert_eq!(string_len(&text), expected);
            }
        }
    }
}
