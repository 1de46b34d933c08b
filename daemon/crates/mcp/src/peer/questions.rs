//! What a server asks of us: whether we are there, our roots, and what the user is to answer.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Peer;
use crate::{
    elicitation::{UserInput, elicit},
    message::{self, INTERNAL_ERROR, METHOD_NOT_FOUND},
};

/// Questions to the user of one connection at a time; more are refused.
const MAX_QUESTIONS: usize = 8;

/// A question that the user is asked.
struct Question {
    peer: Peer,
    user: Option<Arc<dyn UserInput>>,
    /// The requests whose time stands still meanwhile.
    waiting: Vec<u64>,
    /// Fires when the one request that it is about has ended.
    over: CancellationToken,
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut open = self.peer.lock();
        open.questions -= 1;
        for id in &self.waiting {
            if let Some(request) = open.requests.get_mut(id) {
                request.questions -= 1;
                request.heard.notify_one();
            }
        }
    }
}

impl Peer {
    /// Answers a request of the server: at once, or from a task when the user has answered.
    pub(super) fn answer(&self, id: Value, method: &str, params: Value, about: Option<u64>) {
        let outcome = match method {
            "ping" => Ok(json!({})),
            "roots/list" => self.0.handler.roots().ok_or((METHOD_NOT_FOUND, "this client has no roots")),
            "elicitation/create" => match self.question(about) {
                Some(question) => {
                    self.0.tasks.spawn(ask(question, id, params));
                    return;
                }
                None => Err((INTERNAL_ERROR, "the user is asked too much already")),
            },
            _ => Err((METHOD_NOT_FOUND, "this client does not have this method")),
        };
        self.send_now(message::response(&id, outcome));
    }

    /// Whether the user is asked something about a request.
    pub(super) fn is_asked_about(&self, id: u64) -> bool {
        self.lock().requests.get(&id).is_some_and(|request| request.questions > 0)
    }

    /// A place for a question, and its user: that of the request, or of all open requests where it is the same. `None`: there are too
    /// many.
    fn question(&self, about: Option<u64>) -> Option<Question> {
        let mut open = self.lock();
        if open.questions >= MAX_QUESTIONS {
            return None;
        }
        open.questions += 1;
        let mut question =
            Question { peer: self.clone(), user: None, waiting: Vec::new(), over: CancellationToken::new() };
        let is_meant = |id: &u64| about.is_none_or(|about| about == *id);
        let mut users: Vec<&Arc<dyn UserInput>> = Vec::new();
        for (id, request) in open.requests.iter().filter(|(id, _)| is_meant(id)) {
            let Some(user) = &request.user else { continue };
            question.waiting.push(*id);
            question.over = request.over.clone();
            if !users.iter().any(|known| Arc::ptr_eq(known, user)) {
                users.push(user);
            }
        }
        // Nobody may answer for another user.
        question.user = if let [user] = users[..] { Some(Arc::clone(user)) } else { None };
        if question.waiting.len() > 1 {
            question.over = CancellationToken::new();
        }
        for id in &question.waiting {
            if let Some(request) = open.requests.get_mut(id) {
                request.questions += 1;
                request.heard.notify_one();
            }
        }
        Some(question)
    }
}

async fn ask(question: Question, id: Value, params: Value) {
    let handler = Arc::clone(&question.peer.0.handler);
    let asking = elicit(handler.server(), &params, question.user.as_deref());
    let closed = question.peer.until_closed();
    let outcome = tokio::select! {
        biased;
        outcome = asking => outcome,
        // The server does not wait for it any more.
        () = question.over.cancelled() => Ok(json!({"action": "cancel"})),
        () = closed => return,
    };
    question.peer.send_now(message::response(&id, outcome));
}
