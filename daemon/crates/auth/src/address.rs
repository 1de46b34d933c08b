//! Addresses with parts that are the user's own: `https://host/accounts/{ACCOUNT_ID}/v1`.

use agentd_config::Environment;

/// Returns whether an address has such parts.
pub(crate) fn has_variables(url: &str) -> bool {
    next(url).is_some()
}

/// The address with the values of its variables, escaped as parts of a path are.
///
/// # Errors
/// The name of the first variable that is not set.
pub(crate) fn fill_in(url: &str, environment: &Environment) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = url;
    while let Some((before, name, after)) = next(rest) {
        let value = environment.non_empty(name).ok_or_else(|| name.to_owned())?;
        filled.push_str(before);
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                filled.push(char::from(byte));
            } else {
                filled.push_str(&format!("%{byte:02X}"));
            }
        }
        rest = after;
    }
    Ok(filled + rest)
}

/// The text before the first `{NAME}`, the name, and the text after it. Names are of capitals, digits and `_`.
fn next(url: &str) -> Option<(&str, &str, &str)> {
    let (mut from, is_of_a_name) =
        (0, |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    while let Some(start) = url[from..].find('{').map(|start| from + start) {
        let end = url[start..].find('}').map(|end| start + end)?;
        let name = &url[start + 1..end];
        if !name.is_empty() && name.bytes().all(is_of_a_name) {
            return Some((&url[..start], name, &url[end + 1..]));
        }
        from = start + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let environment: Environment = [("A", "x/y"), ("B_2", "z"), ("EMPTY", "")].into_iter().collect();
        for (url, expected) in [
            ("https://h/{A}/{B_2}/v1", Ok("https://h/x%2Fy/z/v1")),
            ("https://h/v1", Ok("https://h/v1")),
            ("https://h/{lower}{{A}", Ok("https://h/{lower}{x%2Fy")),
            ("https://h/{A", Ok("https://h/{A")),
            ("https://h/{A}/{C}", Err("C")),
            ("https://h/{EMPTY}", Err("EMPTY")),
        ] {
            let filled = fill_in(url, &environment);
            assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{url}");
        }
        assert!(has_variables("https://h/{A}") && !has_variables("https://h/{a}/v1"));
    }
}
