//! E0277: a permission cannot be multiplied.

use crate::stage::permit::Permitted;

fn multiplies<T: Clone>() {}

fn cloned() {
    multiplies::<Permitted>();
}
