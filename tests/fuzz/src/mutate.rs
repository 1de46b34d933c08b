//! Mutated inputs, determined by the seed.

/// Random numbers that a seed repeats (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 for 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or_default()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The longest input, in bytes. Long runs (`fuzz/run`) try longer ones.
const MOST_BYTES: usize = 16 * 1024;

/// Replacements of numbers.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e999",
    "-0.0",
    "1.5",
    "00",
];

/// Pieces of texts of all kinds.
const PIECES: [&[u8]; 40] = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"\"id\":",
    b"\"type\":",
    b"{}",
    b"[]",
    b"/*",
    b"*/",
    b"//",
    b"---\n",
    b": ",
    b"${",
    b"$@",
    b"\x1b[",
    b"\x1b]",
    b"<script>",
    b"</",
    b"&lt;",
    b"'",
    b"**",
    b"(?",
];

/// An input with one to six faults, with pieces from the inputs `all`.
pub(crate) fn mutated(input: &[u8], all: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=random.below(6) {
        fault(&mut out, all, words, random);
        out.truncate(MOST_BYTES);
    }
    out
}

fn fault(out: &mut Vec<u8>, all: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) {
    let at = random.below(out.len());
    let end = at + random.below(out.len() - at + 1).min(64);
    match random.below(12) {
        0 if at < out.len() => out[at] ^= 1 << random.below(8),
        1 if at < out.len() => out[at] = random.next().to_le_bytes()[0],
        2 => out.truncate(at),
        3 => drop(out.drain(at..end)),
        4 => {
            let piece = out[at..end].to_vec();
            let to = random.below(out.len());
            insert(out, to, &piece);
        }
        // Repeats a piece, for depth and nested loops.
        5 => {
            let piece = out[at..(at + 8).min(end)].to_vec();
            insert(out, at, &piece.repeat(1 << random.below(11)));
        }
        6 => {
            let other = random.of(all);
            let from = random.below(other.len());
            let to = from + random.below(other.len() - from + 1).min(256);
            let piece = other[from..to].to_vec();
            if random.below(2) == 0 {
                out.splice(at..end, piece);
            } else {
                insert(out, at, &piece);
            }
        }
        7 => number(out, at, random),
        8 => {
            let value =
                [0u32, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff][random.below(9)];
            let bytes = if random.below(2) == 0 { value.to_be_bytes() } else { value.to_le_bytes() };
            for (place, byte) in out.iter_mut().skip(at).zip(bytes) {
                *place = byte;
            }
        }
        // Removes or moves a line.
        9 => {
            let start = out[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
            let end =
                out[at..].iter().position(|byte| *byte == b'\n').map_or(out.len(), |feed| at + feed + 1);
            let line: Vec<u8> = out.drain(start..end).collect();
            if random.below(2) == 0 {
                let to = random.below(out.len());
                insert(out, to, &line);
            }
        }
        10 if !words.is_empty() => {
            let word = random.of(words).clone();
            insert(out, at, &word);
        }
        _ => insert(out, at, PIECES[random.below(PIECES.len())]),
    }
}

fn insert(out: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let room = MOST_BYTES.saturating_sub(out.len());
    let piece = &piece[..piece.len().min(room)];
    out.splice(at..at, piece.iter().copied());
}

/// Replaces the next number.
fn number(out: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = out[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) else { return };
    let end =
        out[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(out.len(), |found| start + found);
    out.splice(start..end, random.of(&NUMBERS).bytes());
}
