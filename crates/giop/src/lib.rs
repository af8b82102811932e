//! GIOP messages, service contexts, IORs, corbaloc; no socket, no clock.

#![forbid(unsafe_code)]
