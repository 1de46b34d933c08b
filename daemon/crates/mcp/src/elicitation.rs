//! Questions of servers to the user: forms, and pages to open.
//!
//! A form is asked field by field through the dialogs that every client has. What the user leaves out gets the default of its field. A page
//! is only named: agentd opens nothing.

mod field;

use std::pin::Pin;

use agentd_protocol::text_bounds;
use serde_json::{Map, Value, json};

use self::field::Field;
use crate::message::INVALID_PARAMS;

/// The longest message of a server that is shown, in bytes.
const MAX_MESSAGE: usize = 4000;

/// The most fields of a form: nobody answers more.
const MAX_FIELDS: usize = 50;

/// How often a field is asked again after an answer that does not fit.
const MAX_TRIES: usize = 3;

/// The answer that gives no value for a field.
const LEAVE_OUT: &str = "(leave out)";

/// A text of the user, later; `None` where nobody answers, or the user does not want to.
pub type UserAnswer<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// The user on whose behalf a server is called. The futures wait for an answer as long as somebody can give one, and no longer than the user
/// interface allows; dropped, they take their question back.
pub trait UserInput: Send + Sync {
    /// Whether somebody is there who can answer.
    fn is_there(&self) -> bool;

    /// Asks for one of several options.
    fn select(&self, title: String, options: Vec<String>) -> UserAnswer<'_>;

    /// Asks for a line of text, with an example to show.
    fn input(&self, title: String, placeholder: Option<String>) -> UserAnswer<'_>;
}

/// Asks what a server wants to know (`elicitation/create`): the result for it. Without anybody who could answer, that is `cancel` at once.
///
/// # Errors
/// JSON-RPC's code and the text for the server, whose question cannot be asked.
pub(crate) async fn elicit(
    server: &str,
    params: &Value,
    user: Option<&dyn UserInput>,
) -> Result<Value, (i64, &'static str)> {
    let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = text_bounds::head(text("message"), MAX_MESSAGE);
    let question = match text("mode") {
        "" | "form" => Question::Form(read_form(params.get("requestedSchema"))?),
        "url" => {
            Question::Page(page(text("url")).ok_or((INVALID_PARAMS, "the URL is not one of http or https"))?)
        }
        _ => return Err((INVALID_PARAMS, "this client knows the modes \"form\" and \"url\"")),
    };
    let Some(user) = user.filter(|user| user.is_there()) else { return Ok(json!({"action": "cancel"})) };
    Ok(match question {
        Question::Form(fields) => ask_form(server, message, &fields, user).await,
        Question::Page(url) => {
            let action = ask_page(server, message, &url, user).await;
            json!({"action": action})
        }
    })
}

enum Question {
    Form(Vec<Field>),
    Page(reqwest::Url),
}

/// The address of a page; `None` where it is none that a browser should open.
fn page(url: &str) -> Option<reqwest::Url> {
    reqwest::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Asks whether the user opens a page: the action. That they agree does not mean that they are done there.
pub(crate) async fn ask_page(
    server: &str,
    message: &str,
    url: &reqwest::Url,
    user: &dyn UserInput,
) -> &'static str {
    let host = url.host_str().unwrap_or_default();
    let title =
        format!("The MCP server \"{server}\" asks you to open a page of {host} yourself: {message}\n{url}");
    let (agree, decline) = ("I open it", "Decline");
    match user.select(title, vec![agree.to_owned(), decline.to_owned()]).await {
        Some(answer) if answer == agree => "accept",
        Some(_) => "decline",
        None => "cancel",
    }
}

/// A page that an error of a server names (`-32042`), with its message.
pub(crate) fn required_pages(data: &Value) -> Vec<(String, reqwest::Url)> {
    let listed = data.get("elicitations").and_then(Value::as_array).into_iter().flatten();
    let pages = listed.filter_map(|it| {
        let text = |key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default();
        Some((text_bounds::head(text("message"), MAX_MESSAGE).to_owned(), page(text("url"))?))
    });
    pages.take(MAX_FIELDS).collect()
}

/// The fields of a form, in the order of its schema.
fn read_form(schema: Option<&Value>) -> Result<Vec<Field>, (i64, &'static str)> {
    let wrong = (INVALID_PARAMS, "requestedSchema is no flat object of texts, numbers, booleans and choices");
    let schema = schema.ok_or(wrong)?;
    let properties = match schema.get("properties") {
        None => return Ok(Vec::new()),
        Some(properties) => properties.as_object().ok_or(wrong)?,
    };
    if properties.len() > MAX_FIELDS {
        return Err((INVALID_PARAMS, "the form has more fields than a user answers"));
    }
    let required = |name: &String| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|it| it == name.as_str()))
    };
    let fields =
        properties.iter().map(|(name, schema)| Field::read(name, schema, required(name)).ok_or(wrong));
    fields.collect()
}

async fn ask_form(server: &str, message: &str, fields: &[Field], user: &dyn UserInput) -> Value {
    let cancelled = || json!({"action": "cancel"});
    let with_defaults = defaults(fields);
    let (fill_in, decline) = ("Answer", "Decline");
    let accept = match &with_defaults {
        Some(content) if content.is_empty() => Some("Yes".to_owned()),
        Some(content) => Some(format!("Accept: {}", shown(content))),
        None => None,
    };
    let mut options: Vec<String> = accept.clone().into_iter().collect();
    if !fields.is_empty() {
        options.push(fill_in.to_owned());
    }
    options.push(decline.to_owned());
    let title = format!("The MCP server \"{server}\" asks: {message}");
    let Some(answer) = user.select(title, options).await else { return cancelled() };
    if let Some(content) = with_defaults.filter(|_| accept.as_ref() == Some(&answer)) {
        return json!({"action": "accept", "content": content});
    }
    if answer != fill_in {
        return json!({"action": "decline"});
    }
    let mut content = Map::new();
    for field in fields {
        let Some(value) = ask_field(field, user).await else { return cancelled() };
        if let Some(value) = value {
            content.insert(field.name.clone(), value);
        }
    }
    json!({"action": "accept", "content": content})
}

/// Asks for one field. `None`: the user gave up, or nothing that they said fits; `Some(None)`: it is left out.
async fn ask_field(field: &Field, user: &dyn UserInput) -> Option<Option<Value>> {
    let mut title = field.title();
    for _ in 0..MAX_TRIES {
        let answer = match field.options() {
            Some(mut options) => {
                if !field.is_required && field.default.is_none() {
                    options.push(LEAVE_OUT.to_owned());
                }
                user.select(title.clone(), options).await?
            }
            None => user.input(title.clone(), field.placeholder()).await?,
        };
        if answer.trim().is_empty() || answer == LEAVE_OUT {
            match &field.default {
                Some(default) => return Some(Some(default.clone())),
                None if !field.is_required => return Some(None),
                None => title = format!("{} (an answer is needed)", field.title()),
            }
            continue;
        }
        match field.parse(answer.trim()) {
            Ok(value) => return Some(Some(value)),
            Err(why) => title = format!("{} ({why})", field.title()),
        }
    }
    None
}

/// The content where every field that needs a value has a default.
fn defaults(fields: &[Field]) -> Option<Map<String, Value>> {
    if fields.iter().any(|field| field.is_required && field.default.is_none()) {
        return None;
    }
    let filled = fields.iter().filter_map(|field| Some((field.name.clone(), field.default.clone()?)));
    Some(filled.collect())
}

/// Values in a few words.
fn shown(content: &Map<String, Value>) -> String {
    let shown = content.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name} = {text}"),
        value => format!("{name} = {value}"),
    });
    let all = shown.collect::<Vec<_>>().join(", ");
    text_bounds::head(&all, 200).to_owned()
}

/// Reads a form, and an answer for each of its fields, for the laws.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_form(schema: Option<&Value>, answer: &str) {
    for field in read_form(schema).into_iter().flatten() {
        let parsed = field.parse(answer).ok();
        assert!(field.default.iter().chain(&parsed).all(|value| field.fits(value)), "{field:?}");
        assert!(!field.title().is_empty() || field.name.is_empty());
        let _ = (field.options(), field.placeholder());
    }
}

#[cfg(test)]
mod tests;
