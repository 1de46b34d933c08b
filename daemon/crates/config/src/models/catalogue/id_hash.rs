// A comment of the plain kind: the build script includes this file, too.

/// A hash of a model id in which case does not count (FNV-1a).
pub(crate) fn id_hash(id: &str) -> u32 {
    id.to_lowercase()
        .bytes()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
