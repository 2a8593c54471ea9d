//! What each kind of name takes and refuses.

use super::*;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. \
    'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

#[test]
fn a_dns_label_is_short_and_has_no_dots() {
    assert!(dns1123_label("a").is_empty());
    assert!(dns1123_label("0-9z").is_empty());
    assert!(dns1123_label(&"a".repeat(63)).is_empty());
    assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    for bad in ["", "-a", "a-", "A", "a_b", "a b", "é", "a..b", "a\n"] {
        assert_eq!(dns1123_label(bad), [LABEL], "{bad:?}");
    }
}

#[test]
fn a_dns_subdomain_is_labels_between_dots() {
    for good in ["a", "a.b", "1.2.3", "a-b.c"] {
        assert!(dns1123_subdomain(good).is_empty(), "{good:?}");
    }
    for bad in ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", "a_b"] {
        assert_eq!(dns1123_subdomain(bad).len(), 1, "{bad:?}");
    }
    assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
    for good in ["_tcp.a_b", "a"] {
        assert!(dns1123_subdomain_with_underscore(good).is_empty(), "{good:?}");
    }
    for bad in ["__a", "a_", "_", "_.a", "a.-"] {
        assert_eq!(dns1123_subdomain_with_underscore(bad).len(), 1, "{bad:?}");
    }
}

#[test]
fn a_dns_1035_label_starts_with_a_letter() {
    assert!(dns1035_label("a-1").is_empty());
    for bad in ["", "1a", "-a", "a-"] {
        assert_eq!(dns1035_label(bad).len(), 1, "{bad:?}");
    }
}

#[test]
fn a_qualified_name_has_at_most_one_prefix() {
    for good in ["a", "A.b_c-d", "x.io/A", "1/1"] {
        assert!(qualified_name(good).is_empty(), "{good:?}");
    }
    let syntax = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
        end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
        used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    assert_eq!(
        qualified_name(""),
        ["name part must be non-empty".to_owned(), format!("name part {syntax}")]
    );
    assert_eq!(qualified_name("/a"), ["prefix part must be non-empty".to_owned()]);
    assert_eq!(
        qualified_name("a/b/c"),
        [format!(
            "a valid label key {syntax} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        )]
    );
    assert_eq!(qualified_name(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
    assert_eq!(
        qualified_name(&format!("{}/a", "a".repeat(254))),
        ["prefix part must be no more than 253 bytes"]
    );
    assert_eq!(qualified_name("-a"), [format!("name part {syntax}")]);
}

#[test]
fn a_label_value_may_be_empty() {
    assert!(label_value("").is_empty());
    assert!(label_value("a_b.C-1").is_empty());
    assert_eq!(label_value("-").len(), 1);
    assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
}

#[test]
fn an_env_var_name_is_printable_ascii_without_equals() {
    for good in ["A", "1", "a b", "..", "a:b", "~"] {
        assert!(env_var_name(good).is_empty(), "{good:?}");
    }
    assert_eq!(env_var_name(""), ["environment variable name must be non-empty"]);
    for bad in ["a=b", "é", "a\n", "\u{7f}"] {
        assert_eq!(env_var_name(bad).len(), 1, "{bad:?}");
    }
}

#[test]
fn a_port_has_a_name_with_a_letter_and_a_number_that_fits() {
    assert!(port_name("http-1").is_empty());
    assert_eq!(port_name("1"), ["must contain at least one letter (a-z)"]);
    assert_eq!(
        port_name("a--b-"),
        ["must not contain consecutive hyphens", "must not begin or end with a hyphen"]
    );
    assert_eq!(port_name(&"a".repeat(16)), ["must be no more than 15 characters"]);
    assert!(port_number(65535).is_empty());
    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
}

#[test]
fn a_config_map_key_never_climbs() {
    for good in ["a", "a.b_C-1", ".a"] {
        assert!(config_map_key(good).is_empty(), "{good:?}");
    }
    assert_eq!(config_map_key("").len(), 1);
    assert_eq!(config_map_key("."), ["must not be '.'"]);
    assert_eq!(config_map_key(".."), ["must not be '..'"]);
    assert_eq!(config_map_key("..a"), ["must not start with '..'"]);
    assert_eq!(config_map_key("a/b").len(), 1);
}

#[test]
fn a_domain_prefixed_path_is_judged_in_halves() {
    let check = |value: &str| {
        let mut errors = Vec::new();
        domain_prefixed_path(value, &Path::field("managedBy"), &mut errors);
        errors.iter().map(|e| e.to_string()).collect::<Vec<String>>()
    };
    assert!(check("acme.io/foo~1").is_empty());
    assert_eq!(check(""), ["managedBy: Required value"]);
    for bad in ["foo", "/foo", "acme.io/"] {
        assert_eq!(
            check(bad),
            [format!(
                "managedBy: Invalid value: \"{bad}\": must be a domain-prefixed path (such as \
                 \"acme.io/foo\")"
            )]
        );
    }
    let both = check("Acme/a b");
    assert!(both[0].starts_with("managedBy: Invalid value: \"Acme\": a lowercase RFC 1123"));
    assert_eq!(
        both[1],
        "managedBy: Invalid value: \"a b\": Invalid path (regex used for validation is \
         '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
    );
}

#[test]
fn small_texts_are_matched_whole() {
    assert!(http_header_name("X-A").is_empty());
    assert_eq!(http_header_name("X:A").len(), 1);
    assert!(percent("10%").is_empty());
    for bad in ["%", "10", "1%%", "-1%"] {
        assert_eq!(percent(bad).len(), 1, "{bad:?}");
    }
    assert_eq!(path_segment_name(".."), ["may not be '..'"]);
    assert_eq!(path_segment_name("a/%"), ["may not contain '/'", "may not contain '%'"]);
    assert_eq!(mask_trailing_dash("abc-"), "aba");
    assert_eq!(mask_trailing_dash("-"), "-");
}
