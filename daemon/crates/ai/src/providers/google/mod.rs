//! Google's `streamGenerateContent`, of the Gemini API and of Vertex AI.

mod address;
mod contents;
mod decode;
mod encode;
mod family;
mod provider;
mod schema;
mod stop;
mod thinking;
mod usage;
mod wire;

pub(crate) use provider::{GoogleGenerativeAi, GoogleVertex};
