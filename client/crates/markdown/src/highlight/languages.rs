//! The languages: their words and marks.

/// What is to be known of a language.
#[derive(Debug)]
pub(super) struct Language {
    pub(super) names: &'static [&'static str],
    pub(super) keywords: &'static [&'static str],
    pub(super) constants: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comments: &'static [(&'static str, &'static str)],
    /// Strings that end with their line at the latest.
    pub(super) strings: &'static [(&'static str, &'static str)],
    /// Strings that may have several lines.
    pub(super) long_strings: &'static [(&'static str, &'static str)],
    /// Whether a backslash in a string takes the next character.
    pub(super) escapes: bool,
    pub(super) ignores_case: bool,
    /// Whether it is data: names before `:` and `=` are keys.
    pub(super) has_keys: bool,
    /// Whether names may have dashes.
    pub(super) dashes: bool,
}

/// The language of that name, in lower case.
pub(super) fn language(name: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.names.contains(&name))
}

const C_COMMENTS: &[(&str, &str)] = &[("/*", "*/")];
const QUOTES: &[(&str, &str)] = &[("\"", "\""), ("'", "'")];
const DOUBLE: &[(&str, &str)] = &[("\"", "\"")];

/// Like C.
const BASE: Language = Language {
    names: &[],
    keywords: &[],
    constants: &["true", "false", "null"],
    line_comments: &["//"],
    block_comments: C_COMMENTS,
    strings: QUOTES,
    long_strings: &[],
    escapes: true,
    ignores_case: false,
    has_keys: false,
    dashes: false,
};

/// Like shells and scripts.
const SCRIPT: Language = Language { line_comments: &["#"], block_comments: &[], ..BASE };

/// Like files of settings.
const DATA: Language = Language { has_keys: true, dashes: true, ..SCRIPT };

// One word a line would hide the tables.
#[rustfmt::skip]
static LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
            "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
            "return", "self", "static", "struct", "super", "trait", "type", "union", "unsafe", "use", "where",
            "while", "yield",
        ],
        constants: &["true", "false", "None", "Some", "Ok", "Err", "Self"],
        // A quote may begin a lifetime.
        strings: &[],
        long_strings: &[("r#\"", "\"#"), ("\"", "\"")],
        ..BASE
    },
    Language {
        names: &["python", "py", "python3", "pyi", "starlark", "bzl"],
        keywords: &[
            "and", "as", "assert", "async", "await", "break", "case", "class", "continue", "def", "del",
            "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
            "lambda", "match", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
            "yield",
        ],
        constants: &["True", "False", "None", "self", "cls"],
        long_strings: &[("\"\"\"", "\"\"\""), ("'''", "'''")],
        ..SCRIPT
    },
    Language {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "typescript", "ts", "tsx", "mts", "vue", "svelte"],
        keywords: &[
            "abstract", "any", "as", "async", "await", "boolean", "break", "case", "catch", "class", "const",
            "continue", "debugger", "declare", "default", "delete", "do", "else", "enum", "export", "extends",
            "finally", "for", "from", "function", "if", "implements", "import", "in", "instanceof",
            "interface", "keyof", "let", "namespace", "never", "new", "number", "of", "private", "protected",
            "public", "readonly", "return", "satisfies", "static", "string", "super", "switch", "this",
            "throw", "try", "type", "typeof", "unknown", "var", "void", "while", "with", "yield",
        ],
        constants: &["true", "false", "null", "undefined", "NaN", "Infinity"],
        long_strings: &[("`", "`")],
        ..BASE
    },
    Language {
        names: &["go", "golang"],
        keywords: &[
            "any", "bool", "break", "byte", "case", "chan", "const", "continue", "default", "defer", "else",
            "error", "fallthrough", "float64", "for", "func", "go", "goto", "if", "import", "int", "int64",
            "interface", "map", "package", "range", "return", "rune", "select", "string", "struct", "switch",
            "type", "var",
        ],
        constants: &["true", "false", "nil", "iota"],
        long_strings: &[("`", "`")],
        ..BASE
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "cxx", "hpp", "objc", "objective-c", "arduino", "glsl"],
        keywords: &[
            "auto", "bool", "break", "case", "catch", "char", "class", "concept", "const", "constexpr",
            "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern",
            "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
            "noexcept", "operator", "override", "private", "protected", "public", "register", "requires",
            "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw",
            "try", "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
            "while",
        ],
        constants: &["true", "false", "NULL", "nullptr"],
        ..BASE
    },
    Language {
        names: &["java", "kotlin", "kt", "kts", "scala", "groovy", "gradle", "dart"],
        keywords: &[
            "abstract", "as", "assert", "boolean", "break", "byte", "case", "catch", "char", "class",
            "companion", "const", "continue", "data", "def", "default", "do", "double", "else", "enum",
            "extends", "final", "finally", "float", "for", "fun", "given", "if", "implements", "import", "in",
            "instanceof", "int", "interface", "internal", "is", "lateinit", "lazy", "long", "match", "new",
            "object", "open", "override", "package", "private", "protected", "public", "record", "return",
            "sealed", "short", "static", "super", "suspend", "switch", "this", "throw", "throws", "trait",
            "try", "val", "var", "void", "volatile", "when", "while", "with", "yield",
        ],
        long_strings: &[("\"\"\"", "\"\"\"")],
        ..BASE
    },
    Language {
        names: &["csharp", "cs", "c#", "fsharp", "fs", "f#"],
        keywords: &[
            "abstract", "as", "async", "await", "base", "bool", "break", "byte", "case", "catch", "char",
            "class", "const", "continue", "decimal", "default", "delegate", "do", "double", "else", "enum",
            "event", "explicit", "extern", "finally", "fixed", "float", "for", "foreach", "get", "goto", "if",
            "implicit", "in", "init", "int", "interface", "internal", "is", "let", "lock", "long", "match",
            "module", "namespace", "new", "object", "of", "open", "operator", "out", "override", "params",
            "private", "protected", "public", "readonly", "record", "ref", "return", "sealed", "set", "short",
            "sizeof", "static", "string", "struct", "switch", "then", "this", "throw", "try", "type",
            "typeof", "uint", "unsafe", "using", "var", "virtual", "void", "when", "where", "while", "with",
            "yield",
        ],
        ..BASE
    },
    Language {
        names: &["swift"],
        keywords: &[
            "actor", "any", "as", "associatedtype", "async", "await", "break", "case", "catch", "class",
            "continue", "default", "defer", "deinit", "do", "else", "enum", "extension", "fallthrough",
            "fileprivate", "for", "func", "guard", "if", "import", "in", "init", "inout", "internal", "is",
            "let", "mutating", "open", "operator", "override", "private", "protocol", "public", "repeat",
            "return", "self", "some", "static", "struct", "subscript", "super", "switch", "throw", "throws",
            "try", "typealias", "var", "weak", "where", "while",
        ],
        constants: &["true", "false", "nil", "Self"],
        strings: DOUBLE,
        long_strings: &[("\"\"\"", "\"\"\"")],
        ..BASE
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex", "exs", "crystal"],
        keywords: &[
            "alias", "and", "begin", "break", "case", "class", "cond", "def", "defmodule", "defp", "do",
            "else", "elsif", "end", "ensure", "fn", "for", "if", "import", "in", "loop", "module", "next",
            "not", "or", "private", "raise", "redo", "require", "rescue", "retry", "return", "self", "super",
            "then", "unless", "until", "use", "when", "while", "with", "yield",
        ],
        constants: &["true", "false", "nil"],
        ..SCRIPT
    },
    Language {
        names: &["php"],
        keywords: &[
            "abstract", "and", "array", "as", "break", "case", "catch", "class", "const", "continue",
            "default", "do", "echo", "else", "elseif", "enum", "extends", "final", "finally", "fn", "for",
            "foreach", "function", "global", "if", "implements", "include", "instanceof", "interface",
            "match", "namespace", "new", "or", "private", "protected", "public", "readonly", "require",
            "return", "static", "switch", "throw", "trait", "try", "use", "var", "while", "yield",
        ],
        line_comments: &["//", "#"],
        ..BASE
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "shellsession", "ksh"],
        keywords: &[
            "case", "declare", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for",
            "function", "if", "in", "local", "readonly", "return", "select", "set", "shift", "source", "then",
            "trap", "unset", "until", "while",
        ],
        constants: &["true", "false"],
        strings: &[],
        long_strings: QUOTES,
        ..SCRIPT
    },
    Language {
        names: &["powershell", "ps1", "pwsh"],
        keywords: &[
            "begin", "break", "catch", "class", "continue", "do", "else", "elseif", "end", "exit", "filter",
            "finally", "for", "foreach", "function", "if", "in", "param", "process", "return", "switch",
            "throw", "trap", "try", "until", "while",
        ],
        block_comments: &[("<#", "#>")],
        escapes: false,
        ignores_case: true,
        ..SCRIPT
    },
    Language {
        names: &["sql", "postgresql", "postgres", "mysql", "sqlite", "plsql"],
        keywords: &[
            "add", "all", "alter", "and", "as", "asc", "begin", "between", "by", "case", "check", "column",
            "commit", "constraint", "create", "cross", "database", "default", "delete", "desc", "distinct",
            "drop", "else", "end", "except", "exists", "foreign", "from", "full", "group", "having", "if",
            "in", "index", "inner", "insert", "intersect", "into", "is", "join", "key", "left", "like",
            "limit", "not", "offset", "on", "or", "order", "outer", "over", "partition", "primary",
            "references", "returning", "right", "rollback", "select", "set", "table", "then", "transaction",
            "union", "unique", "update", "using", "values", "view", "when", "where", "with",
        ],
        constants: &["null", "NULL", "true", "TRUE", "false", "FALSE"],
        line_comments: &["--"],
        escapes: false,
        ignores_case: true,
        ..BASE
    },
    Language {
        names: &["lua", "haskell", "hs", "elm", "ada"],
        keywords: &[
            "and", "break", "case", "class", "data", "deriving", "do", "else", "elseif", "end", "for",
            "forall", "function", "goto", "if", "import", "in", "infix", "instance", "let", "local", "module",
            "newtype", "not", "of", "or", "qualified", "repeat", "return", "then", "type", "until", "where",
            "while",
        ],
        constants: &["true", "false", "nil", "True", "False", "Nothing", "Just"],
        line_comments: &["--"],
        block_comments: &[("--[[", "]]"), ("{-", "-}")],
        ..BASE
    },
    Language {
        names: &["html", "xml", "svg", "xhtml", "plist"],
        line_comments: &[],
        block_comments: &[("<!--", "-->")],
        strings: DOUBLE,
        constants: &[],
        escapes: false,
        dashes: true,
        ..BASE
    },
    Language {
        names: &["css", "scss", "less", "sass"],
        keywords: &["important", "import", "media", "mixin", "include", "use", "supports", "keyframes"],
        line_comments: &["// "],
        constants: &[],
        has_keys: true,
        dashes: true,
        ..BASE
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
        has_keys: true,
        strings: DOUBLE,
        ..BASE
    },
    Language {
        names: &["yaml", "yml"],
        constants: &["true", "false", "null", "yes", "no"],
        line_comments: &["# ", "#!", "##"],
        strings: DOUBLE,
        long_strings: &[("'", "'")],
        ..DATA
    },
    Language {
        names: &[
            "toml",
            "ini",
            "conf",
            "cfg",
            "properties",
            "env",
            "dotenv",
            "editorconfig",
            "hcl",
            "terraform",
            "tf",
        ],
        line_comments: &["#", ";"],
        long_strings: &[("\"\"\"", "\"\"\""), ("'''", "'''")],
        ..DATA
    },
    Language {
        names: &["dockerfile", "docker", "containerfile"],
        keywords: &[
            "add", "arg", "as", "cmd", "copy", "entrypoint", "env", "expose", "from", "healthcheck", "label",
            "run", "shell", "user", "volume", "workdir",
        ],
        ignores_case: true,
        ..SCRIPT
    },
    Language {
        names: &["makefile", "make", "mk", "cmake", "just", "justfile"],
        keywords: &[
            "else", "endif", "export", "if", "ifdef", "ifeq", "ifndef", "ifneq", "include", "define", "endef",
        ],
        ..SCRIPT
    },
    Language {
        names: &["nix", "r", "julia", "jl", "perl", "pl", "nim"],
        keywords: &[
            "and", "begin", "break", "const", "continue", "do", "else", "elseif", "elsif", "end", "for",
            "foreach", "function", "if", "import", "in", "inherit", "let", "local", "macro", "module", "my",
            "next", "not", "or", "our", "package", "proc", "repeat", "return", "rec", "struct", "sub", "then",
            "unless", "use", "using", "var", "while", "with",
        ],
        constants: &["true", "false", "null", "TRUE", "FALSE", "NULL", "nothing"],
        strings: DOUBLE,
        ..SCRIPT
    },
    Language {
        names: &["protobuf", "proto", "graphql", "gql", "thrift", "zig", "solidity", "sol", "wgsl"],
        keywords: &[
            "comptime", "const", "contract", "else", "enum", "export", "extend", "fn", "for", "function",
            "if", "import", "input", "interface", "let", "map", "message", "oneof", "optional", "option",
            "package", "pub", "public", "query", "mutation", "repeated", "required", "return", "returns",
            "rpc", "scalar", "service", "struct", "subscription", "switch", "syntax", "try", "type", "union",
            "var", "while",
        ],
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once() {
        let mut names: Vec<&str> = LANGUAGES.iter().flat_map(|language| language.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
