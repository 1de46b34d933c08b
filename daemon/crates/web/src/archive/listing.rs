//! The list of what an archive holds.

/// Entries that are listed.
const MAX_LISTED: usize = 2000;

/// Bytes of a name that are shown.
const MAX_NAME: usize = 500;

/// What an archive holds.
#[derive(Debug, Default)]
pub(super) struct Listing {
    entries: Vec<(String, u64)>,
    /// Entries in all, with those that are not listed.
    count: u64,
    bytes: u64,
    /// Why the archive was not read to its end.
    pub(super) is_cut: Option<&'static str>,
}

impl Listing {
    /// Adds an entry; `bytes` are those of its content. A name that ends with `/` is a folder.
    pub(super) fn push(&mut self, name: &str, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.entries.len() < MAX_LISTED {
            let shown = name[..name.floor_char_boundary(MAX_NAME)].escape_debug().to_string();
            self.entries.push((shown, bytes));
        }
    }

    pub(super) fn note(&self) -> Option<String> {
        let left_out = self.count - self.entries.len() as u64;
        match (self.is_cut, left_out) {
            (Some(why), _) => Some(format!("not all entries: {why}")),
            (None, 1..) => Some(format!("{left_out} more entries are left out")),
            (None, 0) => None,
        }
    }

    pub(super) fn markdown(&self, kind: &str) -> String {
        let mut text = format!("{kind} archive: {} entries, {} bytes unpacked\n", self.count, self.bytes);
        for (name, bytes) in &self.entries {
            text.push_str(&match name.ends_with('/') {
                true => format!("\n- {name}"),
                false => format!("\n- {name} ({bytes} bytes)"),
            });
        }
        text.push('\n');
        text
    }
}
