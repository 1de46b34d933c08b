//! What the rules for tool call ids have in common.

/// The text with everything but letters, digits, `_` and `-` replaced by `_`.
pub(crate) fn sanitized(part: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    part.chars().map(legal).collect()
}

/// Eight hexadecimal digits (FNV-1a, folded): stable over versions, since ids of old requests are in provider caches.
pub(crate) fn hash(text: &str) -> String {
    let full = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (full ^ (full >> 32)) & 0xffff_ffff)
}
