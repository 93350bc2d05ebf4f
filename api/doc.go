// Package api has every HTTP route of Trunkline: authentication, reading of
// requests, and the format of responses and errors. routes.go lists all routes;
// openapi.yaml and asyncapi.yaml describe them, and tests compare the two.
//
// It contains no product logic: a handler reads a request, calls one package, and
// writes the response. Errors arrive with their fault.Kind; errors.go maps kinds to
// HTTP statuses.
//
// It starts no goroutines and has no state and no locks: a request is handled in
// the goroutine of net/http. The packages behind it decide about overload (429,
// 503); a body is never read past its limit.
//
// To add an area, add a file routes_<area>.go with the interface it needs, a field
// in Deps, and its lines in routes.go. The routes of a nil field are left out, so a
// process has the routes of its roles.
package api
