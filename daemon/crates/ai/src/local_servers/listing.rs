//! What `GET /v1/models` says, in the dialects of the servers that people run.

use serde_json::Value;

use super::LocalModel;

/// The longest id that is taken, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Where servers write the size of the context window, the one in use before the one that would be possible.
const CONTEXT_KEYS: &[&str] = &[
    "/loaded_context_length",
    "/meta/n_ctx",
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/meta/n_ctx_train",
];

/// The models of a listing. The error says what came instead.
pub(super) fn read(body: &[u8]) -> Result<Vec<LocalModel>, &'static str> {
    let value: Value = serde_json::from_slice(body).map_err(|_| "the answer is not JSON")?;
    let data = value.get("data").and_then(Value::as_array);
    let data = data.ok_or("the answer has no list \"data\"")?;
    let mut models: Vec<LocalModel> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for entry in data {
        // What has no usable id cannot be asked for.
        let Some(id) = entry.get("id").and_then(Value::as_str).filter(|id| is_usable(id)) else { continue };
        if seen.insert(id) {
            models.push(LocalModel {
                id: id.to_owned(),
                context_window: context_window(entry),
                sees_images: sees_images(entry) || details(&value, id).is_some_and(sees_images),
            });
        }
    }
    Ok(models)
}

/// Ids are shown in terminals and written into commands.
fn is_usable(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control)
}

fn context_window(entry: &Value) -> Option<u64> {
    CONTEXT_KEYS.iter().find_map(|key| tokens(entry.pointer(key)?))
}

/// A whole number above 0, however it is written.
fn tokens(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let fits = number.fract() == 0.0 && (1.0..9e15).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        fits.then_some(number as u64)
    });
    number.filter(|number| *number > 0)
}

fn sees_images(entry: &Value) -> bool {
    let lists = ["/capabilities", "/architecture/input_modalities", "/input_modalities", "/modalities"];
    let words = lists.iter().filter_map(|list| entry.pointer(list)?.as_array()).flatten();
    words.filter_map(Value::as_str).any(|word| matches!(word, "image" | "vision" | "multimodal"))
        || entry.get("type").is_some_and(|kind| kind == "vlm")
}

/// llama.cpp writes what a model can do into a second list, of another form.
fn details<'a>(listing: &'a Value, id: &str) -> Option<&'a Value> {
    let models = listing.get("models")?.as_array()?;
    models
        .iter()
        .find(|model| ["model", "name"].iter().any(|key| model.get(key).is_some_and(|name| name == id)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(body: &str, expected: &[(&str, Option<u64>, bool)]) {
        let models = read(body.as_bytes()).unwrap();
        let found: Vec<_> =
            models.iter().map(|model| (model.id.as_str(), model.context_window, model.sees_images)).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn the_dialects() {
        // The forms are composed from the servers' documentation.
        check(
            r#"{"object":"list","data":[{"id":"llama3.2:latest","object":"model","created":1,"owned_by":"library"}]}"#,
            &[("llama3.2:latest", None, false)],
        );
        check(
            r#"{"models":[{"name":"a.gguf","model":"a.gguf","capabilities":["completion","multimodal"]}],
                "object":"list","data":[{"id":"a.gguf","object":"model","meta":{"n_ctx_train":131072,"n_params":8}}]}"#,
            &[("a.gguf", Some(131_072), true)],
        );
        check(
            r#"{"data":[{"id":"q/w","max_model_len":32768,"meta":{"n_ctx_train":1}},{"id":"o","context_length":8192.0}]}"#,
            &[("q/w", Some(32_768), false), ("o", Some(8192), false)],
        );
        check(
            r#"{"data":[{"id":"v","type":"vlm","max_context_length":4096,"loaded_context_length":2048}]}"#,
            &[("v", Some(2048), true)],
        );
        check(r#"{"data":[]}"#, &[]);
    }

    #[test]
    fn what_cannot_be_used_is_left_out() {
        check(
            r#"{"data":[{"id":"a","max_model_len":0},{"id":"a","max_model_len":5},{"id":" "},{"id":"\u001b[2J"},{"id":5},7,
                {"id":"b","context_length":"much","max_model_len":-1}]}"#,
            &[("a", None, false), ("b", None, false)],
        );
    }

    #[test]
    fn another_answer_is_no_listing() {
        assert_eq!(read(b"<html>"), Err("the answer is not JSON"));
        for body in ["[]", "{}", "null", r#"{"data":{}}"#, r#"{"error":"no"}"#] {
            assert_eq!(read(body.as_bytes()), Err("the answer has no list \"data\""), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(body: Vec<u8>) {
            let _ = read(&body);
        }
    }
}
