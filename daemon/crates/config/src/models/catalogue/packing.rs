// A comment of the plain kind: the build script includes this file, too.

use std::{collections::BTreeMap, ops::Range};

use serde_json::Value;

/// The index entry of a provider's packed models.
pub(crate) struct Packed {
    /// The wire APIs, and of how many models each is.
    pub(crate) apis: Vec<(String, usize)>,
    /// A hash of each model's id.
    pub(crate) ids: Vec<u32>,
    /// True if an id or a name holds a thinking level behind a colon.
    pub(crate) names_levels: bool,
    /// The range of the packed models.
    pub(crate) packed: Range<usize>,
    /// The unpacked size in bytes.
    pub(crate) unpacked: usize,
}

/// Appends the models of a provider, one in each line of `text`, and says what the index has to.
pub(crate) fn pack(
    provider: &str,
    default: &str,
    text: &str,
    level: u8,
    bytes: &mut Vec<u8>,
) -> Result<Packed, String> {
    let mut apis: BTreeMap<String, usize> = BTreeMap::new();
    let (mut ids, mut has_default, mut names_levels) = (Vec::new(), false, false);
    for line in text.lines() {
        let model: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let field = |name: &str| model[name].as_str().ok_or_else(|| format!("a model without \"{name}\""));
        let id = field("id")?;
        *apis.entry(field("api")?.to_owned()).or_default() += 1;
        ids.push(id_hash(id));
        has_default |= id == default;
        names_levels |= holds_level(id) || holds_level(field("name")?);
        if model["provider"] != provider {
            return Err(format!("a model of another provider: {}", model["provider"]));
        }
    }
    if !has_default {
        return Err(format!("no model {default}"));
    }
    let start = bytes.len();
    bytes.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), level));
    let packed = start..bytes.len();
    Ok(Packed { apis: apis.into_iter().collect(), ids, names_levels, packed, unpacked: text.len() })
}

/// Returns whether a text holds a thinking level behind a colon, in any case.
pub(crate) fn holds_level(text: &str) -> bool {
    let text = text.to_lowercase();
    [":off", ":minimal", ":low", ":medium", ":high", ":xhigh", ":max"]
        .iter()
        .any(|level| text.contains(level))
}

/// A hash of a model id in which case does not count (FNV-1a).
pub(crate) fn id_hash(id: &str) -> u32 {
    id.to_lowercase()
        .bytes()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
