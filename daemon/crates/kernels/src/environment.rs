//! The environment of kernels: only variables that are known to be of use, so that no key gets into code of a model.

use std::ffi::OsString;

use agentd_protocol::settings::matches_pattern;

/// What kernels get of the environment of the session's commands, which has no keys of models either. `*` is any part of a name.
const PASSED: [&str; 33] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "VIRTUAL_ENV",
    "CONDA_*",
    "PYTHON*",
    "PYENV_*",
    "UV_CACHE_DIR",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NVM_*",
    "SSL_CERT_*",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "CUDA_*",
    "MPL*",
    "AI_AGENT",
    "PI_CODING_AGENT",
    "*_proxy",
];

/// The variables of `all` that kernels get: those of the list, and what `more` names by patterns (setting `eval.environment`).
pub(crate) fn passed(all: &[(OsString, OsString)], more: &[String]) -> Vec<(OsString, OsString)> {
    let is_passed = |name: &str| {
        PASSED.iter().any(|pattern| matches_pattern(pattern, name))
            || matches_pattern("*_proxy", &name.to_ascii_lowercase())
            || more.iter().any(|pattern| matches_pattern(pattern, name))
    };
    all.iter().filter(|(name, _)| name.to_str().is_some_and(is_passed)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_passes() {
        let all: Vec<(OsString, OsString)> = [
            "PATH",
            "LC_ALL",
            "HTTPS_PROXY",
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "DATABASE_URL",
            "MINE_A",
        ]
        .iter()
        .map(|name| (OsString::from(*name), "v".into()))
        .collect();
        let names = |more: &[&str]| {
            let more: Vec<String> = more.iter().map(|&name| name.to_owned()).collect();
            passed(&all, &more).into_iter().map(|(name, _)| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["PATH", "LC_ALL", "HTTPS_PROXY"]);
        assert_eq!(
            names(&["MINE_*", "DATABASE_URL"]),
            ["PATH", "LC_ALL", "HTTPS_PROXY", "DATABASE_URL", "MINE_A"]
        );
    }
}
