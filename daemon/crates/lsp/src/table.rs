//! The language servers that agentd knows: one table, no code. Servers of one language stand in the order in which they are preferred.

/// A server of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownServer {
    pub(crate) name: &'static str,
    /// Servers of the same group do the same: the first one that is there is used.
    pub(crate) group: &'static str,
    pub(crate) command: &'static str,
    pub(crate) args: &'static [&'static str],
    /// Ends of file names, with their point, or whole names.
    pub(crate) file_types: &'static [&'static str],
    /// Names of files and folders that the root of a project has; `*` at the beginning stands for anything.
    pub(crate) root_markers: &'static [&'static str],
    /// Whether it is of no use without a marker.
    pub(crate) needs_marker: bool,
    /// Whether it runs code of the project: build scripts, plugins, a compiler that the project brings.
    pub(crate) runs_code: bool,
    /// Whether it only says what is wrong.
    pub(crate) is_linter: bool,
    /// Whether it reports on all files of the project, not only on those that it was given.
    pub(crate) checks_project: bool,
    /// Whether it tells by `experimental/serverStatus` when it has read the project, and answers nothing useful before.
    pub(crate) tells_status: bool,
    /// What its log says once it knows the files of the project, such as a part of a sentence: before, it answers from those that it was given.
    /// Empty for one without such a message.
    pub(crate) log_when_read: &'static str,
    /// Options of `initialize`, as JSON.
    pub(crate) init_options: &'static str,
    /// Answers for `workspace/configuration`, as JSON.
    pub(crate) settings: &'static str,
}

/// A server without anything special.
const PLAIN: KnownServer = KnownServer {
    name: "",
    group: "",
    command: "",
    args: &[],
    file_types: &[],
    root_markers: &[],
    needs_marker: false,
    runs_code: false,
    is_linter: false,
    checks_project: false,
    tells_status: false,
    log_when_read: "",
    init_options: "",
    settings: "",
};

const STDIO: &[&str] = &["--stdio"];
const SCRIPTS: &[&str] = &[".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];
const NODE: &[&str] = &["tsconfig.json", "jsconfig.json", "package.json"];
const PYTHON: &[&str] =
    &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "pyrightconfig.json"];
const C_FAMILY: &[&str] = &[".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".m", ".mm"];
const RUBY: &[&str] = &["Gemfile", ".ruby-version"];
const ELIXIR: &[&str] = &[".ex", ".exs", ".heex"];

/// A folder of its own for what it builds: commands that build would wait for it otherwise.
const RUST_ANALYZER: &str = r#"{"cargo": {"targetDir": true}}"#;
const RUST_ANALYZER_SECTION: &str = r#"{"rust-analyzer": {"cargo": {"targetDir": true}}}"#;

/// Without the second that it waits by default for more keys to be typed.
const GOPLS: &str = r#"{"diagnosticsDelay": "0s"}"#;
const GOPLS_SECTION: &str = r#"{"gopls": {"diagnosticsDelay": "0s"}}"#;

/// The settings that pyright and its kin ask for.
const PYRIGHT: &str = r#"{"python": {"analysis": {"diagnosticMode": "openFilesOnly", "autoSearchPaths": true}},
    "basedpyright": {"analysis": {"diagnosticMode": "openFilesOnly", "autoSearchPaths": true}}}"#;

/// Without a second compiler that answers from single files while the first one reads the project: it would find a part of the uses of a
/// symbol, and a rename would change no more.
const VTSLS: &str = r#"{"typescript": {"tsserver": {"useSyntaxServer": "never"}}, "javascript": {"tsserver": {"useSyntaxServer": "never"}}}"#;

/// `Found 2 source files`, `No source files found.`
const PYRIGHT_HAS_READ: &str = "source file";

/// All of them.
pub(crate) const SERVERS: &[KnownServer] = &[
    KnownServer {
        name: "rust-analyzer",
        group: "rust",
        command: "rust-analyzer",
        file_types: &[".rs"],
        root_markers: &["Cargo.toml", "rust-project.json"],
        needs_marker: true,
        runs_code: true,
        checks_project: true,
        tells_status: true,
        init_options: RUST_ANALYZER,
        settings: RUST_ANALYZER_SECTION,
        ..PLAIN
    },
    KnownServer {
        name: "deno",
        group: "typescript",
        command: "deno",
        args: &["lsp"],
        file_types: SCRIPTS,
        root_markers: &["deno.json", "deno.jsonc"],
        needs_marker: true,
        init_options: r#"{"enable": true, "lint": true}"#,
        ..PLAIN
    },
    KnownServer {
        name: "typescript-language-server",
        group: "typescript",
        command: "typescript-language-server",
        args: STDIO,
        file_types: SCRIPTS,
        root_markers: NODE,
        // It prefers the compiler of the project.
        runs_code: true,
        // Why without the syntax server: [`VTSLS`].
        init_options: r#"{"hostInfo": "agentd", "disableAutomaticTypingAcquisition": true, "tsserver": {"useSyntaxServer": "never"},
            "preferences": {"providePrefixAndSuffixTextForRename": false}}"#,
        ..PLAIN
    },
    KnownServer {
        name: "vtsls",
        group: "typescript",
        command: "vtsls",
        args: STDIO,
        file_types: SCRIPTS,
        root_markers: NODE,
        runs_code: true,
        settings: VTSLS,
        ..PLAIN
    },
    KnownServer {
        name: "basedpyright",
        group: "python",
        command: "basedpyright-langserver",
        args: STDIO,
        file_types: &[".py", ".pyi"],
        root_markers: PYTHON,
        settings: PYRIGHT,
        log_when_read: PYRIGHT_HAS_READ,
        ..PLAIN
    },
    KnownServer {
        name: "pyright",
        group: "python",
        command: "pyright-langserver",
        args: STDIO,
        file_types: &[".py", ".pyi"],
        root_markers: PYTHON,
        settings: PYRIGHT,
        log_when_read: PYRIGHT_HAS_READ,
        ..PLAIN
    },
    KnownServer {
        name: "pylsp",
        group: "python",
        command: "pylsp",
        file_types: &[".py", ".pyi"],
        root_markers: PYTHON,
        ..PLAIN
    },
    KnownServer {
        name: "gopls",
        group: "go",
        command: "gopls",
        file_types: &[".go", "go.mod", "go.work"],
        root_markers: &["go.work", "go.mod"],
        checks_project: true,
        init_options: GOPLS,
        settings: GOPLS_SECTION,
        ..PLAIN
    },
    KnownServer {
        name: "clangd",
        group: "c",
        command: "clangd",
        args: &["--background-index=false"],
        file_types: C_FAMILY,
        root_markers: &[
            "compile_commands.json",
            "compile_flags.txt",
            ".clangd",
            "CMakeLists.txt",
            "Makefile",
        ],
        ..PLAIN
    },
    KnownServer {
        name: "jdtls",
        group: "java",
        command: "jdtls",
        file_types: &[".java"],
        root_markers: &["pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle"],
        needs_marker: true,
        runs_code: true,
        checks_project: true,
        ..PLAIN
    },
    KnownServer {
        name: "csharp-ls",
        group: "csharp",
        command: "csharp-ls",
        file_types: &[".cs"],
        root_markers: &["*.sln", "*.slnx", "*.csproj"],
        needs_marker: true,
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "omnisharp",
        group: "csharp",
        command: "OmniSharp",
        args: &["-lsp"],
        file_types: &[".cs"],
        root_markers: &["*.sln", "*.csproj"],
        needs_marker: true,
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "ruby-lsp",
        group: "ruby",
        command: "ruby-lsp",
        file_types: &[".rb", ".rake", "Gemfile", "Rakefile"],
        root_markers: RUBY,
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "solargraph",
        group: "ruby",
        command: "solargraph",
        args: &["stdio"],
        file_types: &[".rb", ".rake", "Gemfile", "Rakefile"],
        root_markers: RUBY,
        ..PLAIN
    },
    KnownServer {
        name: "intelephense",
        group: "php",
        command: "intelephense",
        args: STDIO,
        file_types: &[".php"],
        root_markers: &["composer.json"],
        ..PLAIN
    },
    KnownServer {
        name: "phpactor",
        group: "php",
        command: "phpactor",
        args: &["language-server"],
        file_types: &[".php"],
        root_markers: &["composer.json"],
        ..PLAIN
    },
    KnownServer {
        name: "kotlin-language-server",
        group: "kotlin",
        command: "kotlin-language-server",
        file_types: &[".kt", ".kts"],
        root_markers: &["build.gradle", "build.gradle.kts", "pom.xml"],
        needs_marker: true,
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "sourcekit-lsp",
        group: "swift",
        command: "sourcekit-lsp",
        file_types: &[".swift"],
        root_markers: &["Package.swift"],
        needs_marker: true,
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "metals",
        group: "scala",
        command: "metals",
        file_types: &[".scala", ".sbt"],
        root_markers: &["build.sbt", "build.sc", "project.scala"],
        needs_marker: true,
        runs_code: true,
        checks_project: true,
        ..PLAIN
    },
    KnownServer {
        name: "lua-language-server",
        group: "lua",
        command: "lua-language-server",
        file_types: &[".lua"],
        root_markers: &[".luarc.json", ".luarc.jsonc", ".stylua.toml"],
        ..PLAIN
    },
    KnownServer {
        name: "zls",
        group: "zig",
        command: "zls",
        file_types: &[".zig", ".zon"],
        root_markers: &["build.zig"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "elixir-ls",
        group: "elixir",
        command: "elixir-ls",
        file_types: ELIXIR,
        root_markers: &["mix.exs"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "expert",
        group: "elixir",
        command: "expert",
        args: STDIO,
        file_types: ELIXIR,
        root_markers: &["mix.exs"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "elp",
        group: "erlang",
        command: "elp",
        args: &["server"],
        file_types: &[".erl", ".hrl"],
        root_markers: &["rebar.config"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "haskell-language-server",
        group: "haskell",
        command: "haskell-language-server-wrapper",
        args: &["--lsp"],
        file_types: &[".hs", ".lhs"],
        root_markers: &["hie.yaml", "cabal.project", "stack.yaml", "package.yaml", "*.cabal"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "ocamllsp",
        group: "ocaml",
        command: "ocamllsp",
        file_types: &[".ml", ".mli"],
        root_markers: &["dune-project", "dune-workspace", "*.opam"],
        ..PLAIN
    },
    KnownServer {
        name: "dart",
        group: "dart",
        command: "dart",
        args: &["language-server", "--protocol=lsp"],
        file_types: &[".dart"],
        root_markers: &["pubspec.yaml"],
        needs_marker: true,
        checks_project: true,
        ..PLAIN
    },
    KnownServer {
        name: "bash-language-server",
        group: "shell",
        command: "bash-language-server",
        args: &["start"],
        file_types: &[".sh", ".bash"],
        ..PLAIN
    },
    KnownServer {
        name: "yaml-language-server",
        group: "yaml",
        command: "yaml-language-server",
        args: STDIO,
        file_types: &[".yaml", ".yml"],
        ..PLAIN
    },
    KnownServer {
        name: "vscode-json-language-server",
        group: "json",
        command: "vscode-json-language-server",
        args: STDIO,
        file_types: &[".json", ".jsonc"],
        init_options: r#"{"provideFormatter": false}"#,
        ..PLAIN
    },
    KnownServer {
        name: "vscode-css-language-server",
        group: "css",
        command: "vscode-css-language-server",
        args: STDIO,
        file_types: &[".css", ".scss", ".less"],
        ..PLAIN
    },
    KnownServer {
        name: "vscode-html-language-server",
        group: "html",
        command: "vscode-html-language-server",
        args: STDIO,
        file_types: &[".html", ".htm"],
        ..PLAIN
    },
    KnownServer {
        name: "svelteserver",
        group: "svelte",
        command: "svelteserver",
        args: STDIO,
        file_types: &[".svelte"],
        root_markers: &["svelte.config.js", "package.json"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "terraform-ls",
        group: "terraform",
        command: "terraform-ls",
        args: &["serve"],
        file_types: &[".tf", ".tfvars"],
        root_markers: &[".terraform", "main.tf"],
        ..PLAIN
    },
    KnownServer {
        name: "nixd",
        group: "nix",
        command: "nixd",
        file_types: &[".nix"],
        root_markers: &["flake.nix"],
        runs_code: true,
        ..PLAIN
    },
    KnownServer {
        name: "nil",
        group: "nix",
        command: "nil",
        file_types: &[".nix"],
        root_markers: &["flake.nix"],
        ..PLAIN
    },
    KnownServer {
        name: "gleam",
        group: "gleam",
        command: "gleam",
        args: &["lsp"],
        file_types: &[".gleam"],
        root_markers: &["gleam.toml"],
        needs_marker: true,
        ..PLAIN
    },
    KnownServer {
        name: "ruff",
        group: "ruff",
        command: "ruff",
        args: &["server"],
        file_types: &[".py", ".pyi"],
        root_markers: PYTHON,
        is_linter: true,
        ..PLAIN
    },
    KnownServer {
        name: "biome",
        group: "biome",
        command: "biome",
        args: &["lsp-proxy"],
        file_types: SCRIPTS,
        root_markers: &["biome.json", "biome.jsonc"],
        needs_marker: true,
        is_linter: true,
        ..PLAIN
    },
];

/// The names that the protocol has for languages, by the end of a file's name or the whole of it.
const LANGUAGES: &[(&str, &str)] = &[
    (".rs", "rust"),
    (".ts", "typescript"),
    (".mts", "typescript"),
    (".cts", "typescript"),
    (".tsx", "typescriptreact"),
    (".js", "javascript"),
    (".mjs", "javascript"),
    (".cjs", "javascript"),
    (".jsx", "javascriptreact"),
    (".py", "python"),
    (".pyi", "python"),
    (".go", "go"),
    ("go.mod", "go.mod"),
    ("go.work", "go.work"),
    (".c", "c"),
    (".h", "c"),
    (".cc", "cpp"),
    (".cpp", "cpp"),
    (".cxx", "cpp"),
    (".hpp", "cpp"),
    (".hh", "cpp"),
    (".hxx", "cpp"),
    (".m", "objective-c"),
    (".mm", "objective-cpp"),
    (".java", "java"),
    (".cs", "csharp"),
    (".rb", "ruby"),
    (".rake", "ruby"),
    ("Gemfile", "ruby"),
    ("Rakefile", "ruby"),
    (".php", "php"),
    (".kt", "kotlin"),
    (".kts", "kotlin"),
    (".swift", "swift"),
    (".scala", "scala"),
    (".sbt", "scala"),
    (".lua", "lua"),
    (".zig", "zig"),
    (".zon", "zig"),
    (".ex", "elixir"),
    (".exs", "elixir"),
    (".heex", "phoenix-heex"),
    (".erl", "erlang"),
    (".hrl", "erlang"),
    (".hs", "haskell"),
    (".lhs", "literate haskell"),
    (".ml", "ocaml"),
    (".mli", "ocaml.interface"),
    (".dart", "dart"),
    (".sh", "shellscript"),
    (".bash", "shellscript"),
    (".yaml", "yaml"),
    (".yml", "yaml"),
    (".json", "json"),
    (".jsonc", "jsonc"),
    (".css", "css"),
    (".scss", "scss"),
    (".less", "less"),
    (".html", "html"),
    (".htm", "html"),
    (".svelte", "svelte"),
    (".vue", "vue"),
    (".tf", "terraform"),
    (".tfvars", "terraform-vars"),
    (".nix", "nix"),
    (".gleam", "gleam"),
];

/// The protocol's name of the language of a file: for kinds that are not known the end of its name without the point.
pub(crate) fn language_of(file_name: &str) -> String {
    let known = LANGUAGES.iter().find(|(end, _)| is_of_type(file_name, end));
    match known {
        Some((_, language)) => (*language).to_owned(),
        None => file_name.rsplit_once('.').map_or(file_name, |(_, end)| end).to_lowercase(),
    }
}

/// Whether a file's name is of a type: `.rs`, `rs` or a whole name.
pub(crate) fn is_of_type(file_name: &str, file_type: &str) -> bool {
    if file_name == file_type {
        return true;
    }
    let end = file_type.strip_prefix('.').unwrap_or(file_type);
    file_name.rsplit_once('.').is_some_and(|(_, of_file)| of_file.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_table_has_what_it_needs() {
        let mut names = BTreeSet::new();
        for server in SERVERS {
            assert!(names.insert(server.name), "{} stands twice", server.name);
            assert!(!server.group.is_empty() && !server.command.is_empty(), "{}", server.name);
            assert!(!server.file_types.is_empty(), "{}", server.name);
            for json in [server.init_options, server.settings] {
                let is_object = json.is_empty() || serde_json::from_str::<Value>(json).unwrap().is_object();
                assert!(is_object, "{}", server.name);
            }
            for file_type in server.file_types {
                let is_known = LANGUAGES.iter().any(|(end, _)| end == file_type);
                assert!(is_known, "{}: {file_type} has no language", server.name);
            }
        }
        let languages: BTreeSet<&str> = SERVERS.iter().map(|server| server.group).collect();
        assert!(languages.len() >= 20);
    }

    #[test]
    fn languages_are_known_by_names() {
        for (name, language) in [
            ("a.rs", "rust"),
            ("x.d.ts", "typescript"),
            ("Gemfile", "ruby"),
            ("A.PY", "python"),
            ("go.mod", "go.mod"),
            ("x.strange", "strange"),
            ("noend", "noend"),
        ] {
            assert_eq!(language_of(name), language, "{name}");
        }
        assert!(is_of_type("a.foo", "foo") && is_of_type("a.foo", ".foo") && !is_of_type("foo", ".foo"));
    }
}
