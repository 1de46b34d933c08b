//! Ids of sessions and of entries.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, Uuid};

use crate::StoreError;

/// The number of short entry ids that are tried before a whole UUID is taken.
const SHORT_ID_ATTEMPTS: usize = 100;

/// The longest id that a person can choose: it is part of a file's name, which has 255 bytes for all.
const MAX_CHOSEN_BYTES: usize = 200;

/// A new session id: a UUID of version 7, lower case, so that ids sort by time.
#[must_use]
pub fn new_session_id() -> String {
    session_id_at(SystemTime::now())
}

fn session_id_at(now: SystemTime) -> String {
    if now >= UNIX_EPOCH {
        return Uuid::now_v7().to_string();
    }
    // A clock that was never set: the id knows no time before 1970.
    let mut random = [0; 10];
    random.copy_from_slice(&Uuid::new_v4().as_bytes()[..10]);
    Builder::from_unix_timestamp_millis(0, &random).into_uuid().to_string()
}

/// Checks an id that a person chose for a session.
///
/// # Errors
/// [`StoreError::InvalidSessionId`] unless it is made of letters, digits, `-`, `_` and `.` with a letter or a digit at
/// both ends; [`StoreError::LongSessionId`] beyond 200 of them.
pub fn check_session_id(id: &str) -> Result<(), StoreError> {
    let bytes = id.as_bytes();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [bytes.first(), bytes.last()];
    if bytes.len() > MAX_CHOSEN_BYTES {
        return Err(StoreError::LongSessionId { length: bytes.len(), limit: MAX_CHOSEN_BYTES });
    }
    if bytes.iter().all(inside) && ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric)) {
        Ok(())
    } else {
        Err(StoreError::InvalidSessionId)
    }
}

/// A new entry id: the first eight digits of a random UUID that nothing is called yet, or a whole one.
pub(crate) fn new_entry_id(is_taken: impl Fn(&str) -> bool) -> String {
    unique_id(is_taken, || Uuid::new_v4().to_string())
}

fn unique_id(is_taken: impl Fn(&str) -> bool, mut random: impl FnMut() -> String) -> String {
    for _ in 0..SHORT_ID_ATTEMPTS {
        let mut id = random();
        id.truncate(8);
        if !is_taken(&id) {
            return id;
        }
    }
    random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids() {
        for id in ["a", "7", "my.session_1-b", "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"] {
            assert!(check_session_id(id).is_ok(), "{id}");
        }
        for id in ["", "-a", "a-", ".a", "a b", "a/b", "..", "é", "a\n"] {
            let error = check_session_id(id).unwrap_err();
            assert_eq!(
                error.to_string(),
                "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and \
                 end with an alphanumeric character",
                "{id}"
            );
        }
        assert!(check_session_id(&new_session_id()).is_ok() && check_session_id(&"x".repeat(200)).is_ok());
        let error = check_session_id(&"x".repeat(201)).unwrap_err();
        assert_eq!(error.to_string(), "Session id must have at most 200 characters, not 201");
        assert_eq!(new_session_id().as_bytes()[14], b'7');
    }

    #[test]
    fn a_clock_before_1970_gives_ids_of_1970() {
        let before = UNIX_EPOCH - std::time::Duration::from_secs(86_400);
        let (one, other) = (session_id_at(before), session_id_at(before));
        assert!(one.starts_with("00000000-0000-7") && one != other, "{one} {other}");
        assert!(check_session_id(&one).is_ok());
    }

    #[test]
    fn short_ids_are_tried_again() {
        let mut tries = 0;
        let id = unique_id(
            |id| id == "00000001",
            || {
                tries += 1;
                format!("0000000{tries}-rest")
            },
        );
        assert_eq!(id, "00000002");
    }

    #[test]
    fn a_full_house_gets_whole_uuids() {
        let mut tries = 0;
        let id = unique_id(
            |_| true,
            || {
                tries += 1;
                format!("{tries:08}-rest")
            },
        );
        assert_eq!(id, "00000101-rest");
        assert_eq!(new_entry_id(|_| false).len(), 8);
        assert_eq!(new_entry_id(|_| true).len(), 36);
    }
}
