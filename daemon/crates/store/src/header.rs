//! The first line of a session file.

use agentd_protocol::entry::{SESSION_VERSION, SessionHeader, SessionTag};

use crate::{
    StoreError, check_session_id, new_session_id,
    object::{each_member, name, string},
    time::iso_timestamp,
};

/// The header of a session: the line as it is in the file, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    typed: SessionHeader,
    line: Box<str>,
    version: Version,
}

/// The version that a header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Missing,
    /// No whole number from 1 on.
    Odd,
    Named,
}

impl Header {
    /// The header of a new session of the current version.
    pub(crate) fn new(
        id: String,
        timestamp: String,
        cwd: String,
        parent_session: Option<String>,
    ) -> Result<Self, serde_json::Error> {
        let kind = SessionTag::Session;
        let typed =
            SessionHeader { kind, version: Some(SESSION_VERSION), id, timestamp, cwd, parent_session };
        let line = serde_json::to_string(&typed)?.into_boxed_str();
        Ok(Self { typed, line, version: Version::Named })
    }

    /// Reads a header line: an object with `type` `session` and a string as `id`. Other fields may be missing or odd.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (mut kind, mut id, mut timestamp, mut cwd, mut parent, mut version) =
            (None, None, None, None, None, None);
        let is_object = each_member(line, |key, value| match &*name(key) {
            "type" => kind = string(value),
            "id" => id = string(value),
            "timestamp" => timestamp = string(value),
            "cwd" => cwd = string(value),
            "parentSession" => parent = string(value),
            "version" => {
                version = Some(value.parse::<f64>().ok().filter(|it| *it >= 1.0 && it.fract() == 0.0))
            }
            _ => {}
        });
        if !is_object || kind.as_deref() != Some("session") {
            return None;
        }
        let typed = SessionHeader {
            kind: SessionTag::Session,
            // Saturates: a version far beyond ours is still one beyond ours.
            version: version.flatten().map(|version| version as u32),
            id: id?.into_owned(),
            timestamp: timestamp.unwrap_or_default().into_owned(),
            cwd: cwd.unwrap_or_default().into_owned(),
            parent_session: parent.map(|parent| parent.into_owned()),
        };
        let version = match version {
            None => Version::Missing,
            Some(None) => Version::Odd,
            Some(Some(_)) => Version::Named,
        };
        Some(Self { typed, line: line.into(), version })
    }

    /// The typed header.
    #[must_use]
    pub fn typed(&self) -> &SessionHeader {
        &self.typed
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.typed.id
    }

    /// The folder that the session works in.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.typed.cwd
    }

    /// Returns whether the header names a valid version number.
    pub(crate) fn names_version(&self) -> bool {
        self.version == Version::Named
    }

    /// Returns whether the header names no version, as in version 1.
    pub(crate) fn lacks_version(&self) -> bool {
        self.version == Version::Missing
    }

    /// The version of the format; a file that names none, or none that could be, is of version 1.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.typed.version.unwrap_or(1)
    }

    /// The line, without LF.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }
}

/// The beginning of a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The folder to work in, absolute.
    pub cwd: String,
    /// An id that someone chose; `None`: a new UUID of version 7.
    pub id: Option<String>,
    /// The session file that this one comes from.
    pub parent_session: Option<String>,
    /// The time in Unix milliseconds.
    pub now_ms: i64,
}

impl NewSession {
    /// A session that works in `cwd`, with an id of its own and no parent.
    #[must_use]
    pub fn new(cwd: impl Into<String>, now_ms: i64) -> Self {
        Self { cwd: cwd.into(), id: None, parent_session: None, now_ms }
    }

    /// The header of such a session.
    ///
    /// # Errors
    /// [`StoreError::InvalidSessionId`].
    pub(crate) fn header(self) -> Result<Header, StoreError> {
        let id = match self.id {
            Some(id) => check_session_id(&id).map(|()| id)?,
            None => new_session_id(),
        };
        Ok(Header::new(id, iso_timestamp(self.now_ms), self.cwd, self.parent_session)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_header_has_the_order_of_the_format() {
        let header = Header::new("i".into(), "t".into(), "/c".into(), Some("/p".into())).unwrap();
        let line =
            r#"{"type":"session","version":3,"id":"i","timestamp":"t","cwd":"/c","parentSession":"/p"}"#;
        assert_eq!(header.line(), line);
        assert_eq!(Header::parse(line).unwrap(), header);
    }

    #[test]
    fn odd_headers_are_read() {
        let header = Header::parse(r#"{"id":"x","type":"session","cwd":7,"extra":"\ud800"}"#).unwrap();
        assert_eq!((header.id(), header.cwd(), header.version()), ("x", "", 1));
        assert!(header.line().contains("extra"));
        assert_eq!(Header::parse(r#"{"id":"x","type":"session","version":2.0}"#).unwrap().version(), 2);
        assert_eq!(
            Header::parse(r#"{"id":"x","type":"session","version":1e99}"#).unwrap().version(),
            u32::MAX
        );
    }

    #[test]
    fn what_is_no_header() {
        for line in [
            r#"{"type":"session"}"#,
            r#"{"type":"session","id":5}"#,
            r#"{"type":"message","id":"x"}"#,
            "[]",
            "",
        ] {
            assert_eq!(Header::parse(line), None, "{line}");
        }
    }
}
