//! What the events of the Converse API mean.

use serde::de::Error as _;
use serde_json::Value;

use super::{
    blocks::Blocks,
    stop::last_step,
    usage::usage,
    wire::incoming::{Event, Start, Whole},
};
use crate::{
    Delta,
    http::{AwsError, ErrorBody, Framing, Server, Step, Wire},
};

/// Reads one answer.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Reader {
    server: Server,
    blocks: Blocks,
    stop_reason: Option<String>,
}

impl Reader {
    /// A reader for an answer of `server`.
    pub(super) fn new(server: Server) -> Self {
        Self { server, blocks: Blocks::default(), stop_reason: None }
    }

    fn last_step(&self) -> Step {
        last_step(self.stop_reason.as_deref(), self.blocks.has_calls(), &self.server)
    }
}

impl Wire for Reader {
    const FRAMING: Framing = Framing::AwsEventStream;

    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let event: Event = match name {
            "contentBlockDelta" | "contentBlockStart" | "contentBlockStop" | "messageStop" | "metadata" => {
                serde_json::from_str(data)?
            }
            // The beginning, and what is yet to be invented.
            _ => return Ok(Step::More),
        };
        let number = event.content_block_index.unwrap_or(0);
        match name {
            "contentBlockDelta" => self.blocks.extend(number, event.delta, out),
            "contentBlockStart" => {
                self.blocks.start(number, Start { tool_use: event.start.tool_use }, out);
            }
            "contentBlockStop" => self.blocks.stop(number, out),
            "messageStop" => {
                self.stop_reason = event.stop_reason.filter(|reason| !reason.is_empty());
            }
            _ => {
                out.extend(event.usage.map(|report| Delta::Usage(usage(&report))));
                // The counts come last.
                if self.stop_reason.is_some() {
                    return Ok(self.last_step());
                }
            }
        }
        Ok(Step::More)
    }

    fn exception(&mut self, name: &str, data: &str, server: &Server) -> Step {
        Step::failed(server.aws_refusal(None, &AwsError::of(name, data)))
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<Step, serde_json::Error> {
        let whole: Whole = serde_json::from_str(json)?;
        let Some(output) = whole.output else {
            if let Some(error) = AwsError::in_body(json) {
                return Ok(Step::failed(self.server.aws_refusal(None, &error)));
            }
            let value: Value = serde_json::from_str(json)?;
            if value.get("error").is_some_and(|error| !error.is_null()) || value.get("message").is_some() {
                return Ok(Step::failed(self.server.refusal(None, &ErrorBody::read(json))));
            }
            return Err(serde_json::Error::custom("no output"));
        };
        for (number, block) in (0..).zip(output.message.content) {
            self.blocks.whole(number, block, out);
        }
        out.extend(whole.usage.map(|report| Delta::Usage(usage(&report))));
        self.stop_reason = whole.stop_reason;
        Ok(self.last_step())
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Step {
        self.last_step()
    }

    fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.blocks.seal(incomplete, out);
    }

    fn has_all_content(&self) -> bool {
        self.stop_reason.is_some()
    }
}

#[cfg(test)]
mod tests;
