//! The responses API behind ChatGPT's subscriptions. What differs is here: who pays, where requests go, and what a limit of
//! the subscription means. Everything else is [`openai_responses`](super::openai_responses).

mod account;
mod limits;
mod provider;

pub(crate) use provider::OpenAiCodex;
