//! The setting `eval`: cells of code in interpreters that stay.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The tool `eval`, which runs cells of code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct EvalSettings {
    /// Whether the tool is there, and active in new sessions, where a language of it has an interpreter; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub enabled: Option<bool>,
    /// The languages of cells: `py`, `js`, and `jupyter:NAME` for a kernel of Jupyter; default `py` and `js`. The tool declares those of
    /// them whose interpreter is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["py", "js"])))]
    pub languages: Option<Vec<String>>,
    /// The interpreter of Python, 3.10 or newer; default `bin/python` of `VIRTUAL_ENV`, of `CONDA_PREFIX`, and of `.venv` or `venv` in the
    /// folder of a trusted project, else `python3` on the search path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The interpreter of JavaScript, which is Node, 20 or newer; default `node` on the search path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub javascript: Option<String>,
    /// Environment variables that interpreters get besides the usual ones, such as `PATH` and `HOME`: names, with `*` for any part of one;
    /// default none. Keys of model providers are left out unless `childEnvironment.pass` names them, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub environment: Option<Vec<String>>,
    /// The most interpreters of all sessions at a time; default 8. For one more, the one that has been idle for longest ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 8)))]
    pub max_kernels: Option<NonZeroU32>,
    /// After how many milliseconds an interpreter without work ends; default 900000 (15 minutes). 0 is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 900_000)))]
    pub idle_ms: Option<u64>,
    /// The most memory of an interpreter with all that it starts, in bytes; default 4294967296 (4 GiB). 0 is no limit. What `processes` says
    /// counts besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 4_294_967_296_u64)))]
    pub max_memory_bytes: Option<u64>,
}
