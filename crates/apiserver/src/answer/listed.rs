//! A list as the body of an answer, made as it is read: however long it is, only a piece of
//! it is in memory besides what is stored anyway.

use bytes::BytesMut;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde_json::{Map, Value, json};

use super::body::{Body, PIECE_BYTES};
use super::layout::Layout;
use super::shown::Shown;
use crate::request::media::View;
use crate::table;
use crate::verb::list::Listed;

/// A list of objects.
pub(crate) fn list_body(shown: Shown, layout: Layout, listed: Listed) -> Body {
    let metadata = ListMeta {
        resource_version: Some(listed.revision.to_string()),
        continue_: listed.token.clone(),
        remaining_item_count: listed
            .remaining
            .map(|count| i64::try_from(count).expect("memory holds fewer")),
        ..ListMeta::default()
    };
    let (head, items) = head(&shown, &metadata);
    let mut entries = listed.entries.into_iter();
    let mut head = Some(layout.head(&head, items));
    let mut count = 0;
    let mut is_over = false;
    Body::pieces(std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let mut piece = BytesMut::new();
        if let Some(head) = head.take() {
            piece.extend_from_slice(head.as_bytes());
        }
        while piece.len() < PIECE_BYTES {
            let Some(entry) = entries.next() else {
                piece.extend_from_slice(layout.end(count).as_bytes());
                is_over = true;
                break;
            };
            layout.put_item(&mut piece, count, |piece| shown.put_item(piece, &entry));
            count += 1;
        }
        Some(piece.freeze())
    }))
}

/// What comes before the items, in its order, and what they are called.
fn head(shown: &Shown, metadata: &ListMeta) -> (Vec<(&'static str, Value)>, &'static str) {
    let names = shown.kind.names();
    let metadata = serde_json::to_value(metadata).expect("plain data serialises");
    let typed = |kind: &str, api_version: &str| {
        vec![("kind", json!(kind)), ("apiVersion", json!(api_version)), ("metadata", metadata)]
    };
    match shown.view {
        View::Whole => (typed(&names.list_kind(), &names.api_version()), "items"),
        View::Metadata(_) => (typed("PartialObjectMetadataList", "meta.k8s.io/v1"), "items"),
        View::Table(_) => {
            let mut head = typed("Table", "meta.k8s.io/v1");
            head.push(("columnDefinitions", table::definitions(shown.kind.columns())));
            (head, "rows")
        }
    }
}

/// One member as an object of its own, for whoever writes it.
pub(super) fn member(name: &str, value: &Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value.clone())]))
}
