//! The directory of a ZIP archive, and the contents of its entries.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

use super::listing::Listing;

/// Bytes in which the end of the directory is looked for: a comment has at most 64 KiB.
const END_AREA: usize = (64 << 10) + 22;

/// Entries that are looked at.
const MAX_ENTRIES: usize = 200_000;

/// A ZIP archive in memory.
#[derive(Debug)]
pub(super) struct Zip<'a> {
    file: &'a [u8],
    entries: Vec<Entry>,
    is_cut: bool,
}

/// An entry of the directory.
#[derive(Debug)]
pub(super) struct Entry {
    name: String,
    /// Bytes in the archive, and unpacked: as it says itself.
    packed: u64,
    unpacked: u64,
    method: u16,
    is_encrypted: bool,
    /// Where its header is.
    at: u64,
}

impl<'a> Zip<'a> {
    /// Reads the directory.
    ///
    /// # Errors
    /// A clause: there is none.
    pub(super) fn open(file: &'a [u8]) -> Result<Self, String> {
        let damaged = || "the ZIP archive is damaged: it has no directory".to_owned();
        let area = file.len().saturating_sub(END_AREA);
        let end =
            (area..file.len().saturating_sub(21)).rev().find(|at| file[*at..].starts_with(b"PK\x05\x06"));
        let end = end.ok_or_else(damaged)?;
        let mut place = u64::from(u32_at(file, end + 16).ok_or_else(damaged)?);
        // A large archive says where its directory is in a record before this one.
        if let Some(locator) = end.checked_sub(20)
            && file[locator..].starts_with(b"PK\x06\x07")
            && let Some(record) = u64_at(file, locator + 8).and_then(|at| usize::try_from(at).ok())
            && file.get(record..).is_some_and(|rest| rest.starts_with(b"PK\x06\x06"))
        {
            place = u64_at(file, record + 48).ok_or_else(damaged)?;
        }
        let mut at = usize::try_from(place).map_err(|_| damaged())?;
        let (mut entries, mut is_cut) = (Vec::new(), false);
        while file.get(at..).is_some_and(|rest| rest.starts_with(b"PK\x01\x02")) {
            let Some((entry, next)) = Entry::read(file, at) else { break };
            if entries.len() == MAX_ENTRIES {
                is_cut = true;
                break;
            }
            entries.push(entry);
            at = next;
        }
        if entries.is_empty() && place != end as u64 {
            return Err(damaged());
        }
        Ok(Self { file, entries, is_cut })
    }

    pub(super) fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    pub(super) fn listing(&self) -> Listing {
        let mut listing = Listing::default();
        for entry in &self.entries {
            listing.push(&entry.name, entry.unpacked);
        }
        listing.is_cut = self.is_cut.then_some("it has too many");
        listing
    }

    /// The content of an entry, at most `most` bytes of it, whatever the archive says.
    ///
    /// # Errors
    /// A clause.
    pub(super) fn content(&self, entry: &Entry, most: u64) -> Result<Vec<u8>, String> {
        let damaged = || format!("the ZIP archive is damaged at {}", entry.name.escape_debug());
        if entry.is_encrypted {
            return Err("it has a password".to_owned());
        }
        let at = usize::try_from(entry.at).map_err(|_| damaged())?;
        let header =
            self.file.get(at..).filter(|rest| rest.starts_with(b"PK\x03\x04")).ok_or_else(damaged)?;
        let lengths = u16_at(header, 26).zip(u16_at(header, 28)).ok_or_else(damaged)?;
        let start = 30 + usize::from(lengths.0) + usize::from(lengths.1);
        let packed = usize::try_from(entry.packed).map_err(|_| damaged())?;
        let end = start.checked_add(packed).ok_or_else(damaged)?;
        let packed = header.get(start..end).ok_or_else(damaged)?;
        let mut content = Vec::new();
        let read = match entry.method {
            0 => packed.take(most).read_to_end(&mut content),
            8 => DeflateDecoder::new(packed).take(most).read_to_end(&mut content),
            other => {
                return Err(format!(
                    "{} is packed in a way that is not known: {other}",
                    entry.name.escape_debug()
                ));
            }
        };
        read.map_err(|_| damaged())?;
        Ok(content)
    }
}

impl Entry {
    /// The entry of the directory at a place, and the place of the next one.
    fn read(file: &[u8], at: usize) -> Option<(Self, usize)> {
        let fixed = file.get(at..at.checked_add(46)?)?;
        let name_end = at + 46 + usize::from(u16_at(fixed, 28)?);
        let extra_end = name_end + usize::from(u16_at(fixed, 30)?);
        let next = extra_end + usize::from(u16_at(fixed, 32)?);
        let name = String::from_utf8_lossy(file.get(at + 46..name_end)?).into_owned();
        let mut entry = Self {
            name,
            packed: u32_at(fixed, 20)?.into(),
            unpacked: u32_at(fixed, 24)?.into(),
            method: u16_at(fixed, 10)?,
            is_encrypted: u16_at(fixed, 8)? & 1 != 0,
            at: u32_at(fixed, 42)?.into(),
        };
        entry.read_large(file.get(name_end..extra_end)?);
        Some((entry, next))
    }

    /// The numbers that 32 bits do not hold, from the extra field that has them.
    fn read_large(&mut self, mut extra: &[u8]) {
        while let Some((id, length)) = u16_at(extra, 0).zip(u16_at(extra, 2)) {
            let Some(field) = extra.get(4..4 + usize::from(length)) else { return };
            if id == 1 {
                let mut at = 0;
                for number in [&mut self.unpacked, &mut self.packed, &mut self.at] {
                    if *number == u64::from(u32::MAX)
                        && let Some(large) = u64_at(field, at)
                    {
                        *number = large;
                        at += 8;
                    }
                }
            }
            extra = &extra[4 + usize::from(length)..];
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
