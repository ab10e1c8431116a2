//! Protected names as they exist when the run starts; the seam for the broker, which decides on those that do not.
