//! The exception by which servant managers and interceptors forward a caller.

use crate::ObjectRef;

/// Forwards the caller to another object, for this request and later ones (PortableServer::ForwardRequest,
/// PortableInterceptor::ForwardRequest).
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardRequest {
    /// The other object.
    pub forward_reference: ObjectRef,
}
