//! The tool `web_search`: services that search, one after the other until one answers.

mod arguments;
mod ask;
mod chain;
mod query;
mod response;
mod services;
mod tool;
mod vendor;

pub use chain::{SearchAccess, SearchOptions};
pub use tool::WebSearchTool;
pub use vendor::{Vendor, VendorKind};
