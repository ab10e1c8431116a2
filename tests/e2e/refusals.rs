use crate::runner::Trial;
pub fn collect(_: &mut Vec<Trial>) {}
