//! Encodes the turns of a transcript as contents of this API.

use std::borrow::Cow;

use super::{
    api_types::{Content, ContentPart as ApiPart, FunctionCall, FunctionResponse, Outcome},
    family::GeminiFamily,
};
use crate::handoff::{AssistantPart, Part, ToolAnswer, Turn};

/// Stands for a result that is only an image (the text is pi's).
const SEE_IMAGE: &str = "(see attached image)";

/// Precedes images of results that are sent as a prompt (the text is pi's).
const RESULT_IMAGE: &str = "Tool result image:";

/// The signature of a call that another model made. Google documents it for transcripts that did not come from Gemini, and refuses requests
/// without it.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes a transcript.
pub(super) fn contents<'a>(turns: &'a [Turn<'a>], family: &GeminiFamily) -> Vec<Content<'a>> {
    // The API requires signatures only after the last prompt. The stand-in makes thinking worse, so it is used only there.
    let last_prompt = turns.iter().rposition(|turn| matches!(turn, Turn::User(_) | Turn::System(_)));
    let mut contents = Vec::with_capacity(turns.len());
    let mut add = |role: &'static str, parts: Vec<ApiPart<'a>>| {
        if !parts.is_empty() {
            contents.push(Content { role, parts });
        }
    };
    for (place, turn) in turns.iter().enumerate() {
        match turn {
            Turn::System(text) => add("user", vec![ApiPart::text(text.as_str())]),
            Turn::User(parts) => add("user", prompt(parts)),
            Turn::Assistant(parts) => {
                let is_current = last_prompt.is_none_or(|prompt| place > prompt);
                add("model", answer(parts, family, is_current));
            }
            Turn::Results(answers) => {
                let mut moved = Vec::new();
                add("user", results(answers, family, &mut moved));
                if !moved.is_empty() {
                    moved.insert(0, ApiPart::text(RESULT_IMAGE));
                }
                add("user", moved);
            }
        }
    }
    contents
}

fn prompt<'a>(parts: &'a [Part<'a>]) -> Vec<ApiPart<'a>> {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => ApiPart::text(text.as_ref()),
        Part::Image(image) => ApiPart::image(image),
    });
    parts.collect()
}

/// An answer. `is_current`: no prompt came after it.
fn answer<'a>(parts: &'a [AssistantPart<'a>], family: &GeminiFamily, is_current: bool) -> Vec<ApiPart<'a>> {
    let mut wants_signature = is_current && family.is_modern_gemini();
    let parts = parts.iter().filter_map(|part| match part {
        AssistantPart::Text { text, signature } => {
            let thought_signature = signature.filter(|signature| is_base64(signature));
            let is_seen = !text.trim().is_empty() || thought_signature.is_some();
            is_seen.then(|| ApiPart { thought_signature, ..ApiPart::text(*text) })
        }
        AssistantPart::Thinking { text, signature, .. } => {
            let thought_signature = signature.filter(|signature| is_base64(signature));
            let is_seen = !text.trim().is_empty() || thought_signature.is_some();
            is_seen.then(|| ApiPart { thought: Some(true), thought_signature, ..ApiPart::text(*text) })
        }
        AssistantPart::ToolCall { id, name, arguments, signature, .. } => {
            let is_first = std::mem::take(&mut wants_signature);
            let signature = signature.filter(|signature| is_base64(signature));
            let id = family.has_call_ids().then_some(id.as_ref());
            Some(ApiPart {
                function_call: Some(FunctionCall { name, args: arguments, id }),
                thought_signature: signature.or_else(|| is_first.then_some(NO_SIGNATURE)),
                ..ApiPart::default()
            })
        }
    });
    parts.collect()
}

/// The results of an answer's calls, all in one turn. `moved` receives the images that are not allowed inside of them.
fn results<'a>(
    answers: &'a [ToolAnswer<'a>],
    family: &GeminiFamily,
    moved: &mut Vec<ApiPart<'a>>,
) -> Vec<ApiPart<'a>> {
    let results = answers.iter().map(|answer| {
        let texts = answer.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_ref()),
            Part::Image(_) => None,
        });
        let images = answer.parts.iter().filter_map(|part| match part {
            Part::Image(image) => Some(ApiPart::image(image)),
            Part::Text(_) => None,
        });
        let mut images: Vec<ApiPart<'a>> = images.collect();
        let texts: Vec<&str> = texts.collect();
        let text = match texts[..] {
            [only] => Cow::Borrowed(only),
            _ => Cow::Owned(texts.join("\n")),
        };
        let text = match (text.trim().is_empty(), images.is_empty()) {
            (false, _) => text,
            (true, true) => "".into(),
            (true, false) => SEE_IMAGE.into(),
        };
        if !family.has_images_in_results() {
            moved.append(&mut images);
        }
        let response = FunctionResponse {
            name: answer.tool_name,
            response: if answer.is_error { Outcome::Error(text) } else { Outcome::Output(text) },
            parts: images,
            id: family.has_call_ids().then_some(answer.call_id.as_ref()),
        };
        ApiPart { function_response: Some(response), ..ApiPart::default() }
    });
    results.collect()
}

/// Whether a signature can come from this API, which refuses requests with any other.
fn is_base64(signature: &str) -> bool {
    let body = signature.trim_end_matches('=');
    !body.is_empty()
        && signature.len().is_multiple_of(4)
        && signature.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_base64() {
        for (signature, expected) in [
            ("c2lnbmF0dXJl", true),
            ("YQ==", true),
            ("YWI=", true),
            ("+/+/", true),
            ("", false),
            ("====", false),
            ("Y===", false),
            ("abc", false),
            ("ab-_", false),
            ("reasoning_content", false),
        ] {
            assert_eq!(is_base64(signature), expected, "{signature}");
        }
    }
}
