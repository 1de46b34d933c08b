//! From a URL to a page that a model can read.

use std::{sync::Arc, time::Duration};

use agentd_images::MAX_FILE_BYTES;
use reqwest::Url;
use tokio::{sync::OnceCell, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    archive::{self, Packed, Unpacked},
    charset,
    content::{Kind, kind, looks_like_html},
    feed,
    html::{self, AlternateKind, HtmlPage},
    json,
    net::{
        Answer, Fetcher, Get, WebError, normalise,
        resolver::{Lookup, SystemLookup},
    },
    options::{WebOptions, WebStore},
    page::{Page, PageContent},
    pdf::PdfReader,
    sites::{Form, Plan, Sites},
};

/// Bytes of a page's text.
pub(crate) const MAX_TEXT: usize = 500_000;

/// Bytes of the text of an answer that is an error.
const MAX_ERROR: usize = 2000;

/// The least bytes of a document that is taken in the place of a page.
const LEAST_DOCUMENT: usize = 100;

/// Files that a site may have for models, which are asked for, at most.
const MAX_GUESSES: usize = 6;

/// What we like to get: Markdown where there is some.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5";

/// What we like to get in the place of a page.
const ACCEPT_TEXT: &str = "text/markdown, text/plain;q=0.9, */*;q=0.1";

/// Reads the web for one session. Cheap to clone.
#[derive(Clone)]
pub struct WebReader {
    pub(crate) store: WebStore,
    pub(crate) options: Arc<WebOptions>,
    pdf: Option<PdfReader>,
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) sites: Sites,
}

impl WebReader {
    /// A reader with these options. Without `pdf`, PDF files are not read.
    #[must_use]
    pub fn new(store: WebStore, options: WebOptions, pdf: Option<PdfReader>) -> Self {
        Self {
            store,
            options: Arc::new(options),
            pdf,
            lookup: Arc::new(SystemLookup),
            sites: Sites::default(),
        }
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &WebOptions {
        &self.options
    }

    /// Reads a page. `raw`: as it was sent. `timeout`: for all that it takes; that of the options where there is none.
    ///
    /// # Errors
    /// [`WebError`], for the model. Cancel safe; ends soon when `cancel` fires.
    pub async fn read(
        &self,
        url: &str,
        raw: bool,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Page, WebError> {
        let url = normalise(url)?;
        let asked = url.host_str().unwrap_or_default().to_owned();
        let limit = timeout.unwrap_or(self.options.timeout);
        let call = Call {
            reader: self,
            fetcher: Fetcher {
                store: &self.store,
                options: &self.options,
                lookup: &self.lookup,
                deadline: Instant::now() + limit,
                limit,
                cancel,
                asked: &asked,
                place: OnceCell::new(),
            },
        };
        let mut notes = Vec::new();
        if !raw && let Some(plan) = self.sites.plan(&url) {
            match call.planned(&url, &plan).await {
                Ok(Some(page)) => return Ok(page),
                Err(error @ (WebError::Aborted | WebError::TimedOut { .. })) => return Err(error),
                Ok(None) | Err(_) => {
                    notes.push(format!("the way of {} came to nothing; this is the page", plan.method))
                }
            }
        }
        let mut page = call.page(&url, raw).await?;
        page.notes.splice(0..0, notes);
        Ok(page)
    }
}

/// One call.
struct Call<'a> {
    reader: &'a WebReader,
    fetcher: Fetcher<'a>,
}

impl Call<'_> {
    async fn get(&self, url: &Url, accept: &str) -> Result<Answer, WebError> {
        self.fetcher.get(Get { url, accept, most: None, is_api: false }).await
    }

    async fn get_of_api(&self, url: &Url, accept: &str) -> Result<Option<Answer>, WebError> {
        let answer = self.fetcher.get(Get { url, accept, most: None, is_api: true }).await?;
        Ok(Some(answer).filter(|answer| answer.status.is_success()))
    }

    /// What a handler of a site makes of a page; `None` where its interface says nothing.
    async fn planned(&self, url: &Url, plan: &Plan) -> Result<Option<Page>, WebError> {
        let page = |content_type: &str, text: String| {
            let (content, note) = bounded(text);
            Page {
                url: url.to_string(),
                content_type: content_type.to_owned(),
                method: plan.method.to_owned(),
                notes: note.into_iter().collect(),
                content,
            }
        };
        Ok(match &plan.form {
            Form::Page(better) => {
                let read = self.page(better, false).await?;
                (read.method != "failed").then(|| Page { method: plan.method.to_owned(), ..read })
            }
            Form::Text(better, accept) => {
                let answer = self.get_of_api(better, accept).await?;
                answer.map(|answer| {
                    page("text/markdown", charset::decode(&answer.body, &answer.content_type, false))
                })
            }
            Form::Feed(better) => {
                let Some(answer) = self.get_of_api(better, "*/*").await? else { return Ok(None) };
                let (base, body) = (answer.url.clone(), answer.body.clone());
                let text = blocking(move || {
                    feed::xml(&charset::decode(&body, "", true)).map(|feed| feed.markdown(&base))
                })
                .await?;
                text.map(|text| page("text/markdown", text))
            }
            Form::Json(urls, shown) => {
                let mut answers = Vec::new();
                for (index, url) in urls.iter().enumerate() {
                    let answer = match self.get_of_api(url, "application/json").await {
                        Ok(answer) => answer,
                        // The first is the page; others add to it.
                        Err(error) if index == 0 => return Err(error),
                        Err(_) => None,
                    };
                    let value = answer.and_then(|answer| serde_json::from_slice(&answer.body).ok());
                    match value {
                        Some(value) => answers.push(value),
                        None => break,
                    }
                }
                let shown = *shown;
                blocking(move || shown(&answers)).await?.map(|text| page("text/markdown", text))
            }
        })
    }

    /// A page as any other.
    async fn page(&self, url: &Url, raw: bool) -> Result<Page, WebError> {
        let answer = self.get(url, ACCEPT).await?;
        if !answer.status.is_success() {
            return self.failed(answer).await;
        }
        self.content(answer, raw).await
    }

    /// An answer that is an error: its status, and what the page says of it.
    async fn failed(&self, answer: Answer) -> Result<Page, WebError> {
        let status = answer.status;
        let said = self.content(answer, true).await?;
        let text = match said.content {
            PageContent::Text(text) if looks_like_html(text.as_bytes()) => {
                let base = Url::parse(&said.url).map_err(|_| WebError::Aborted)?;
                blocking(move || html::fragment(&text, &base, MAX_ERROR)).await?
            }
            PageContent::Text(text) => text[..text.floor_char_boundary(MAX_ERROR)].to_owned(),
            PageContent::Image(_) => String::new(),
        };
        let mut notes = vec![format!("HTTP {status}")];
        notes.extend(said.notes);
        Ok(Page { method: "failed".to_owned(), notes, content: PageContent::Text(text), ..said })
    }

    /// What an answer holds, by its kind.
    async fn content(&self, answer: Answer, raw: bool) -> Result<Page, WebError> {
        let media_type = answer.media_type();
        let kind = kind(&media_type, &answer.body);
        let is_markup = matches!(kind, Kind::Html | Kind::XmlFeed);
        if let Kind::Html = kind
            && !raw
        {
            return self.html(answer).await;
        }
        let (body, content_type) = (answer.body.clone(), answer.content_type.clone());
        let decoded = move || charset::decode(&body, &content_type, is_markup);
        let (method, text) = match kind {
            Kind::Image => return self.image(answer),
            Kind::Pdf => return self.pdf(answer).await,
            Kind::Packed(packed) => return self.packed(answer, packed).await,
            Kind::Binary => {
                let what = if media_type.is_empty() {
                    "of no known kind".to_owned()
                } else {
                    format!("of the kind {media_type}")
                };
                let text = format!(
                    "(The content is binary, {what}, {} bytes, and is not shown.)",
                    answer.body.len()
                );
                ("binary", text)
            }
            Kind::Json if !raw => {
                let (base, pretty) = (answer.url.clone(), move || {
                    let text = decoded();
                    match feed::json(&text) {
                        Some(feed) => ("feed", Err(feed)),
                        None => ("json", Ok(json::pretty(&text, MAX_TEXT + 1).unwrap_or(text))),
                    }
                });
                let (method, read) = blocking(pretty).await?;
                let text = match read {
                    Ok(text) => text,
                    Err(feed) => blocking(move || feed.markdown(&base)).await?,
                };
                (method, text)
            }
            Kind::XmlFeed if !raw => {
                let base = answer.url.clone();
                let read = move || {
                    let text = decoded();
                    match feed::xml(&text) {
                        Some(feed) => ("feed", feed.markdown(&base)),
                        None => ("text", text),
                    }
                };
                blocking(read).await?
            }
            Kind::Markdown if !raw => {
                let is_named = [".md", ".markdown"].iter().any(|ending| answer.url.path().ends_with(ending));
                (if is_named { "markdown" } else { "content-negotiation" }, blocking(decoded).await?)
            }
            _ => (if raw { "raw" } else { "text" }, blocking(decoded).await?),
        };
        Ok(text_page(answer, method, text))
    }

    fn image(&self, answer: Answer) -> Result<Page, WebError> {
        let Answer { url, content_type, body, notes, .. } = answer;
        let content = if body.len() as u64 > MAX_FILE_BYTES {
            PageContent::Text(format!("(The image has {} bytes, more than can be shown.)", body.len()))
        } else {
            PageContent::Image(body)
        };
        Ok(Page { url: url.into(), content_type, method: "image".to_owned(), notes, content })
    }

    async fn pdf(&self, mut answer: Answer) -> Result<Page, WebError> {
        let url = answer.url.to_string();
        let failed = |why: String| WebError::Failed { url: url.clone(), why };
        let Some(reader) = &self.reader.pdf else {
            return Err(failed("PDF files are not read here".to_owned()));
        };
        let read = reader.read(answer.body.clone(), self.fetcher.cancel).await;
        if self.fetcher.cancel.is_cancelled() {
            return Err(WebError::Aborted);
        }
        let read = read.map_err(failed)?;
        answer.notes.extend(read.note);
        let mut text = read.text;
        if text.trim().is_empty() {
            text = "(The PDF has no text: its pages may be images.)".to_owned();
        }
        Ok(text_page(answer, "pdf", text))
    }

    /// An archive as the list of what it holds, a document as its text.
    async fn packed(&self, mut answer: Answer, packed: Packed) -> Result<Page, WebError> {
        let (body, base) = (answer.body.clone(), answer.url.clone());
        let read = blocking(move || archive::read(packed, &body, &base, MAX_TEXT + 1)).await?;
        let Unpacked { method, text, note } = read.unwrap_or_else(|why| {
            let text =
                format!("(The content is binary, {} bytes, and is not shown: {why}.)", answer.body.len());
            Unpacked { method: "binary", text, note: None }
        });
        answer.notes.extend(note);
        Ok(text_page(answer, method, text))
    }

    /// A page of HTML: in the best form that it has.
    async fn html(&self, mut answer: Answer) -> Result<Page, WebError> {
        let (body, content_type, base) =
            (answer.body.clone(), answer.content_type.clone(), answer.url.clone());
        let (read, source) = blocking(move || {
            let source = charset::decode(&body, &content_type, true);
            (html::read(&source, &base, MAX_TEXT + 1), source)
        })
        .await?;
        let of_kind = |kind| {
            read.alternates.iter().find(move |alternate| alternate.kind == kind).map(|it| it.url.clone())
        };
        if let Some(url) = of_kind(AlternateKind::Markdown)
            && let Some(page) = self.instead(&answer, &url, "alternate-markdown").await?
        {
            return Ok(page);
        }
        if !html::is_low(&read.markdown, &read.without_scripts) {
            return Ok(readable(answer, read));
        }
        for (url, method) in self.guesses(&answer.url, of_kind(AlternateKind::Feed), &read) {
            if let Some(page) = self.instead(&answer, &url, method).await? {
                return Ok(page);
            }
        }
        if read.markdown.trim().len() > LEAST_DOCUMENT {
            answer.notes.push("the page has little text of its own: scripts may fill it".to_owned());
            return Ok(readable(answer, read));
        }
        // A short page may say all that it has to say.
        let is_script = read.without_scripts.to_lowercase().contains("javascript")
            || source.len() > 20 * read.markdown.len().max(50);
        if !is_script && !read.markdown.trim().is_empty() {
            return Ok(readable(answer, read));
        }
        answer.notes.push("no readable text was found: this is the HTML".to_owned());
        Ok(text_page(answer, "raw-html", source))
    }

    /// Where the content of a page may be that has none itself, with how it is called.
    fn guesses(&self, url: &Url, feed: Option<Url>, read: &HtmlPage) -> Vec<(Url, &'static str)> {
        let mut guesses: Vec<(Url, &'static str)> = Vec::new();
        guesses.extend(with_md(url).map(|url| (url, "md-suffix")));
        guesses.extend(feed.map(|url| (url, "page-feed")));
        guesses.extend(read.document_links.first().map(|url| (url.clone(), "linked-document")));
        // Of its own folders first, from the deepest on.
        let mut scopes = Vec::new();
        let mut path = url.path();
        while let Some((above, _)) = path.rsplit_once('/') {
            if !above.is_empty() && above != url.path() {
                scopes.push(format!("{above}/llms.txt"));
            }
            path = above;
        }
        let of_root = ["/.well-known/llms.txt", "/llms.txt", "/llms.md"].map(str::to_owned);
        scopes.truncate(MAX_GUESSES - of_root.len());
        guesses.extend(
            scopes.into_iter().chain(of_root).filter_map(|path| Some((url.join(&path).ok()?, "llms.txt"))),
        );
        guesses
    }

    /// A document in the place of a page; `None` where there is none that could be.
    async fn instead(&self, page: &Answer, url: &Url, method: &str) -> Result<Option<Page>, WebError> {
        if *url == page.url {
            return Ok(None);
        }
        let answer = match self.get(url, ACCEPT_TEXT).await {
            Ok(answer) if answer.status.is_success() => answer,
            Err(error @ (WebError::Aborted | WebError::TimedOut { .. })) => return Err(error),
            // It was only a guess.
            Ok(_) | Err(_) => return Ok(None),
        };
        let found = kind(&answer.media_type(), &answer.body);
        let is_document = match found {
            Kind::Markdown | Kind::Text => !looks_like_html(&answer.body),
            Kind::Pdf => method == "linked-document",
            Kind::XmlFeed | Kind::Json => method == "page-feed",
            Kind::Html | Kind::Image | Kind::Packed(_) | Kind::Binary => false,
        };
        if !is_document || answer.body.len() < LEAST_DOCUMENT {
            return Ok(None);
        }
        // A document that cannot be read is none.
        let Ok(mut read) = Box::pin(self.content(answer, false)).await else { return Ok(None) };
        read.notes.insert(0, format!("in the place of {}", page.url));
        Ok(Some(Page { method: method.to_owned(), ..read }))
    }
}

/// The URL of a page's Markdown, as many sites of documentation have it.
fn with_md(url: &Url) -> Option<Url> {
    let path = url.path().trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let path = match last.rsplit_once('.') {
        _ if path.is_empty() => return None,
        Some((_, "html" | "htm")) => {
            path.trim_end_matches("html").trim_end_matches("htm").trim_end_matches('.')
        }
        Some((_, ending)) if ending.len() <= 5 => return None,
        _ => path,
    };
    let mut better = url.clone();
    better.set_path(&format!("{path}.md"));
    better.set_query(None);
    Some(better)
}

fn readable(mut answer: Answer, read: HtmlPage) -> Page {
    if read.is_cut {
        answer.notes.push("the page is too long: its end is left out".to_owned());
    }
    text_page(answer, "html", read.markdown)
}

fn text_page(answer: Answer, method: &str, text: String) -> Page {
    let (content, note) = bounded(text);
    let mut notes = answer.notes;
    notes.extend(note);
    Page {
        url: answer.url.into(),
        content_type: answer.content_type,
        method: method.to_owned(),
        notes,
        content,
    }
}

/// A text within its limit.
fn bounded(mut text: String) -> (PageContent, Option<String>) {
    let length = text.len();
    if length <= MAX_TEXT {
        return (PageContent::Text(text), None);
    }
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text.shrink_to_fit();
    (PageContent::Text(text), Some(format!("the first {MAX_TEXT} bytes of the text are shown")))
}

/// Work for the processor, on a thread where it keeps nobody waiting.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, WebError> {
    // It fails only when the runtime ends, or when the work panics.
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a page could not be read");
        WebError::Failed { url: "The page".to_owned(), why: "its content broke the reader".to_owned() }
    })
}

#[cfg(test)]
mod tests;
