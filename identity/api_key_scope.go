package identity

import (
	"fmt"
	"slices"
	"strings"

	"trunkline/internal/fault"
)

// Scope is a right of an API key.
type Scope string

// The scopes.
const (
	ScopeIngest     Scope = "ingest"     // post events and call records
	ScopeSubscribe  Scope = "subscribe"  // log in to the events channel
	ScopeRead       Scope = "read"       // read call records, figures and the audit log
	ScopeRecordings Scope = "recordings" // store, read and delete recordings
	ScopeCalls      Scope = "calls"      // follow and cancel calls, connect them to AI providers
	ScopeControl    Scope = "control"    // act on agents and calls
	ScopeAdmin      Scope = "admin"      // manage accounts, users and API keys
)

var knownScopes = []Scope{ScopeIngest, ScopeSubscribe, ScopeRead, ScopeRecordings, ScopeCalls, ScopeControl, ScopeAdmin}

// Scopes returns every scope, in the order in which they are shown.
func Scopes() []Scope { return slices.Clone(knownScopes) }

// DefaultScopes returns the scopes of a key that is created without any: what a platform
// needs that sends its events, and no right to read.
func DefaultScopes() []Scope { return []Scope{ScopeIngest} }

// normalizeScopes returns scopes without repetitions in the order of Scopes, or
// DefaultScopes for nil. An empty list is invalid.
func normalizeScopes(scopes []Scope) ([]Scope, error) {
	if scopes == nil {
		return DefaultScopes(), nil
	}

	var bad fieldProblems
	if len(scopes) == 0 {
		bad.add("scopes", codeRequired, "at least one scope is required")
	}

	for i, scope := range scopes {
		if !slices.Contains(knownScopes, scope) {
			bad.add(fmt.Sprintf("scopes[%d]", i), "unknown_scope",
				"unknown scope "+quote(string(scope))+"; the scopes are "+joinScopes(knownScopes, ", "))
		}
	}

	if err := bad.asError("Invalid API key"); err != nil {
		return nil, err
	}

	return slices.DeleteFunc(Scopes(), func(scope Scope) bool { return !slices.Contains(scopes, scope) }), nil
}

func joinScopes(list []Scope, separator string) string {
	names := make([]string, len(list))
	for i, scope := range list {
		names[i] = string(scope)
	}
	return strings.Join(names, separator)
}

// splitScopes parses the scopes of a row.
func splitScopes(text string) []Scope {
	var list []Scope
	for name := range strings.SplitSeq(text, ",") {
		list = append(list, Scope(name))
	}
	return list
}

// RequireScope returns fault.KindForbidden for an API key without the scope; no key has
// the scope "". Tokens of users have no scopes: their role decides.
func (p *Principal) RequireScope(scope Scope) error {
	switch {
	case !p.IsKey():
		return nil
	case scope == "":
		return fault.Forbidden("API keys are not accepted here")
	case slices.Contains(p.Scopes, scope):
		return nil
	}
	return fault.Forbidden("The API key does not have the scope " + string(scope))
}
