//! The id of an entry in memory.

use std::{fmt, ops::Deref, sync::Arc};

/// The bytes of an id that is held in place: with them, its length and its kind it takes sixteen.
const SHORT: usize = 14;

/// The id of an entry, or that of its parent.
///
/// pi and agentd give ids of eight characters. One of up to 14 bytes is held in place, so that the entries of a large session have no allocation for
/// it; copies of a longer one share it.
#[derive(Clone)]
pub(crate) struct EntryId(Form);

#[derive(Clone)]
enum Form {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Arc<Box<str>>),
}

impl From<&str> for EntryId {
    fn from(id: &str) -> Self {
        let mut bytes = [0; SHORT];
        Self(match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(id.as_bytes());
                Form::Short { len, bytes }
            }
            _ => Form::Long(Arc::new(id.into())),
        })
    }
}

impl EntryId {
    /// Its bytes: comparing them spares finding again that they are text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Form::Short { len, bytes } => &bytes[..usize::from(*len)],
            Form::Long(id) => id.as_bytes(),
        }
    }
}

impl Deref for EntryId {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            // It was text before.
            Form::Short { .. } => str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Form::Long(id) => id,
        }
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_length_are_kept() {
        for id in
            ["", "a", "0123abcd", "01234567890123", "012345678901234", "0123456789012é", "grüße-grüße-grüße"]
        {
            assert_eq!((&*EntryId::from(id), EntryId::from(id).as_bytes()), (id, id.as_bytes()));
            assert_eq!(format!("{:?}", EntryId::from(id).clone()), format!("{id:?}"));
        }
        assert_eq!(size_of::<Option<EntryId>>(), 16);
    }
}
