// Package api is every HTTP route of Trunkline: who may call it, how its body
// is read, and what an error looks like. routes.go is the whole table;
// openapi.yaml and asyncapi.yaml beside it are the descriptions, which tests
// hold the routes to.
//
// It refuses to decide anything about the product: a handler reads a request,
// asks one room, and writes the answer. A room's errors have their kind
// already; errors.go is the one table that turns kinds into statuses.
//
// It has no goroutines, no state and no locks: a request lives in the goroutine
// net/http gave it. When it is full is for the rooms to say (429, 503); a body
// is never read past its limit.
//
// A later area adds one file routes_<area>.go with the interface it needs, a
// field in Deps, and its lines in routes.go. A field that is nil leaves its
// routes out: a process has the routes of its roles.
package api
