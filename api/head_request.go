package api

import (
	"context"
	"net/http"
)

// headRequestKey marks a request that arrived as HEAD.
type headRequestKey struct{}

// headAsGet returns a HEAD request as a GET, for the router.
func headAsGet(r *http.Request) *http.Request {
	get := r.WithContext(context.WithValue(r.Context(), headRequestKey{}, true))
	// WithContext has copied the request: net/http still has the HEAD, and sends no body.
	get.Method = http.MethodGet
	return get
}

// restoreHead returns a request of headAsGet as a HEAD again, so that a handler can omit
// the body, and any other request unchanged.
func restoreHead(r *http.Request) *http.Request {
	if r.Context().Value(headRequestKey{}) == nil {
		return r
	}
	head := *r
	head.Method = http.MethodHead
	return &head
}
