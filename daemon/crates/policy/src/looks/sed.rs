//! `sed` with scripts that print and replace, and neither write files nor run commands.

use crate::shell::Word;

/// Whether `sed` with these arguments only looks. Options are those that are known to; every part of its scripts has to be understood.
pub(super) fn only_looks(arguments: &[Word]) -> bool {
    let (mut scripts, mut at) = (Vec::new(), 0);
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.text() else { break };
        if text == "--" {
            at += 1;
            break;
        }
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
        at += 1;
        match letters {
            "-quiet" | "-silent" | "-regexp-extended" | "-null-data" | "-separate" | "-unbuffered" => {}
            _ if letters.starts_with("-expression=") => scripts.push(&letters["-expression=".len()..]),
            _ => {
                let takes_script = letters.ends_with('e');
                let flags = letters.strip_suffix('e').unwrap_or(letters);
                if !flags.chars().all(|flag| "nErzsu".contains(flag)) {
                    return false;
                }
                if takes_script {
                    let Some(script) = arguments.get(at).and_then(Word::text) else { return false };
                    scripts.push(script);
                    at += 1;
                }
            }
        }
    }
    let options_end = at > 0 && arguments.get(at - 1).and_then(Word::text) == Some("--");
    if scripts.is_empty() {
        let Some(script) = arguments.get(at).and_then(Word::text) else { return false };
        scripts.push(script);
        at += 1;
    }
    // Options may stand behind files, too.
    let files = arguments.get(at..).unwrap_or_default();
    (options_end || !files.iter().any(Word::may_be_option))
        && scripts.into_iter().all(|script| Script(script).only_prints())
}

/// What is left of a script.
struct Script<'a>(&'a str);

impl<'a> Script<'a> {
    /// Whether all that is left prints and replaces.
    fn only_prints(mut self) -> bool {
        // `#n` is an option, and a comment would end at a line that may be another script's.
        loop {
            self.0 = self.0.trim_start_matches([' ', '\t', '\n', ';', '}']);
            if self.0.is_empty() {
                return true;
            }
            if self.addresses().and_then(|()| self.command()).is_none() {
                return false;
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.0.chars().next()?;
        self.0 = &self.0[next.len_utf8()..];
        Some(next)
    }

    fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn number(&mut self) {
        self.0 = self.0.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }

    /// No address, one, or two; and `!`.
    fn addresses(&mut self) -> Option<()> {
        self.address()?;
        self.blanks();
        if let Some(rest) = self.0.strip_prefix(',') {
            self.0 = rest.trim_start_matches([' ', '\t', '+', '~']);
            self.address()?;
            self.blanks();
        }
        self.0 = self.0.trim_start_matches(['!', ' ']);
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        match self.0.chars().next()? {
            '$' => {
                self.next();
            }
            '/' => {
                self.next();
                self.pattern('/')?;
                self.0 = self.0.strip_prefix('I').unwrap_or(self.0);
            }
            digit if digit.is_ascii_digit() => {
                self.number();
                if let Some(rest) = self.0.strip_prefix('~') {
                    self.0 = rest;
                    self.number();
                }
            }
            _ => {}
        }
        Some(())
    }

    /// A regular expression up to its delimiter. In brackets, the delimiter would be read differently by one sed and another.
    fn pattern(&mut self, delimiter: char) -> Option<()> {
        let pattern = self.up_to(delimiter)?;
        let mut rest = pattern;
        while let Some(at) = rest.find(['[', '\\']) {
            let escaped = rest[at..].starts_with('\\');
            rest = &rest[at + 1..];
            if escaped {
                let mut characters = rest.chars();
                characters.next()?;
                rest = characters.as_str();
                continue;
            }
            rest = rest.strip_prefix('^').unwrap_or(rest);
            rest = rest.strip_prefix(']').unwrap_or(rest);
            loop {
                let end = rest.find([']', '[', '\\'])?;
                let found = &rest[end..];
                rest = &rest[end + 1..];
                if found.starts_with(']') {
                    break;
                }
                // A backslash in brackets is itself in one sed, and an escape in another.
                if found.starts_with('\\') {
                    let harmless = rest.starts_with([
                        '.', '-', '/', 't', 'n', 's', 'w', 'd', '*', '+', '(', ')', '$', '"', '|', '{', '}',
                    ]);
                    if !harmless {
                        return None;
                    }
                } else if let Some(class) = rest.strip_prefix(':') {
                    rest = &class[class.find(":]")? + 2..];
                }
            }
        }
        Some(())
    }

    /// The text up to a delimiter that is not escaped; `None` without one, or where the text has another line.
    fn up_to(&mut self, delimiter: char) -> Option<&'a str> {
        let text = self.0;
        loop {
            match self.next()? {
                '\n' => return None,
                '\\' if self.next()? == '\n' => return None,
                '\\' => {}
                found if found == delimiter => {
                    return text.get(..text.len() - self.0.len() - delimiter.len_utf8());
                }
                _ => {}
            }
        }
    }

    /// One command, and what ends it.
    fn command(&mut self) -> Option<()> {
        match self.next()? {
            '{' => return Some(()),
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' => {}
            'q' | 'Q' => {
                self.blanks();
                self.number();
            }
            's' => self.substitution()?,
            'y' => {
                let delimiter = self.delimiter()?;
                self.up_to(delimiter)?;
                self.up_to(delimiter)?;
            }
            ':' | 'b' | 't' => {
                self.blanks();
                self.0 =
                    self.0.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
            }
            _ => return None,
        }
        self.blanks();
        (self.0.is_empty() || self.0.starts_with([';', '\n', '}'])).then_some(())
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|delimiter| "/|,#:@%!_+=~".contains(*delimiter))
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.pattern(delimiter)?;
        self.up_to(delimiter)?;
        // `e` runs commands, and `w` writes a file.
        let rest = self.0.trim_start_matches(|flag: char| "gpiI".contains(flag) || flag.is_ascii_digit());
        self.0 = rest;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(arguments: &[&str]) -> bool {
        only_looks(&arguments.iter().map(|word| Word::of(word)).collect::<Vec<_>>())
    }

    #[test]
    fn scripts_that_print_and_replace() {
        for script in [
            "1,20p",
            "10q",
            "$=",
            "1~2p",
            "5,+3p",
            "/start/,/end/p",
            "/^$/d",
            "/a/I!d",
            "s/a/b/",
            "s|/usr|/opt|g",
            "s,\\(x\\),[\\1],2p",
            "s/[^a-z]*\\/x/y/gI",
            "s/[[:space:]]*$//",
            "y/abc/xyz/",
            ":a;N;$!ba;s/\\n/ /g",
            "/x/{n;p;}",
            "1p;30q",
            "s/a/b/;s/c/d/",
            "s/we/ew/",
        ] {
            assert!(is(&[script]), "{script}");
            assert!(is(&["-ne", script, "a"]) && is(&["-n", "-E", script]), "{script}");
        }
        assert!(
            is(&["-e", "p", "-e", "s/a/b/", "f", "g"])
                && is(&["--expression=p", "f"])
                && is(&["-n", "p", "--", "f"][..2])
        );
        assert!(is(&["-n", "--", "p", "-i"]), "a file");
    }

    #[test]
    fn what_writes_runs_or_is_not_understood() {
        for script in [
            "w out",
            "1w out",
            "p;w out",
            "p}w out",
            "e id",
            "1e",
            "s/a/id/e",
            "s/a/b/ge",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/ w out",
            "s/a\\/b/w out",
            "s/[/]/x/w out;s/a/",
            "s/[/]/x/",
            "/[/]/w out",
            "\\%a%w out",
            "r /etc/passwd",
            "R x",
            "W x",
            "F",
            "a\\\nw out",
            "s/a/b\\\nw out/",
            "s/a/\nw x",
            "#n\nw x",
            "y/a/b/w x",
            ":a w x",
            "bx w y",
            "saxbxw y",
            "s\\a\\b\\w y",
            "p w",
            "q5w",
            "c\\",
            "i x",
            "v",
            "z",
        ] {
            assert!(!is(&[script]), "{script}");
            assert!(!is(&["-n", "-e", "p", "-e", script]), "{script}");
        }
        for arguments in [
            &["-i", "p", "f"][..],
            &["-ni", "p"],
            &["-n", "p", "f", "-i"],
            &["p", "--in-place", "f"],
            &["--in-plac", "p"],
            &["-f", "x"],
            &["-E", "-i.bak", "p"],
            &["--debug", "p"],
            &[],
            &["-n"],
        ] {
            assert!(!is(arguments), "{arguments:?}");
        }
    }
}
