//! The responses API as Azure has it: a deployment of the user's in the place of the model, a version in the address, a
//! header of its own for the key. Everything else is [`openai_responses`](super::openai_responses).

mod provider;

pub(crate) use provider::AzureOpenAi;
