//! Asking as somebody else (`kubectl --as`), by the headers of kube-apiserver. It must not know what is
//! asked for.
//!
//! Who may ask as others is a rule like any other, of the verb `impersonate`. Somebody who is not known
//! has no role: that is what an admin asks for who wants to see what others may not do.

use http::HeaderMap;
use thiserror::Error;

use super::identity::AUTHENTICATED;
use super::{Attributes, Forbidden, Identity, Role, authorize};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The group of kube-apiserver whose members may do everything.
const MASTERS: &str = "system:masters";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// Why somebody may not ask as somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotAs {
    /// It is not said as whom.
    #[error("requested groups, a uid or extra fields without impersonating a user name")]
    Nobody,
    /// A header is no text.
    #[error("the header {0} is not text")]
    NoText(&'static str),
    /// The caller is not one who may.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

/// As whom a caller asks, if not as himself. A uid and extra fields change no rights, and are passed
/// over.
pub fn impersonate(caller: &Identity, headers: &HeaderMap) -> Result<Option<Identity>, NotAs> {
    let text = |name: &'static str| {
        let values = headers.get_all(name).iter();
        values
            .map(|value| value.to_str().map_err(|_| NotAs::NoText(name)))
            .collect::<Result<Vec<&str>, NotAs>>()
    };
    let user = text(USER)?.first().copied().filter(|user| !user.is_empty());
    let groups = text(GROUP)?;
    let has_more =
        headers.keys().any(|name| name == UID || name.as_str().starts_with(EXTRA_PREFIX));
    let Some(user) = user else {
        return if groups.is_empty() && !has_more { Ok(None) } else { Err(NotAs::Nobody) };
    };
    may(caller, "users", user)?;
    for group in &groups {
        may(caller, "groups", group)?;
    }
    Ok(Some(somebody(user, &groups)))
}

/// Whether a caller may ask as a user or as one of a group.
fn may(caller: &Identity, kind: &str, name: &str) -> Result<(), Forbidden> {
    let account = name.strip_prefix("system:serviceaccount:").and_then(|it| it.split_once(':'));
    let (resource, namespace, name) = match (kind, account) {
        ("users", Some((namespace, name))) => ("serviceaccounts", Some(namespace), name),
        _ => (kind, None, name),
    };
    let verb = "impersonate";
    let name = Some(name);
    authorize(caller, &Attributes { verb, resource, namespace, name, ..Attributes::default() })
}

/// Who that is, and what they may do: a role by its group, or by the name of its usual bearer.
fn somebody(user: &str, asked: &[&str]) -> Identity {
    let mut groups: Vec<String> = asked.iter().map(|&group| group.to_owned()).collect();
    let known = [Identity::admin(), Identity::edit(), Identity::view()];
    if let Some(known) = known.into_iter().find(|known| known.user == user && asked.is_empty()) {
        return known;
    }
    if let Some((namespace, _)) =
        user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'))
        && asked.is_empty()
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let is_anonymous = user == ANONYMOUS || asked.contains(&UNAUTHENTICATED);
    let role = match asked.iter().find_map(|group| Role::from_group(group)) {
        _ if is_anonymous => Role::Nobody,
        None if asked.contains(&MASTERS) => Role::Admin,
        found => found.unwrap_or(Role::Nobody),
    };
    if !is_anonymous && !asked.contains(&AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    Identity { user: user.to_owned(), groups, role }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn ask(caller: &Identity, headers: &[(&'static str, &str)]) -> Result<Option<Identity>, NotAs> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a header"));
        }
        impersonate(caller, &map)
    }

    fn as_whom(headers: &[(&'static str, &str)]) -> Identity {
        ask(&Identity::admin(), headers).expect("it may").expect("as somebody")
    }

    #[test]
    fn whoever_says_nothing_asks_as_himself() {
        assert_eq!(ask(&Identity::view(), &[]), Ok(None));
        assert_eq!(ask(&Identity::view(), &[(USER, "")]), Ok(None));
    }

    #[test]
    fn a_stranger_has_no_role() {
        let bob = as_whom(&[(USER, "bob"), (UID, "5"), ("impersonate-extra-a", "b")]);
        let groups = vec![AUTHENTICATED.to_owned()];
        assert_eq!(bob, Identity { user: "bob".to_owned(), groups, role: Role::Nobody });
        let account = as_whom(&[(USER, "system:serviceaccount:team:x")]);
        assert_eq!(account.role, Role::Nobody);
        assert_eq!(
            account.groups,
            ["system:serviceaccounts", "system:serviceaccounts:team", AUTHENTICATED]
        );
        let anonymous = as_whom(&[(USER, ANONYMOUS), (GROUP, MASTERS)]);
        assert_eq!((anonymous.role, anonymous.groups), (Role::Nobody, vec![MASTERS.to_owned()]));
    }

    #[test]
    fn a_role_is_known_by_its_group_and_by_its_bearer() {
        assert_eq!(as_whom(&[(USER, "view")]), Identity::view());
        assert_eq!(as_whom(&[(USER, "bob"), (GROUP, "x"), (GROUP, "stint:edit")]).role, Role::Edit);
        assert_eq!(as_whom(&[(USER, "bob"), (GROUP, MASTERS)]).role, Role::Admin);
        assert_eq!(as_whom(&[(USER, "admin"), (GROUP, "x")]).role, Role::Nobody);
    }

    #[test]
    fn only_an_admin_may() {
        for caller in [Identity::edit(), Identity::view(), Identity::controller()] {
            let Err(NotAs::Forbidden(refused)) = ask(&caller, &[(USER, "bob")]) else {
                panic!("{caller:?} may");
            };
            assert_eq!(
                refused.to_string(),
                format!(
                    "users \"bob\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in \
                     API group \"\" at the cluster scope",
                    caller.user
                )
            );
        }
    }

    #[test]
    fn groups_need_a_user() {
        for header in [GROUP, UID, "impersonate-extra-a"] {
            assert_eq!(ask(&Identity::admin(), &[(header, "x")]), Err(NotAs::Nobody));
        }
        let mut headers = HeaderMap::new();
        headers.insert(USER, HeaderValue::from_bytes(b"\xff").expect("a header"));
        assert_eq!(impersonate(&Identity::admin(), &headers), Err(NotAs::NoText(USER)));
    }
}
