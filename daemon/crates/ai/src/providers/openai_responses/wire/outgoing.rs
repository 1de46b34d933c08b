//! What is sent.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use crate::providers::json_forms::{Arguments, DataUrl};

/// An item of the input.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum Item<'a> {
    /// The system prompt.
    System { role: &'static str, content: &'a str },
    /// A prompt.
    User { role: &'static str, content: Vec<Part<'a>> },
    /// Reasoning of an earlier answer, as it came.
    Reasoning(&'a RawValue),
    /// A text of an earlier answer.
    Message(Message<'a>),
    /// A tool call of an earlier answer.
    Call {
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        call_id: String,
        name: &'a str,
        arguments: Arguments<'a>,
    },
    /// The result of a tool call.
    Output {
        #[serde(rename = "type")]
        kind: &'static str,
        call_id: String,
        output: Output<'a>,
    },
}

impl<'a> Item<'a> {
    pub(in super::super) fn user(content: Vec<Part<'a>>) -> Self {
        Self::User { role: "user", content }
    }

    pub(in super::super) fn call(
        id: Option<Cow<'a, str>>,
        call_id: String,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> Self {
        Self::Call { kind: "function_call", id, call_id, name, arguments: Arguments(arguments) }
    }

    pub(in super::super) fn output(call_id: String, output: Output<'a>) -> Self {
        Self::Output { kind: "function_call_output", call_id, output }
    }
}

/// A text of an earlier answer.
#[derive(Debug, Serialize)]
pub(in super::super) struct Message<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    content: [OutputText<'a>; 1],
    status: &'static str,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
}

impl<'a> Message<'a> {
    pub(in super::super) fn new(text: &'a str, id: String, phase: Option<String>) -> Self {
        let content = [OutputText { kind: "output_text", text, annotations: [] }];
        Self { kind: "message", role: "assistant", content, status: "completed", id, phase }
    }
}

#[derive(Debug, Serialize)]
struct OutputText<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

/// A part of a prompt or of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in super::super) enum Part<'a> {
    InputText { text: &'a str },
    InputImage { detail: &'static str, image_url: DataUrl<'a> },
}

impl<'a> Part<'a> {
    pub(in super::super) fn image(image: &'a ImageContent) -> Self {
        Self::InputImage { detail: "auto", image_url: DataUrl(image) }
    }
}

/// What a tool gave back.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// A tool that the model can call.
#[derive(Debug, Serialize)]
pub(in super::super) struct Tool<'a> {
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    pub(in super::super) name: &'a str,
    pub(in super::super) description: &'a str,
    pub(in super::super) parameters: Cow<'a, Value>,
    /// `None` leaves the field out, `Some(None)` leaves it to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) strict: Option<Option<bool>>,
}

/// The request body.
#[derive(Debug)]
pub(in super::super) struct Body<'a> {
    pub(in super::super) model: &'a str,
    /// The system prompt, where it is no item of the input.
    pub(in super::super) instructions: Option<&'a str>,
    pub(in super::super) input: Vec<Item<'a>>,
    /// Left out where there are none.
    pub(in super::super) tools: Vec<Tool<'a>>,
    /// All other fields.
    pub(in super::super) fields: Map<String, Value>,
    /// Fields of the model's configuration, which win over everything.
    pub(in super::super) sampling_params: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let configured = |name: &str| self.sampling_params.contains_key(name);
        let mut map = serializer.serialize_map(None)?;
        if !configured("model") {
            map.serialize_entry("model", self.model)?;
        }
        if let Some(instructions) = self.instructions.filter(|_| !configured("instructions")) {
            map.serialize_entry("instructions", instructions)?;
        }
        if !configured("input") {
            map.serialize_entry("input", &self.input)?;
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !configured(name)) {
            map.serialize_entry(name, value)?;
        }
        if !configured("tools") && !self.tools.is_empty() {
            map.serialize_entry("tools", &self.tools)?;
        }
        for (name, value) in &self.sampling_params {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
