//! `$(NAME)` in commands, arguments, variables and paths, as Kubernetes expands it: `$$` is one
//! dollar, and a name that nobody knows stays as it is written.

/// The text with every known name replaced by its value.
pub(crate) fn expand<'v>(text: &str, lookup: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(next) = after.strip_prefix('$') {
            expanded.push('$');
            rest = next;
            continue;
        }
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match reference {
            Some((name, next)) => {
                match lookup(name) {
                    Some(value) => expanded.push_str(value),
                    None => {
                        expanded.push_str("$(");
                        expanded.push_str(name);
                        expanded.push(')');
                    }
                }
                rest = next;
            }
            // Not a reference: the dollar stands for itself, and what opens one that is never
            // closed is plain text.
            None => {
                expanded.push('$');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_dollars_escaped() {
        let lookup = |name: &str| match name {
            "A" => Some("1"),
            "B" => Some("$(A)"),
            "EMPTY" => Some(""),
            _ => None,
        };
        let rows = [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(EMPTY)|", "|"),
            ("$(UNKNOWN)", "$(UNKNOWN)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            // What is put in is not looked at again.
            ("$(B)", "$(A)"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
            ("cost: 5$", "cost: 5$"),
            ("ä$(A)ü", "ä1ü"),
        ];
        for (text, expected) in rows {
            assert_eq!(expand(text, lookup), expected, "{text:?}");
        }
    }
}
