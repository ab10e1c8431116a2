//! boundary
