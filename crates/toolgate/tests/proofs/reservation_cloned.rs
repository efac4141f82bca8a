//! E0277: a reservation cannot be multiplied.

use crate::stage::reserve::Reserved;

fn multiplies<T: Clone>() {}

fn cloned() {
    multiplies::<Reserved>();
}
