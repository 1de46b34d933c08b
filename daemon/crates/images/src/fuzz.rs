//! The laws of everything that claims to be an image: for fuzz targets (`fuzz/` in the repository), and for the tests
//! that repeat known inputs. Only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics where a law is broken.

use agentd_protocol::image_kind::{ImageKind, SNIFFED};

use crate::{
    content,
    decode::Encoded,
    fit::Limits,
    job::{Job, Wish},
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[("images", images)];

/// Images that need more memory, in bytes, are only opened: they would take most of the time.
const MOST_MEMORY: u64 = 1 << 20;

/// The beginning of a file decides whether it is an image. An image becomes one of a kind that models take, or is
/// refused. Its base64 is read in every form in which it is written.
pub fn images(input: &[u8]) {
    let sniffed = ImageKind::sniff(input);
    assert_eq!(ImageKind::sniff(&input[..input.len().min(SNIFFED)]), sniffed);
    let kind = ImageKind::by_signature(input);
    assert!(sniffed.is_none() || sniffed == kind);

    let plain = content::encode(input);
    assert_eq!(content::decode(&plain), Some((input.to_vec(), true)));
    let url = format!("data:image/png;base64,{}", plain.trim_end_matches('='));
    assert_eq!(content::decode(&url), Some((input.to_vec(), false)));
    if let Ok(text) = std::str::from_utf8(input)
        && let Some((bytes, true)) = content::decode(text)
    {
        assert_eq!(content::encode(&bytes), text);
    }

    let Some(kind) = kind else { return };
    if let Some(image) = Encoded::open(input, kind) {
        let (width, height) = image.size();
        assert!(width > 0 && height > 0);
        if image.memory > MOST_MEMORY {
            return;
        }
    }
    for wish in [Wish::Fit(Limits::default()), Wish::Convert] {
        let Ok(job) = Job::of_bytes(input.to_vec(), wish) else { panic!("its kind is known: {kind:?}") };
        let Ok(prepared) = job.run(|| false) else { continue };
        let Some((bytes, true)) = content::decode(&prepared.image.data) else { panic!("plain base64") };
        let made = ImageKind::by_signature(&bytes);
        assert_eq!(made.map(ImageKind::mime_type), Some(prepared.image.mime_type.as_str()));
        assert!(made.is_some_and(ImageKind::is_for_the_web), "{made:?}");
        if wish == Wish::Fit(Limits::default()) {
            let Some(image) = made.and_then(|kind| Encoded::open(&bytes, kind)) else {
                panic!("it can be read")
            };
            assert!(image.size().0 <= 2000 && image.size().1 <= 2000);
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
