//! List: the selected objects of a kind as of one revision, page by page.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use stint_store::{Entry, Listing, Page, Revision, StoreError};
use tokio::task::coop;

use crate::api::{Api, EXPIRED, key, prefix, store_failed};
use crate::kind::AnyKind;
use crate::object;
use crate::request::list_options::{Continue, ListOptions, Selection, Version, is_metadata};
use crate::selector::field::FieldTerm;
use crate::status::Status;

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) revision: Revision,
    /// The token for the next page, if there is one.
    pub(crate) token: Option<String>,
    /// How many more there are, if that is known.
    pub(crate) remaining: Option<usize>,
}

impl Api {
    /// Lists objects.
    pub(crate) async fn list(
        &self,
        kind: &dyn AnyKind,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Listed, Status> {
        let selection = &options.selection;
        let prefix = prefix(kind, namespace);
        let at = self.revision_of(options)?;
        if let Some(listed) = self.list_by_name(kind, namespace, options, at)? {
            return Ok(listed);
        }
        let after = options.after.as_ref().map(|token| format!("{prefix}{}", token.after).into());
        let limit = options.page_limit();
        // Of a selection nobody knows how far one has to look; the entries are not copied.
        let step = limit.filter(|_| selection.is_everything());
        let listing = self
            .store
            .list(&prefix, Page { at, after, limit: step, ..Page::default() })
            .map_err(|error| list_failed(error, options, self.store.revision()))?;
        let Listing { entries: found, revision, remaining } = listing;
        if selection.is_everything() {
            let token = last_key(&found).filter(|_| remaining > 0);
            let token = token.map(|last| token_after(&prefix, last, revision));
            let remaining = token.is_some().then_some(remaining);
            return Ok(Listed { entries: found, revision, token, remaining });
        }
        let wanted = limit.unwrap_or(usize::MAX);
        let (mut entries, mut looked_at) = (Vec::new(), 0);
        for entry in &found {
            if entries.len() == wanted {
                break;
            }
            looked_at += 1;
            // To look at an object may mean to decode it, and there may be many.
            coop::consume_budget().await;
            if selection.matches(kind, entry) {
                entries.push(entry.clone());
            }
        }
        // There may be no more that are selected; who asks is told then.
        let is_cut = looked_at < found.len();
        let token = last_key(&found[..looked_at]).filter(|_| is_cut);
        let token = token.map(|last| token_after(&prefix, last, revision));
        Ok(Listed { entries, revision, token, remaining: None })
    }

    /// The one object that is selected by its name: no need to look at the others.
    fn list_by_name(
        &self,
        kind: &dyn AnyKind,
        namespace: Option<&str>,
        options: &ListOptions,
        at: Option<Revision>,
    ) -> Result<Option<Listed>, Status> {
        let Some(name) = options.selection.fields.required("metadata.name") else {
            return Ok(None);
        };
        if options.after.is_some() || (kind.names().is_namespaced && namespace.is_none()) {
            return Ok(None);
        }
        let revision = at.unwrap_or_else(|| self.store.revision());
        let key = key(kind, namespace, name);
        let found = self.store.get_at(&key, revision).map_err(store_failed)?;
        let entries =
            found.into_iter().filter(|entry| options.selection.matches(kind, entry)).collect();
        Ok(Some(Listed { entries, revision, token: None, remaining: None }))
    }

    /// The revision that a list must be as of; `None`: the newest.
    fn revision_of(&self, options: &ListOptions) -> Result<Option<Revision>, Status> {
        if let Some(token) = &options.after {
            return Ok(token.revision);
        }
        match options.version {
            Version::Newest | Version::Any => Ok(None),
            Version::Exact(revision) => Ok(Some(revision)),
            Version::NotOlderThan(revision) => {
                self.check_reached(revision)?;
                Ok(None)
            }
        }
    }

    /// Refuses a version that has not come yet. This server is the only one there is, so
    /// waiting for it would be in vain.
    pub(crate) fn check_reached(&self, revision: Revision) -> Result<(), Status> {
        let newest = self.store.revision();
        if revision > newest {
            return Err(Status::too_large_version(revision.get(), newest.get()));
        }
        Ok(())
    }
}

fn last_key(entries: &[Arc<Entry>]) -> Option<&str> {
    entries.last().map(|entry| &*entry.key)
}

/// Where the page after a key begins.
fn token_after(prefix: &str, last: &str, revision: Revision) -> String {
    let after = last[prefix.len()..].to_owned();
    Continue { revision: Some(revision), after }.to_token()
}

/// What a client is told when a list fails: one that has lost its place may go on with the
/// newest state.
fn list_failed(error: StoreError, options: &ListOptions, newest: Revision) -> Status {
    match (&error, &options.after) {
        (StoreError::Compacted { .. }, Some(token)) => {
            let token = Continue { revision: None, after: token.after.clone() }.to_token();
            Status::expired_continue(newest.get(), token)
        }
        (StoreError::Compacted { .. }, None) => Status::expired(EXPIRED),
        _ => store_failed(error),
    }
}

impl Selection {
    /// Whether an object is selected.
    pub(crate) fn matches(&self, kind: &dyn AnyKind, entry: &Entry) -> bool {
        if self.is_everything() {
            return true;
        }
        let is_of_metadata = |term: &FieldTerm| is_metadata(&term.field);
        if self.labels.is_empty() && !self.fields.terms.iter().any(is_of_metadata) {
            let object = kind.selectable(&entry.value, entry.modified);
            return self.fields.matches(|field| kind.field(object.as_ref(), field));
        }
        let meta: Meta<'_> = serde_json::from_slice(object::metadata_text(&entry.value))
            .expect("what was stored can be read");
        let label = |key: &str| meta.labels.as_ref()?.get(key).map(|value| value.as_ref());
        if !self.labels.matches(label) {
            return false;
        }
        let of_metadata = |field: &str| match field {
            "metadata.name" => meta.name.as_ref(),
            _ => meta.namespace.as_deref().unwrap_or(""),
        };
        if self.fields.terms.iter().all(is_of_metadata) {
            return self.fields.matches(of_metadata);
        }
        let object = kind.selectable(&entry.value, entry.modified);
        self.fields.matches(|field| {
            if is_metadata(field) {
                Cow::Borrowed(of_metadata(field))
            } else {
                kind.field(object.as_ref(), field)
            }
        })
    }
}

/// What selectors look at most.
#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    labels: Option<HashMap<Cow<'a, str>, Cow<'a, str>>>,
}
