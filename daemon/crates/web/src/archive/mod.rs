//! Archives and office documents: what a ZIP or TAR archive holds, as a list, and the text of a DOCX file.
//!
//! Reads any bytes, in bounded memory and time: of what is packed, only so much is unpacked as is shown. Blocks.

mod docx;
mod listing;
mod tar;
mod zip;

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use reqwest::Url;

use self::{listing::Listing, zip::Zip};

/// Bytes of a compressed TAR archive that are unpacked to list it: 256 MiB.
const MAX_UNPACKED: u64 = 256 << 20;

/// The form of a file that packs others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packed {
    Zip,
    Tar,
    Gzip,
}

impl Packed {
    /// The form of a file that begins like this; `None` for any other file.
    pub(crate) fn sniff(start: &[u8]) -> Option<Self> {
        match start {
            // The second is an archive of nothing.
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Zip),
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            _ if tar::is_header(start) => Some(Self::Tar),
            _ => None,
        }
    }
}

/// What is shown of a packed file.
#[derive(Debug)]
pub(crate) struct Unpacked {
    /// How it was read: `docx`, `archive`.
    pub(crate) method: &'static str,
    pub(crate) text: String,
    /// What is missing.
    pub(crate) note: Option<String>,
}

/// The text of a document, or the list of what an archive holds; `base` is where it was found. At most some `most` bytes of a document.
///
/// # Errors
/// A clause for the model: it cannot be read, or is a compressed file of another kind.
pub(crate) fn read(packed: Packed, body: &[u8], base: &Url, most: usize) -> Result<Unpacked, String> {
    match packed {
        Packed::Zip => {
            let zip = Zip::open(body)?;
            if zip.find(docx::DOCUMENT).is_some() {
                let docx::Text { markdown, is_cut } = docx::read(&zip, base, most)?;
                let note = is_cut.then(|| "the document is too long: its end is left out".to_owned());
                return Ok(Unpacked { method: "docx", text: markdown, note });
            }
            Ok(listed("ZIP", zip.listing()))
        }
        Packed::Tar => Ok(listed("TAR", tar::list(body, false)?)),
        Packed::Gzip => {
            let mut start = Vec::new();
            // An error shows itself when the list is made.
            let _ = MultiGzDecoder::new(body).take(512).read_to_end(&mut start);
            if !tar::is_header(&start) {
                return Err("it is compressed by gzip, and holds no TAR archive".to_owned());
            }
            let unpacked = MultiGzDecoder::new(body).take(MAX_UNPACKED);
            Ok(listed("TAR (gzip)", tar::list(unpacked, true)?))
        }
    }
}

fn listed(kind: &str, listing: Listing) -> Unpacked {
    let note = listing.note();
    Unpacked { method: "archive", text: listing.markdown(kind), note }
}

#[cfg(test)]
mod tests;
