//! Forms of JSON that the APIs of several vendors share.

use std::fmt;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Writes an image as a data URL without making a copy of it first.
#[derive(Debug)]
pub(crate) struct DataUrl<'a>(pub(crate) &'a ImageContent);

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.0.mime_type, self.0.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Arguments of a call as JSON text in a JSON string.
#[derive(Debug)]
pub(crate) struct Arguments<'a>(pub(crate) &'a Map<String, Value>);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(self.0).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}
