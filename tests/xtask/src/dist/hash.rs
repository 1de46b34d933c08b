//! Hashes as packages write them. Pure.

use std::fmt::Write as _;

use md5::Md5;
use sha2::{Digest, Sha256};

/// MD5 in hexadecimal: what `md5sums` of Debian packages holds, against accidents alone.
pub(crate) fn md5(content: &[u8]) -> String {
    hex(&Md5::digest(content))
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// SHA-256 as the file `RECORD` of a wheel has it: URL-safe Base64 without padding.
pub(crate) fn sha256_of_record(content: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in Sha256::digest(content).chunks(3) {
        let bits =
            group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..=group.len() {
            text.push(char::from(LETTERS[bits >> (18 - 6 * at) & 63]));
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes every letter.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_of_record(b"abc"), "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
    }
}
