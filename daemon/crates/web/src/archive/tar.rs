//! The headers of a TAR archive. Contents are passed over.

use std::io::{self, Read};

use super::listing::Listing;

/// Bytes of a block: headers are one, contents whole ones.
const BLOCK: usize = 512;

/// Bytes of a long name that are read.
const MAX_LONG: u64 = 64 << 10;

/// Entries that are looked at.
const MAX_ENTRIES: usize = 1_000_000;

/// Whether a file begins with the header of an entry: by the sum of its bytes, which also old archives have.
pub(super) fn is_header(start: &[u8]) -> bool {
    let Some(header) = start.first_chunk::<BLOCK>() else { return false };
    let is_of_sum = |byte: usize| (148..156).contains(&byte);
    let sum: u64 =
        header.iter().enumerate().map(|(at, byte)| if is_of_sum(at) { 32 } else { u64::from(*byte) }).sum();
    header[0] != 0 && number(&header[148..156]) == Some(sum)
}

/// Lists an archive; `may_end` says that the input may be cut at a limit.
///
/// # Errors
/// A clause: it begins with no header.
pub(super) fn list(mut input: impl Read, may_end: bool) -> Result<Listing, String> {
    let mut listing = Listing::default();
    let mut long_name: Option<String> = None;
    let mut header = [0; BLOCK];
    for _ in 0..MAX_ENTRIES {
        match input.read_exact(&mut header) {
            Ok(()) => {}
            Err(_) => {
                listing.is_cut = Some(if may_end {
                    "the archive is too long, or damaged"
                } else {
                    "the archive is cut off"
                });
                return Ok(listing);
            }
        }
        if header.iter().all(|byte| *byte == 0) {
            return Ok(listing);
        }
        if !is_header(&header) {
            listing.is_cut = Some("a header in it is damaged");
            return Ok(listing);
        }
        let size = number(&header[124..136]).unwrap_or(0);
        let padded = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64);
        match header[156] {
            // The name of the next entry: of GNU, and in the form of POSIX.
            kind @ (b'L' | b'x') => {
                let mut text = Vec::new();
                let taken = input.by_ref().take(size.min(MAX_LONG)).read_to_end(&mut text);
                let taken = taken.map_or(0, |count| count as u64);
                pass(&mut input, padded.saturating_sub(taken));
                long_name = if kind == b'L' { Some(text_of(&text)) } else { path_of(&text).or(long_name) };
                continue;
            }
            // Facts about all entries.
            b'g' => {}
            kind => {
                let name = long_name.take().unwrap_or_else(|| short_name(&header));
                let is_folder = kind == b'5' && !name.ends_with('/');
                listing.push(&if is_folder { format!("{name}/") } else { name }, size);
            }
        }
        pass(&mut input, padded);
    }
    listing.is_cut = Some("it has too many entries");
    Ok(listing)
}

/// Passes over some bytes. An end shows itself at the next header.
fn pass(input: &mut impl Read, bytes: u64) {
    let _ = io::copy(&mut input.by_ref().take(bytes), &mut io::sink());
}

/// A number in octal digits, or in the bytes of GNU for larger ones.
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let low = field.get(field.len().checked_sub(8)?..)?;
        return Some(u64::from_be_bytes(low.try_into().ok()?));
    }
    let digits = field.iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
    let mut number: u64 = 0;
    for digit in digits {
        number = number.checked_mul(8)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some(number)
}

fn text_of(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn short_name(header: &[u8; BLOCK]) -> String {
    let name = text_of(&header[..100]);
    let prefix = if &header[257..262] == b"ustar" { text_of(&header[345..500]) } else { String::new() };
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// The path among the records of an extended header: `LENGTH path=VALUE`, each on a line.
fn path_of(records: &[u8]) -> Option<String> {
    let lines = records.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| line.splitn(2, |byte| *byte == b' ').nth(1)?.strip_prefix(b"path="))
        .next_back()
        .map(text_of)
}
