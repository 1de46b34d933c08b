//! URLs that clients serve to the tools `read` and `write`.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use agentd_agent::{ToolError, ToolProgress};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    host_uris::{HostUriCancel, HostUriOperation, HostUriRequest, HostUriResult, HostUriScheme},
    tool::ToolResult,
};
use agentd_tools::{UrlContent, UrlReader, UrlSource, UrlWritten};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    calls::Answer,
    request_ends::{CallOf, Leaving, Over},
    tool::{ABORTED, CallLimits, ClientToolRequest, ProvidingClient},
};
use crate::reply::encode;

/// Schemes that are remembered after their clients have left.
const REMEMBERED: usize = 1024;

/// The schemes of a session's clients. It outlives the session's stay in memory. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct HostUrls(Arc<Mutex<Schemes>>);

#[derive(Default)]
struct Schemes {
    here: Vec<ServedScheme>,
    /// Those that have gone. A URL of one never becomes a path, which other permissions would have to be asked for.
    gone: VecDeque<String>,
}

/// A scheme, and the client that serves it.
#[derive(Clone)]
struct ServedScheme {
    scheme: HostUriScheme,
    provider: Arc<ProvidingClient>,
}

/// What is known of a scheme.
enum Known {
    Here(ServedScheme),
    Gone,
}

impl HostUrls {
    fn lock(&self) -> MutexGuard<'_, Schemes> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client serves exactly these from here on.
    pub(super) fn replace(
        &self,
        provider: &Arc<ProvidingClient>,
        schemes: Vec<HostUriScheme>,
    ) -> Result<(), Failure> {
        let mut all = self.lock();
        let of_others = |served: &&ServedScheme| served.provider.id() != provider.id();
        if let Some(taken) = all
            .here
            .iter()
            .filter(of_others)
            .find(|served| schemes.iter().any(|scheme| scheme.scheme == served.scheme.scheme))
        {
            let (scheme, client) = (&taken.scheme.scheme, &taken.provider.client);
            let text = format!("The scheme {scheme}:// is served by another client ({client}).");
            return Err(Failure::new(ErrorCode::InvalidField, text).hint("Choose another scheme."));
        }
        all.take_out(provider.id());
        all.gone.retain(|gone| !schemes.iter().any(|scheme| scheme.scheme == *gone));
        all.here.extend(
            schemes.into_iter().map(|scheme| ServedScheme { scheme, provider: Arc::clone(provider) }),
        );
        Ok(())
    }

    /// A client serves none any more.
    pub(super) fn remove(&self, provider: u64) {
        self.lock().take_out(provider);
    }

    fn find(&self, scheme: &str) -> Option<Known> {
        let all = self.lock();
        let here = all.here.iter().find(|served| served.scheme.scheme == scheme);
        let gone = || all.gone.iter().any(|gone| gone == scheme).then_some(Known::Gone);
        here.cloned().map(Known::Here).or_else(gone)
    }

    /// Whether a client serves or has served URLs of this scheme, which is in lower case.
    pub(crate) fn knows(&self, scheme: &str) -> bool {
        self.find(scheme).is_some()
    }

    /// The section of the system prompt about them.
    pub(crate) fn section(&self) -> Option<String> {
        let all = self.lock();
        let line = |served: &ServedScheme| {
            let HostUriScheme { scheme, description, writable, .. } = &served.scheme;
            let description = description.as_deref().unwrap_or_default();
            let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
            let with = if *writable { "read and write" } else { "read" };
            let colon = if description.is_empty() { "" } else { ": " };
            format!("- {scheme}:// ({with}){colon}{description}")
        };
        let lines: Vec<String> = all.here.iter().map(line).collect();
        (!lines.is_empty()).then(|| format!("URLs that can be used as paths of tools:\n{}", lines.join("\n")))
    }
}

impl Schemes {
    fn take_out(&mut self, provider: u64) {
        let (leaving, staying): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.here).into_iter().partition(|served| served.provider.id() == provider);
        self.here = staying;
        for ServedScheme { scheme, .. } in leaving {
            if self.gone.len() >= REMEMBERED {
                self.gone.pop_front();
            }
            self.gone.push_back(scheme.scheme);
        }
    }
}

/// The way to the URLs of a session's clients, for what is made before the session has clients. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct HostUrlsLink(Arc<OnceLock<HostUrls>>);

impl HostUrlsLink {
    /// Only the first counts: a session in memory has one.
    pub(crate) fn set(&self, urls: HostUrls) {
        let _ = self.0.set(urls);
    }

    pub(crate) fn get(&self) -> Option<&HostUrls> {
        self.0.get()
    }

    /// Whether a client serves or has served URLs of this scheme, which is in lower case.
    pub(crate) fn knows(&self, scheme: &str) -> bool {
        self.get().is_some_and(|urls| urls.knows(scheme))
    }

    /// The same as a source of the tools, with these limits of its requests.
    pub(crate) fn source(&self, limits: CallLimits) -> Arc<dyn UrlSource> {
        Arc::new(HostUrlSource { urls: self.clone(), limits })
    }
}

struct HostUrlSource {
    urls: HostUrlsLink,
    limits: CallLimits,
}

impl UrlSource for HostUrlSource {
    fn reader(&self, scheme: &str) -> Option<Arc<dyn UrlReader>> {
        let start = format!("{scheme}://");
        Some(match self.urls.get()?.find(scheme)? {
            Known::Here(served) => Arc::new(HostUrlReader { start, served, limits: self.limits }),
            Known::Gone => Arc::new(GoneUrls { start }),
        })
    }

    fn starts(&self) -> Vec<String> {
        let Some(urls) = self.urls.get() else { return Vec::new() };
        urls.lock().here.iter().map(|served| format!("{}://", served.scheme.scheme)).collect()
    }
}

/// URLs whose client has left.
struct GoneUrls {
    start: String,
}

impl UrlReader for GoneUrls {
    fn start(&self) -> &str {
        &self.start
    }

    fn read<'a>(&'a self, _: &'a str, _: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async { Err(self.error()) })
    }

    fn write<'a>(&'a self, _: &'a str, _: String, _: &'a CancellationToken) -> UrlWritten<'a> {
        Box::pin(async { Err(self.error()) })
    }
}

impl GoneUrls {
    fn error(&self) -> ToolError {
        ToolError(format!("No client serves {} any more.", self.start))
    }
}

/// Asks the client about URLs of one scheme.
struct HostUrlReader {
    start: String,
    served: ServedScheme,
    limits: CallLimits,
}

impl HostUrlReader {
    async fn ask(
        &self,
        operation: HostUriOperation,
        rest: &str,
        content: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<HostUriResult, ToolError> {
        let ServedScheme { scheme, provider } = &self.served;
        let of = CallOf::Url { scheme: scheme.scheme.clone(), operation };
        let CallLimits { timeout, max_result_bytes } = self.limits;
        let (id, answer) =
            provider.calls.open(provider.id(), of.clone(), max_result_bytes, ToolProgress::new(|_| {}));
        let request = HostUriRequest {
            id: id.clone(),
            operation,
            url: format!("{}{rest}", self.start),
            content,
            session_id: provider.session_id.clone(),
        };
        let line = encode(&request.into()).map_err(|error| ToolError(error.to_string()))?;
        let request = ClientToolRequest::new(provider, &id, line);
        let asked = async {
            provider.requests.send(request).await;
            answer.await
        };
        let too_late = async {
            match timeout {
                Some(limit) => sleep(limit).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = asked => match answer {
                Ok(Answer::Url(result)) => Ok(*result),
                Ok(Answer::Failed(why)) => Err(ToolError(why)),
                // Only an answer about a tool or a cell brings the others, which this request refuses.
                Ok(Answer::Result(_) | Answer::Cell(_)) | Err(_) => Err(ToolError(Leaving::Disconnected.text(&of))),
            },
            () = cancel.cancelled() => {
                self.take_back(id, Over::Aborted);
                Err(ToolError(ABORTED.to_owned()))
            }
            () = too_late => {
                self.take_back(id, Over::TimedOut);
                let seconds = timeout.unwrap_or_default().as_secs_f64();
                Err(ToolError(format!("The client that provides {of} did not answer within {seconds} seconds.")))
            }
        }
    }

    /// Nobody waits for the answer any more; a client that knows of the request is told so.
    fn take_back(&self, target_id: String, over: Over) {
        let provider = &self.served.provider;
        if provider.calls.give_up(&target_id, over) {
            let (id, session_id) = (Uuid::new_v4().to_string(), provider.session_id.clone());
            provider.tell(&HostUriCancel { id, target_id, session_id }.into());
        }
    }
}

impl UrlReader for HostUrlReader {
    fn start(&self) -> &str {
        &self.start
    }

    fn read<'a>(&'a self, rest: &'a str, cancel: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move {
            let result = self.ask(HostUriOperation::Read, rest, None, cancel).await?;
            let mut content = result.content.unwrap_or_default();
            if !result.notes.is_empty() {
                content.push_str("\n\n");
                content.push_str(&noted(&result.notes));
            }
            Ok(content.into_bytes())
        })
    }

    fn write<'a>(&'a self, rest: &'a str, content: String, cancel: &'a CancellationToken) -> UrlWritten<'a> {
        Box::pin(async move {
            let start = &self.start;
            if !self.is_writable() {
                return Err(ToolError(format!("{start}{rest} is read-only.")));
            }
            let result = self.ask(HostUriOperation::Write, rest, Some(content), cancel).await?;
            let mut text = format!("Successfully wrote to {start}{rest}");
            if !result.notes.is_empty() {
                text.push('\n');
                text.push_str(&noted(&result.notes));
            }
            Ok(ToolResult::text(text))
        })
    }

    fn is_writable(&self) -> bool {
        self.served.scheme.writable
    }
}

/// Notes of the client, a line each.
fn noted(notes: &[String]) -> String {
    notes.iter().map(|note| format!("[{note}]")).collect::<Vec<_>>().join("\n")
}
