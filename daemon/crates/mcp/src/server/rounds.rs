//! Requests of the stateless revision that the server answers with questions first: they are answered, and the request is made again.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::{
    elicitation::elicit,
    peer::{Peer, RequestError, RequestTerms},
};

/// How often a server may ask before it answers.
const MAX_ROUNDS: usize = 10;

/// The questions of one round: nobody answers more.
const MAX_QUESTIONS: usize = 50;

/// The pause before a request is made again where there was no question.
const PAUSE: Duration = Duration::from_millis(250);

/// Makes a request that the server may answer with questions. `roots` answers those for roots.
///
/// # Errors
/// [`RequestError`].
pub(super) async fn request(
    peer: &Peer,
    server: &str,
    (method, params): (&'static str, Value),
    terms: RequestTerms<'_>,
    roots: Option<&Value>,
) -> Result<Value, RequestError> {
    if !peer.is_stateless() {
        return peer.request(method, params, terms).await;
    }
    let mut next = params.clone();
    for _ in 0..MAX_ROUNDS {
        let mut answer = peer.request(method, next, terms.clone()).await?;
        match answer.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => return Ok(answer),
            Some("input_required") => {}
            Some(kind) => {
                let kind = agentd_protocol::text_bounds::head(kind, 100);
                return Err(RequestError::Invalid(format!("its result is of the unknown type \"{kind}\"")));
            }
        }
        let asking = answers(server, answer.get("inputRequests"), &terms, roots);
        let answers = match terms.cancel {
            Some(cancel) => cancel.run_until_cancelled(asking).await.ok_or(RequestError::Cancelled)?,
            None => asking.await,
        }?;
        if answers.is_empty() {
            sleep(PAUSE).await;
        }
        next = params.clone();
        next["inputResponses"] = Value::Object(answers);
        if let Some(state) = answer.get_mut("requestState") {
            next["requestState"] = state.take();
        }
    }
    Err(RequestError::Invalid(format!(
        "it asked for more in each of {MAX_ROUNDS} rounds, and did not answer"
    )))
}

/// The answers to the questions of a round.
async fn answers(
    server: &str,
    questions: Option<&Value>,
    terms: &RequestTerms<'_>,
    roots: Option<&Value>,
) -> Result<Map<String, Value>, RequestError> {
    let none = Map::new();
    let questions = questions.and_then(Value::as_object).unwrap_or(&none);
    if questions.len() > MAX_QUESTIONS {
        return Err(RequestError::Invalid(format!("it asks more than {MAX_QUESTIONS} questions at once")));
    }
    let mut answers = Map::new();
    for (key, question) in questions {
        let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
        let answer = match (method, roots) {
            ("elicitation/create", _) => {
                let params = question.get("params").unwrap_or(&Value::Null);
                let asked = elicit(server, params, terms.user.as_deref()).await;
                asked.map_err(|(_, why)| {
                    RequestError::Invalid(format!("its question cannot be asked: {why}"))
                })?
            }
            ("roots/list", Some(roots)) => roots.clone(),
            ("", _) => return Err(RequestError::Invalid("a question of it has no method".to_owned())),
            (method, _) => {
                let method = agentd_protocol::text_bounds::head(method, 100);
                let text = format!("it asks for {}, which agentd does not have", json!(method));
                return Err(RequestError::Invalid(text));
            }
        };
        answers.insert(key.clone(), answer);
    }
    Ok(answers)
}
