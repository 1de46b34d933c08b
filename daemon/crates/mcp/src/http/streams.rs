//! Streams of events: the answer to a request, and what a server sends by itself.

use reqwest::{Response, header::HeaderValue};
use tokio::{sync::oneshot, time::sleep};

use super::{
    Connection, MAX_ANSWER,
    answers::{is_transient, read_all, refusal, resume_pause},
};
use crate::{peer::RequestError, sse::SseReader};

/// The header that says which event was the last.
const LAST_EVENT: &str = "last-event-id";

/// How often a broken stream is resumed without any event in between.
const MAX_RESUMES: u32 = 5;

impl Connection {
    /// Reads a stream until the request is answered. One that breaks is resumed where the server has given its events ids, and keeps a
    /// session.
    pub(super) async fn follow(
        &self,
        response: Response,
        id: u64,
        is_stateless: bool,
    ) -> Result<(), RequestError> {
        let mut response = response;
        let mut reader = SseReader::default();
        let mut resumes = 0;
        loop {
            let had_events = self.pump(&mut response, &mut reader, Some(id)).await?;
            if self.peer.ended(id).is_none() {
                return Ok(());
            }
            if had_events {
                resumes = 0;
            }
            let last = reader.last_id().map(str::to_owned);
            let Some(last) = last.filter(|_| resumes < MAX_RESUMES && !is_stateless) else {
                let text = "the server closed the stream before it answered";
                return Err(RequestError::Http(text.to_owned()));
            };
            sleep(reader.retry().unwrap_or_else(|| resume_pause(resumes))).await;
            resumes += 1;
            let pause = reader.retry();
            match self.get(Some(&last)).await {
                Ok(next) if next.status().is_success() => {
                    response = next;
                    // What came of an event that broke off is sent again.
                    reader = SseReader::resumed(last, pause);
                }
                Ok(refused) if !is_transient(refused.status()) => return Err(refusal(refused).await),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Passes on what a stream brings until it ends; whether it brought something.
    async fn pump(
        &self,
        response: &mut Response,
        reader: &mut SseReader,
        about: Option<u64>,
    ) -> Result<bool, RequestError> {
        let (mut had_events, mut charge) = (false, self.charge());
        loop {
            // The events before are done with.
            charge.set(reader.held_bytes() as u64);
            let Ok(Some(chunk)) = response.chunk().await else { return Ok(had_events) };
            charge.grow_to((reader.held_bytes() + chunk.len()) as u64).map_err(RequestError::NoMemory)?;
            let events = reader.push(&chunk).map_err(|_| RequestError::TooLong { limit: MAX_ANSWER })?;
            for event in events.into_iter().filter(|event| event.is_message) {
                had_events = true;
                let data = event.data;
                let read = tokio::task::spawn_blocking(move || read_all(&data)).await;
                match read.unwrap_or_else(|error| Err(error.to_string())) {
                    Ok(messages) => self.take(messages, about),
                    Err(why) => tracing::debug!(why, "an event of an MCP server was passed over"),
                }
            }
        }
    }

    /// Listens to what the server sends by itself, if it offers that; gives up without a word. `opened` hears when the server has answered.
    pub(super) async fn listen(&self, opened: oneshot::Sender<()>) {
        let mut opened = Some(opened);
        let mut reader = SseReader::default();
        let mut failures = 0;
        while failures < MAX_RESUMES {
            let last = reader.last_id().map(str::to_owned);
            let answer = self.get(last.as_deref()).await;
            drop(opened.take());
            match answer {
                Ok(mut response) if response.status().is_success() => {
                    match self.pump(&mut response, &mut reader, None).await {
                        Ok(true) => failures = 0,
                        Ok(false) => failures += 1,
                        Err(_) => return,
                    }
                }
                Ok(response) if !is_transient(response.status()) => return,
                Ok(_) | Err(_) => failures += 1,
            }
            sleep(reader.retry().unwrap_or_else(|| resume_pause(failures))).await;
        }
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Response, RequestError> {
        let last = last_event.and_then(|last| HeaderValue::from_str(last).ok());
        let get = || {
            let request = self.endpoint.client.get(self.endpoint.url.clone());
            last.iter().fold(request, |request, last| request.header(LAST_EVENT, last))
        };
        self.send(get, None).await
    }
}
