//! The tool `web_search`.

use std::sync::{Arc, LazyLock};

use agentd_agent::{Exposure, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    settings::WebSearchProvider,
    tool::{ToolResult, ToolSpec},
    web::WEB_SEARCH_TOOL,
};
use serde_json::json;

use super::{
    arguments::SearchArguments,
    chain::{Found, SearchOptions},
};

/// Bytes of a query.
const MAX_QUERY: usize = 2000;

static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: WEB_SEARCH_TOOL.to_owned(),
        description: "Search the web. The query may have operators: site: -site: after: before: inurl: intitle: filetype: \"…\" -x OR. \
                      web_fetch reads a page that was found."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to search for"},
                "recency": {"type": "string", "enum": ["day", "week", "month", "year"], "description": "How old results may be"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Results at most; 10 unless given"},
                "num_search_results": {"type": "integer", "minimum": 1, "maximum": 20, "description": "The same as limit"},
                "max_tokens": {"type": "integer", "minimum": 256, "maximum": 32768, "description": "Tokens of an answer, where a model gives one"},
                "temperature": {"type": "number", "minimum": 0, "maximum": 2, "description": "Of that model"},
                "provider": {"type": "string", "enum": WebSearchProvider::ALL.map(WebSearchProvider::as_str), "description": "Who is asked first"},
                "no_fallback": {"type": "boolean", "description": "Ask nobody else where the first one fails"},
            },
            "required": ["query"],
        }),
        constrained_sampling: None,
    })
});

/// The tool. It is declared where somebody can be asked.
pub struct WebSearchTool {
    options: SearchOptions,
}

impl WebSearchTool {
    /// The tool of a session.
    #[must_use]
    pub fn new(options: SearchOptions) -> Self {
        Self { options }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let arguments: SearchArguments = serde_json::from_value(invocation.arguments)
            .map_err(|error| ToolError(format!("The arguments cannot be read: {error}")))?;
        if let Some(why) = &self.options.refused {
            return Err(ToolError(format!("The web cannot be searched: {why}.")));
        }
        if arguments.query.trim().is_empty() || arguments.query.len() > MAX_QUERY {
            return Err(ToolError(format!("A query has words, and at most {MAX_QUERY} bytes.")));
        }
        match self.options.search(&arguments, &invocation.cancel).await {
            Ok(Found { response, notes }) => {
                let text = response.shown(&notes);
                Ok(ToolResult { details: Some(json!({ "response": response })), ..ToolResult::text(text) })
            }
            Err(_) if invocation.cancel.is_cancelled() => Err(ToolError("Operation aborted".to_owned())),
            // The model goes on by itself, and clients see what happened.
            Err(error) => {
                let details = json!({"response": {"provider": "none", "sources": []}, "error": error});
                Ok(ToolResult { details: Some(details), ..ToolResult::text(format!("Error: {error}")) })
            }
        }
    }
}

impl Tool for WebSearchTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Search the web")
    }

    fn exposure(&self) -> Exposure {
        if self.options.chain().is_empty() { Exposure::Hidden } else { Exposure::Direct }
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

#[cfg(test)]
mod tests;
