//! Learns what a pack of another process holds.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
};

use super::{HEADER, Inner, Place};
use crate::state::ObjectId;

impl Inner {
    /// Reads the headers of a pack, from what is known of it on. A torn end is left alone.
    pub(super) fn scan_pack(&mut self, at: usize) -> io::Result<()> {
        let number = u32::try_from(at).map_err(io::Error::other)?;
        let Self { packs, objects, bytes, .. } = self;
        let pack = &mut packs[at];
        let end = fs::metadata(&pack.path)?.len();
        if end == pack.known {
            return Ok(());
        }
        let file = File::open(&pack.path)?;
        let mut header = [0; HEADER];
        while pack.known + HEADER as u64 <= end {
            file.read_exact_at(&mut header, pack.known)?;
            let (mut id, mut len) = ([0; 32], [0; 4]);
            id.copy_from_slice(&header[..32]);
            len.copy_from_slice(&header[33..]);
            let len = u32::from_le_bytes(len);
            let offset = pack.known + HEADER as u64;
            if offset + u64::from(len) > end {
                break;
            }
            objects.insert(
                ObjectId(id),
                Place::Packed { pack: number, offset, len, compressed: header[32] != 0 },
            );
            pack.known = offset + u64::from(len);
            *bytes += u64::from(len) + HEADER as u64;
        }
        Ok(())
    }
}
