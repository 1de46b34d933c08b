//! The revisions of MCP: those that begin with `initialize`, and the stateless one, whose every request says who asks. Pure.

use serde_json::{Map, Value, json};

use crate::message::ServerError;

/// The revisions with `initialize`, the newest first.
pub(crate) const REVISIONS: [&str; 5] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// The stateless revision.
pub(crate) const STATELESS: &str = "2026-07-28";

/// The server does not speak the revision of the request. Its data has `supported`.
pub(crate) const UNSUPPORTED_REVISION: i64 = -32022;

/// The server wants the user to open a page first (2025-11-25). Its data has `elicitations`.
pub(crate) const PAGE_REQUIRED: i64 = -32042;

/// The prefix of the keys that requests and results have in `_meta`.
const META: &str = "io.modelcontextprotocol/";

/// What agentd says of itself.
pub(crate) fn client_info() -> Value {
    json!({"name": "agentd", "title": "agentd", "version": env!("CARGO_PKG_VERSION")})
}

/// What agentd can do for a server.
pub(crate) fn capabilities(has_roots: bool, has_user: bool) -> Value {
    let mut capabilities = Map::new();
    if has_roots {
        capabilities.insert("roots".to_owned(), json!({}));
    }
    if has_user {
        capabilities.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}));
    }
    Value::Object(capabilities)
}

/// Adds to the parameters of a stateless request what every such request says.
pub(crate) fn introduce(params: &mut Value, has_roots: bool, has_user: bool) {
    for (key, value) in [
        ("protocolVersion", json!(STATELESS)),
        ("clientInfo", client_info()),
        ("clientCapabilities", capabilities(has_roots, has_user)),
    ] {
        params["_meta"][format!("{META}{key}")] = value;
    }
}

/// What a stateless server says of itself in a result.
pub(crate) fn server_info(result: &Value) -> Option<&Value> {
    result.get("_meta")?.get(format!("{META}serverInfo"))
}

/// Whether a server that was asked for the stateless revision speaks it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does.
    Stateless,
    /// It says that it does, but refused the request: it is asked once more.
    AskAgain,
    /// It does not, as far as one can tell: it is asked to `initialize`.
    WithInitialize,
}

/// What the answer to `server/discover` means.
pub(crate) fn verdict(outcome: Result<&Value, &ServerError>) -> Verdict {
    let lists = |value: Option<&Value>| {
        let mut revisions = value.and_then(Value::as_array).into_iter().flatten();
        revisions.any(|revision| revision == STATELESS)
    };
    match outcome {
        Ok(result) if lists(result.get("supportedVersions")) => Verdict::Stateless,
        Err(error) if error.code == UNSUPPORTED_REVISION && lists(error.data.get("supported")) => {
            Verdict::AskAgain
        }
        _ => Verdict::WithInitialize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_who_asks_and_keep_what_they_have() {
        let mut params = json!({"name": "t", "_meta": {"progressToken": 3}});
        introduce(&mut params, true, false);
        assert_eq!(params["_meta"]["progressToken"], 3);
        assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({"roots": {}}));
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "agentd");
        let mut params = json!({});
        introduce(&mut params, false, true);
        assert_eq!(
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"],
            json!({"elicitation": {"form": {}, "url": {}}})
        );
    }

    #[test]
    fn answers_tell_the_revision() {
        let error = |code, data| ServerError { code, message: String::new(), data };
        for (result, expected) in [
            (json!({"supportedVersions": ["2025-11-25", "2026-07-28"]}), Verdict::Stateless),
            (json!({"supportedVersions": ["2027-01-01"]}), Verdict::WithInitialize),
            (json!({"supportedVersions": "2026-07-28"}), Verdict::WithInitialize),
            (json!({}), Verdict::WithInitialize),
            (json!(null), Verdict::WithInitialize),
        ] {
            assert_eq!(verdict(Ok(&result)), expected, "{result}");
        }
        for (code, data, expected) in [
            (-32022, json!({"supported": ["2026-07-28"]}), Verdict::AskAgain),
            (-32022, json!({"supported": ["2025-11-25"]}), Verdict::WithInitialize),
            (-32022, json!(null), Verdict::WithInitialize),
            (-32601, json!({"supported": ["2026-07-28"]}), Verdict::WithInitialize),
        ] {
            assert_eq!(verdict(Err(&error(code, data))), expected);
        }
    }
}
