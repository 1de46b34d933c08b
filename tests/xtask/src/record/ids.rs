//! Session ids differ from run to run; in the recording they are always the same. Pure.

/// Puts equal ids in the place of those that programs made: groups of hexadecimal digits that begin as the ids of this time do, joined by
/// hyphens. Lengths stay. An id that was seen earlier gets the same one again.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The first eight characters of each id that was seen, in order, are not unique: the last twelve are.
    seen: Vec<String>,
}

impl Ids {
    /// The bytes with other ids.
    pub(crate) fn replace(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            let length = rest.iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'-').count();
            let is_word = out.last().is_none_or(|byte: &u8| !byte.is_ascii_alphanumeric());
            let ends = rest.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
            if is_word && ends && is_id(&rest[..length]) {
                out.extend(self.other(&rest[..length]));
                rest = &rest[length..];
            } else {
                out.push(first);
                rest = &rest[1..];
            }
        }
        out
    }

    fn other(&mut self, id: &[u8]) -> Vec<u8> {
        let id = String::from_utf8_lossy(id).into_owned();
        let known = self.seen.iter().position(|seen| seen.starts_with(&id) || id.starts_with(seen.as_str()));
        let at = known.unwrap_or_else(|| {
            self.seen.push(id.clone());
            self.seen.len() - 1
        });
        let same = format!("01990c1{at:x}-7a51-7c3e-8d20-4be1f0a9c6d2");
        same.bytes().take(id.len()).collect()
    }
}

/// An id, or a beginning of one with at least eight characters: ids of version 7 begin with the time.
fn is_id(word: &[u8]) -> bool {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let fits = |(at, byte): (usize, &u8)| (*byte == b'-') == HYPHENS.contains(&at);
    (8..=36).contains(&word.len()) && word.starts_with(b"01") && word.iter().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_replaced_everywhere_by_the_same() {
        let mut ids = Ids::default();
        let text =
            "session 0199abcd-1234-7abc-8def-0123456789ab, again 0199abcd; not 0123, deadbeef01 or 01999999x";
        let seen = String::from_utf8(ids.replace(text.as_bytes())).unwrap();
        assert_eq!(
            seen,
            "session 01990c10-7a51-7c3e-8d20-4be1f0a9c6d2, again 01990c10; not 0123, deadbeef01 or 01999999x"
        );
        assert_eq!(ids.replace(b"0199ffff-1234"), b"01990c11-7a51");
    }
}
