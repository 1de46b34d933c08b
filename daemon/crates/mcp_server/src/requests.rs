//! What clients send: the parameters of their requests, read leniently. An optional field that is `null`, or of a form that this
//! version does not know, reads as absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, value::RawValue};

/// Reads a value of any form; what cannot be read is the default.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> Deserialize<'a> + Default,
{
    Ok(T::deserialize(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    /// The newest revision that the client speaks.
    pub(crate) protocol_version: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) capabilities: ClientCapabilities,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) client_info: Option<ClientInfo>,
}

/// The client's name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) version: Option<String>,
}

/// What the client can do for us.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ClientCapabilities {
    #[serde(default, deserialize_with = "lenient")]
    elicitation: Option<Elicitation>,
}

/// The questions that it shows.
#[derive(Debug, Clone, Default, Deserialize)]
struct Elicitation {
    #[serde(default, deserialize_with = "lenient")]
    form: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "lenient")]
    url: Option<Map<String, Value>>,
}

impl ClientCapabilities {
    /// Whether it shows forms: said by `form`, or by nothing at all, as before there were others.
    pub(crate) fn shows_forms(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
    }
}

/// The `_meta` of a request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", default, deserialize_with = "lenient")]
    pub(crate) version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", default, deserialize_with = "lenient")]
    pub(crate) capabilities: Option<ClientCapabilities>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default, deserialize_with = "lenient")]
    pub(crate) client_info: Option<ClientInfo>,
    /// A text or a whole number.
    #[serde(rename = "progressToken", default, deserialize_with = "lenient")]
    pub(crate) progress_token: Option<Value>,
}

/// The `_meta` of the parameters of any request; the default where there is none.
pub(crate) fn meta(params: Option<&RawValue>) -> Meta {
    #[derive(Default, Deserialize)]
    struct Params {
        #[serde(rename = "_meta", default, deserialize_with = "lenient")]
        meta: Option<Meta>,
    }
    let params: Option<Params> = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let mut meta = params.and_then(|params| params.meta).unwrap_or_default();
    let is_token = |token: &Value| token.is_string() || token.is_i64() || token.is_u64();
    meta.progress_token = meta.progress_token.filter(is_token);
    meta
}

/// `tools/call`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallParams {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Option<Box<RawValue>>,
    /// The answers to the questions of an earlier result, by their keys.
    #[serde(default)]
    pub(crate) input_responses: Option<BTreeMap<String, Value>>,
    /// Given back as it was in an earlier result.
    #[serde(default)]
    pub(crate) request_state: Option<String>,
}

/// `tools/list`.
#[derive(Debug, Deserialize)]
pub(crate) struct ListParams {
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// `subscriptions/listen`. What is wished for is not read: nothing that could be subscribed to changes here.
#[derive(Debug, Deserialize)]
pub(crate) struct ListenParams {
    #[serde(rename = "notifications")]
    pub(crate) _notifications: Map<String, Value>,
}

/// `notifications/cancelled`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelledParams {
    pub(crate) request_id: Box<RawValue>,
}

/// The answer to `elicitation/create`.
#[derive(Debug, Deserialize)]
pub(crate) struct ElicitResult {
    pub(crate) action: ElicitAction,
    #[serde(default)]
    pub(crate) content: Option<Map<String, Value>>,
}

/// What the user did with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElicitAction {
    /// Sent it.
    Accept,
    /// Said no to it.
    Decline,
    /// Left it.
    Cancel,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn forms_are_shown_by_those_who_say_so() {
        for (capabilities, expected) in [
            (json!({}), false),
            (json!({"elicitation": null}), false),
            (json!({"elicitation": true}), false),
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
        ] {
            let read: ClientCapabilities = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(read.shows_forms(), expected, "{capabilities}");
        }
    }

    #[test]
    fn meta_is_read_as_far_as_it_goes() {
        let of = |params: Value| meta(Some(&raw(&params)));
        let whole = of(json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
            "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
            "progressToken": 7,
        }}));
        assert_eq!(whole.version.as_deref(), Some("2026-07-28"));
        assert!(whole.capabilities.unwrap().shows_forms());
        assert_eq!(whole.progress_token, Some(json!(7)));
        for odd in [json!({}), json!(5), json!([]), json!({"_meta": null}), json!({"_meta": [1]})] {
            let read = of(odd.clone());
            assert!(read.version.is_none() && read.capabilities.is_none(), "{odd}");
        }
        assert_eq!(of(json!({"_meta": {"progressToken": 1.5}})).progress_token, None);
        assert_eq!(of(json!({"_meta": {"progressToken": "t"}})).progress_token, Some(json!("t")));
        assert!(meta(None).version.is_none());
    }
}
