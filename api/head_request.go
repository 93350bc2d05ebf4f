package api

import (
	"context"
	"net/http"
)

// headRequestKey marks a request that arrived as HEAD.
type headRequestKey struct{}

// headAsGet turns a HEAD request into a GET for the router.
func headAsGet(r *http.Request) *http.Request {
	get := r.WithContext(context.WithValue(r.Context(), headRequestKey{}, true))
	get.Method = http.MethodGet
	return get
}

// restoreHead returns the request with its original method, so that a handler can skip
// a body that is not sent.
func restoreHead(r *http.Request) *http.Request {
	if r.Context().Value(headRequestKey{}) == nil {
		return r
	}
	head := *r
	head.Method = http.MethodHead
	return &head
}
