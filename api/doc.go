// Package api has every HTTP route of Trunkline: authentication, reading of
// requests, and the format of responses and errors. routes.go lists all routes;
// openapi.yaml and asyncapi.yaml describe them, and tests compare the two.
//
// It contains no product logic: a handler reads a request, calls one package, and writes
// the response. The errors of that package have a fault.Kind, which errors.go maps to an
// HTTP status.
//
// It starts no goroutines and has no state and no locks: a request is handled in the
// goroutine of net/http. The packages that it calls refuse requests on overload (429, 503).
// A body is never read past its limit.
//
// To add an area, add a file routes_<area>.go with the interface that it needs, a field in
// Deps, and its lines in routes.go. A nil field has no routes, so that a process has only
// the routes of its roles.
package api
